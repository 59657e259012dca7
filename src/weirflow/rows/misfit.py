"""What is said of a value that does not fit its column: which row, which value, which column, and why."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from weirflow.arguments.in_errors import shortened, shown
from weirflow.errors import ConfigError, WeirflowError
from weirflow.sql.types import type_name


class Misfit(Exception):
    """A value cannot become one of a type without being changed; ``misfit_error`` says it to users.

    Attributes:
        value: the value, or the part of it that does not fit.
        why: what is wrong with it.
        path: where the part is, from the column on, such as ``[2]`` or ``.name``.
    """

    def __init__(self, value: Any, why: str, hint: str | None = None) -> None:
        super().__init__(why)
        self.value = value
        self.why = why
        self.hint = hint
        self.path = ""

    def inside(self, step: str) -> Misfit:
        """The same, seen from what the value is a part of."""
        self.path = step + self.path
        return self


def misfit_error(misfit: Misfit, column: str, row: int, kind: pa.DataType) -> WeirflowError:
    """The error of a value for a column; rows are counted from 0."""
    return ConfigError(
        f"Row {row}: {shown(misfit.value)} does not fit column {shown(column + misfit.path)} of type {named(kind)}: "
        f"{misfit.why}.",
        hint=misfit.hint,
    )


def named(kind: pa.DataType) -> str:
    """Spark's name of a type, of bounded length."""
    name = type_name(kind)
    name = name if pa.types.is_nested(kind) else name.upper()
    return shortened(name)
