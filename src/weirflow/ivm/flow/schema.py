"""Schemas as users write them."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from weirflow.errors import ConfigError
from weirflow.ivm.zset.ingest import read_table
from weirflow.ivm.zset.types import spark_schema
from weirflow.sql.types import parse_ddl


def read_schema(schema: Any) -> pa.Schema:
    """The Arrow schema, of Spark's types, that an Arrow schema, a DDL string or data of that schema stands for.

    >>> read_schema("id BIGINT, name STRING").names
    ['id', 'name']
    """
    if isinstance(schema, str):
        found = parse_ddl(schema)
    elif isinstance(schema, pa.Schema):
        found = schema
    elif hasattr(schema, "__arrow_c_schema__") and not hasattr(schema, "__arrow_c_stream__"):
        found = pa.schema(schema)
    else:
        found = read_table(schema).schema
    if not len(found):
        raise ConfigError("The schema has no columns.", hint='write one such as "id BIGINT, name STRING"')
    return spark_schema(found)
