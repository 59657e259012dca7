"""How functions of texts are run: by Arrow where it can, else one text after the other."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa

from weirflow.ivm.kernel.expressions.rows import on_arrays

if TYPE_CHECKING:
    from collections.abc import Callable

    from weirflow.ivm.kernel.expressions.rows import Value
    from weirflow.ivm.kernel.expressions.signature import Kernel, Signature

_TEXTS = frozenset({pa.string(), pa.binary()})


def one_by_one(function: Callable[..., Any], kind: pa.DataType) -> Kernel:
    """A kernel that calls ``function`` with the Python values of each row that has no NULL."""

    def run(*arrays: pa.Array) -> pa.Array:
        if len(arrays) == 1:
            return pa.array([None if value is None else function(value) for value in arrays[0].to_pylist()], kind)
        rows = zip(*(array.to_pylist() for array in arrays), strict=True)
        return pa.array([None if None in row else function(*row) for row in rows], kind)

    return on_arrays(run)


def are_texts(signature: Signature, count: int, *, binary: bool = False) -> bool:
    """Whether the first ``count`` arguments are STRING, or (if allowed) BINARY."""
    allowed = _TEXTS if binary else {pa.string()}
    return all(kind in allowed for kind in signature.types[:count]) and len(set(signature.types[:count])) == 1


def constants(signature: Signature, start: int) -> list[Any] | None:
    """The Python values of the arguments from ``start`` on; None if one is not constant, or NULL."""
    scalars = signature.constants[start:]
    if any(scalar is None or not scalar.is_valid for scalar in scalars):
        return None
    return [scalar.as_py() for scalar in scalars if scalar is not None]


def first_only(function: Callable[[Value], Value]) -> Kernel:
    """A kernel of several arguments of which all but the first are constants it knows already."""
    return lambda value, *_: function(value)
