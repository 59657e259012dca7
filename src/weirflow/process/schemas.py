"""The columns that a function declares for what it puts out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa

from weirflow.arguments import shown
from weirflow.errors import ConfigError
from weirflow.sql.typing.type_syntax import parse_ddl

if TYPE_CHECKING:
    from weirflow.process.function import KeyedFunction


def output_schema(function: KeyedFunction) -> pa.Schema:
    """The columns of a function's output.

    Raises:
        ConfigError: it declares none.
        SqlSyntaxError: the text is not a list of columns.
    """
    declared = getattr(function, "output", None)
    if declared is None:
        raise ConfigError(
            f"{type(function).__name__} does not declare its output.",
            hint='give the class its columns: output = "account STRING, amount DOUBLE"',
        )
    return _schema(declared, f"The output of {type(function).__name__}")


def side_schemas(function: KeyedFunction) -> dict[str, pa.Schema]:
    """The columns of a function's side outputs, by tag; fails like ``output_schema``."""
    name = type(function).__name__
    return {tag: _schema(one, f"The side output {tag!r} of {name}") for tag, one in function.side_outputs.items()}


def _schema(declared: Any, what: str) -> pa.Schema:
    if isinstance(declared, pa.Schema):
        return declared
    if isinstance(declared, str):
        return parse_ddl(declared)
    raise ConfigError(f"{what} is {shown(declared)}.", hint="give columns as in CREATE TABLE, or an Arrow schema")
