"""Schemas as users write them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from weirflow.errors import ConfigError
from weirflow.ivm.zset.ingest import WEIGHT, read_table
from weirflow.rows.types import spark_schema
from weirflow.sql.limits import check_type
from weirflow.sql.types import parse_ddl


def read_schema(schema: Any) -> pa.Schema:
    """The Arrow schema, of Spark's types, that an Arrow schema, a DDL string or data of that schema stands for.

    >>> read_schema("id BIGINT, name STRING").names
    ['id', 'name']
    """
    if isinstance(schema, str):
        found = parse_ddl(schema) if schema.strip() else pa.schema([])
    elif isinstance(schema, pa.Schema):
        found = schema
    elif hasattr(schema, "__arrow_c_schema__") and not hasattr(schema, "__arrow_c_stream__"):
        found = pa.schema(schema)
    else:
        found = read_table(schema).schema
    if not len(found):
        raise ConfigError("The schema has no columns.", hint='write one such as "id BIGINT, name STRING"')
    for field in found:
        check_type(field.type)
    return spark_schema(found)


def require_source_names(schema: pa.Schema, source: str) -> None:
    """``ConfigError`` if a source's columns cannot be told apart by SQL, or one has the name of the weights."""
    _require_distinct(schema.names, f"The source {source!r}", "columns")
    for name in schema.names:
        if name.casefold() == WEIGHT:
            raise ConfigError(
                f"The source {source!r} has a column {name!r}, which is the name for the weights of rows.",
                hint="give the column another name",
            )
    for field in schema:
        _require_distinct_inside(field.type, field.name, source)


def _require_distinct(names: Sequence[str], what: str, parts: str) -> None:
    seen: dict[str, str] = {}
    for name in names:
        if name.casefold() in seen:
            raise ConfigError(
                f"{what} has {parts} {seen[name.casefold()]!r} and {name!r}, which SQL cannot tell apart.",
                hint="SQL ignores upper and lower case: rename one of them",
            )
        seen[name.casefold()] = name


def _require_distinct_inside(kind: pa.DataType, where: str, source: str) -> None:
    parts = [kind.field(index) for index in range(kind.num_fields)]
    if pa.types.is_struct(kind):
        _require_distinct([part.name for part in parts], f"The column {where!r} of the source {source!r}", "fields")
    for part in parts:
        _require_distinct_inside(part.type, f"{where}.{part.name}" if pa.types.is_struct(kind) else where, source)
