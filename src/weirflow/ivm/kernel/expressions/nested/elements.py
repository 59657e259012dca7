"""Lambdas over elements: their variables are columns of as many rows as there are elements."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import pyarrow as pa

from weirflow.ivm.kernel.bounds import require_takeable
from weirflow.ivm.kernel.expressions.retype import retyped
from weirflow.ivm.kernel.expressions.rows import Rows, broadcast

if TYPE_CHECKING:
    from weirflow.ivm.kernel.expressions.nested.selection import Places
    from weirflow.ivm.kernel.expressions.rows import Node
    from weirflow.ivm.kernel.expressions.signature import CallSignature


def variable_key(number: int) -> int:
    """Where among the columns a variable is: before the first one."""
    return -1 - number


@dataclass(frozen=True)
class CompiledLambda:
    """A lambda's body, and the numbers of its variables."""

    variables: tuple[int, ...]
    body: Node
    type: pa.DataType

    def __call__(self, rows: Rows, owners: Places, values: Sequence[pa.Array]) -> pa.Array:
        """What the body gives for these values of its variables, each set of which is of the row of its owner."""
        if not len(owners):
            return pa.nulls(0, self.type)
        bound = {variable_key(number): value for number, value in zip(self.variables, values, strict=False)}
        found = self.body(Rows(_Repeated(rows.columns, owners, bound), len(owners)))
        return retyped(broadcast(found, len(owners)), self.type)


HigherOrderBuilder: TypeAlias = "Callable[[CallSignature, list[Any]], Node | None]"
"""As ``FormBuilder``; among the nodes there are ``CompiledLambda`` where lambdas are among the arguments."""


class _Repeated(Sequence[Any]):
    """Columns of rows, each row as often as it has elements, and the variables."""

    def __init__(self, columns: Sequence[pa.Array], owners: Places, variables: Mapping[int, pa.Array]) -> None:
        self._columns = columns
        self._owners = owners
        self._known = dict(variables)

    def __getitem__(self, index: Any) -> pa.Array:
        if index not in self._known:
            column = self._columns[index]
            require_takeable([column], self._owners, "A lambda's column")
            self._known[index] = column.take(pa.array(self._owners))
        return self._known[index]

    def __len__(self) -> int:
        return len(self._columns)
