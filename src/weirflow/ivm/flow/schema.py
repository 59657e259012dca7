"""Schemas as users write them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa

from weirflow.errors import ConfigError
from weirflow.ivm.zset.ingest import WEIGHT, read_table
from weirflow.rows.types import spark_schema
from weirflow.sql.limits import check_type


def read_schema(schema: Any) -> pa.Schema:
    """The Arrow schema, of Spark's types, that an Arrow schema, a DDL string or data of that schema stands for.

    >>> read_schema("id BIGINT, name STRING").names
    ['id', 'name']
    """
    if isinstance(schema, str):
        from weirflow.sql.typing.type_syntax import parse_ddl  # noqa: PLC0415 - imports sqlglot

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


def require_source_names(schema: pa.Schema, source: str, is_case_sensitive: Callable[[], bool]) -> None:
    """``ConfigError`` if a source's columns cannot be told apart by SQL, or one has the name of the weights.

    Whether SQL tells names by their case is only asked if some differ by nothing else.
    """
    tell = _Names(is_case_sensitive)
    tell.apart(schema.names, f"The source {source!r}", "columns")
    for name in schema.names:
        if name.casefold() == WEIGHT:
            raise ConfigError(
                f"The source {source!r} has a column {name!r}, which is the name for the weights of rows.",
                hint="give the column another name",
            )
    for field in schema:
        tell.apart_inside(field.type, field.name, source)


class _Names:
    """Refuses names that SQL cannot tell apart."""

    def __init__(self, is_case_sensitive: Callable[[], bool]) -> None:
        self._is_case_sensitive = is_case_sensitive

    def apart(self, names: Sequence[str], what: str, parts: str) -> None:
        seen: dict[str, str] = {}
        for at, name in enumerate(names):
            before = seen.get(name.casefold())
            if before is not None and (name in names[:at] or not self._is_case_sensitive()):
                raise ConfigError(
                    f"{what} has {parts} {before!r} and {name!r}, which SQL cannot tell apart.",
                    hint="SQL ignores upper and lower case: rename one of them",
                )
            seen[name.casefold()] = name

    def apart_inside(self, kind: pa.DataType, where: str, source: str) -> None:
        parts = [kind.field(index) for index in range(kind.num_fields)]
        if pa.types.is_struct(kind):
            self.apart([part.name for part in parts], f"The column {where!r} of the source {source!r}", "fields")
        for part in parts:
            self.apart_inside(part.type, f"{where}.{part.name}" if pa.types.is_struct(kind) else where, source)
