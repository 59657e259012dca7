"""How functions of texts are run: by Arrow where it can, else one text after the other."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from weirflow.ivm.kernel.bounds import require_result
from weirflow.ivm.kernel.deadline import check, checked, remaining
from weirflow.ivm.kernel.expressions.rows import nbytes, on_arrays

if TYPE_CHECKING:
    from weirflow.ivm.kernel.expressions.rows import Value
    from weirflow.ivm.kernel.expressions.signature import CallSignature, Kernel

_STRING = pa.string()
_TEXTS = frozenset({_STRING, pa.binary()})
_SLICE = 1024
_ELEMENT = 16


def most_bytes(text: str) -> int:
    """How many bytes of UTF-8 the text takes at most."""
    return len(text) if text.isascii() else 4 * len(text)


def one_by_one(function: Callable[..., Any], kind: pa.DataType) -> Kernel:
    """A kernel that calls ``function`` with the Python values of each row that has no NULL."""

    def run(*arrays: pa.Array) -> pa.Array:
        if len(arrays) == 1:
            values = checked(arrays[0].to_pylist())
            return pa.array([None if value is None else function(value) for value in values], kind)
        rows = checked(zip(*(array.to_pylist() for array in arrays), strict=True))
        return pa.array([None if None in row else function(*row) for row in rows], kind)

    return on_arrays(run)


def growing(
    function: Callable[..., Any],
    signature: CallSignature,
    *,
    strict: bool = True,
    size: Callable[[Any], int] = most_bytes,
) -> Kernel:
    """A kernel whose values may be far larger than what they are made of: all together are bounded.

    Args:
        function: called with the Python values of each row.
        signature: of the call.
        strict: whether rows that have a NULL are NULL, and not given to the function.
        size: how many bytes a value takes.
    """

    def run(*arrays: pa.Array) -> pa.Array:
        results: list[Any] = []
        total = 0
        for row in checked(zip(*(array.to_pylist() for array in arrays), strict=True)):
            result = None if strict and None in row else function(*row)
            results.append(result)
            if result is not None:
                total += size(result)
                require_result(total, signature.function, signature.position)
        return pa.array(results, signature.result)

    return on_arrays(run)


def list_bytes(elements: list[Any]) -> int:
    """About how many bytes a list takes, whatever its elements do."""
    return _ELEMENT * len(elements)


def joined(separator: str, pieces: list[str], signature: CallSignature) -> str:
    """The pieces with separators between; ``ResultTooLarge`` if these alone are too long."""
    require_result(most_bytes(separator) * len(pieces), signature.function, signature.position)
    return separator.join(pieces)


def require_joinable(parts: Sequence[Value], signature: CallSignature) -> None:
    """``ResultTooLarge`` if texts or binaries, laid end to end row by row, were too long all together."""
    rows = max((len(part) for part in parts if not isinstance(part, pa.Scalar)), default=1)
    require_result(sum(nbytes(part, rows) for part in parts), signature.function, signature.position)


def in_slices(kernel: Callable[[pa.Array], pa.Array]) -> Callable[[pa.Array], pa.Array]:
    """A kernel that ends with ``TickTimeout`` when the deadline passes on its way through many rows."""

    def run(array: pa.Array) -> pa.Array:
        if len(array) <= _SLICE or remaining() is None:
            return kernel(array)
        parts = []
        for start in range(0, len(array), _SLICE):
            check()
            parts.append(kernel(array.slice(start, _SLICE)))
        return pa.concat_arrays(parts)

    return run


def are_texts(signature: CallSignature, count: int, *, binary: bool = False) -> bool:
    """Whether the first ``count`` arguments are STRING, or (if allowed) BINARY."""
    allowed = _TEXTS if binary else {pa.string()}
    return all(kind in allowed for kind in signature.types[:count]) and len(set(signature.types[:count])) == 1


def constants(signature: CallSignature, start: int) -> list[Any] | None:
    """The Python values of the arguments from ``start`` on; None if one is not constant, or NULL."""
    scalars = signature.constants[start:]
    if any(scalar is None or not scalar.is_valid for scalar in scalars):
        return None
    return [scalar.as_py() for scalar in scalars if scalar is not None]


def first_only(function: Callable[[Value], Value]) -> Kernel:
    """A kernel of several arguments of which all but the first are constants it knows already."""
    return lambda value, *_: function(value)
