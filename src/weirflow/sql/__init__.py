"""Spark SQL text to a typed logical plan, without Spark.

Types are Arrow types, in the one-to-one correspondence that Spark itself uses (``weirflow.sql.types``).
"""

from weirflow.sql.bind import bind_query

__all__ = ["bind_query"]
