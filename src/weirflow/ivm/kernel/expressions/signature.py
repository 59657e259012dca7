"""What a family of functions is told about a call, and what it gives back."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    import pyarrow as pa

    from weirflow.errors import SqlPosition
    from weirflow.ivm.kernel.expressions.rows import Node, Value

    Kernel: TypeAlias = Callable[..., Value]
    """Argument values to the result; NULLs included, rows that are NULL in a strict function never raise."""
    Builder: TypeAlias = Callable[["CallSignature"], Kernel | None]
    """The kernel for a call, or None if it is not proven equal to Spark's."""
    FormBuilder: TypeAlias = Callable[["CallSignature", list[Node]], Node | None]
    """As ``Builder``, for what decides itself which arguments are evaluated for which rows."""


@dataclass(frozen=True)
class CallSignature:
    """A call as it is known before any row is.

    Attributes:
        types: of the arguments.
        constants: of the arguments; None for those that differ from row to row.
    """

    function: str
    types: tuple[pa.DataType, ...]
    result: pa.DataType
    constants: tuple[pa.Scalar | None, ...]
    position: SqlPosition | None = None
