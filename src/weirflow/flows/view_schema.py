"""The columns of views, from those that Spark gives a frame."""

from __future__ import annotations

import pyarrow as pa

from weirflow.rows.types import spark_schema
from weirflow.sql.types import nullable


def view_schema(schema: pa.Schema) -> pa.Schema:
    """The schema with everything nullable: views do not track what is never NULL."""
    return spark_schema(pa.schema([(field.name, nullable(field.type)) for field in schema]))
