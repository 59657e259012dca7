"""Spark SQL text to a typed logical plan, without Spark.

Types are Arrow types, in the one-to-one correspondence that Spark itself uses (``weirflow.sql.types``).
"""

from weirflow.sql.bind import bind_query
from weirflow.sql.optimize import logical_plan

__all__ = ["bind_query", "logical_plan"]
