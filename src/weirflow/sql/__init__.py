"""Spark SQL text to a typed logical plan, without Spark.

``weirflow.sql.passes.optimize.logical_plan`` is the way in. Types are Arrow types, in the one-to-one correspondence
that Spark itself uses (``weirflow.sql.types``). Imports nothing by itself: a Session needs only
``weirflow.sql.statements.kinds``.
"""
