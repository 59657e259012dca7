"""Calls of users' Python functions: run in this process, for each different row of their arguments.

A result is taken if it is of just the Python type that the declared type has in Spark, so that it means the same there.
For any other Spark has rules of its own: the engine evaluates the call then.
"""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Callable, Sequence
from decimal import Decimal, InvalidOperation
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from weirflow.errors import FunctionFailed, FunctionMissing
from weirflow.ivm.kernel.deadline import checked
from weirflow.ivm.kernel.expressions.rows import Rows, broadcast
from weirflow.ivm.zset.rows import group_rows
from weirflow.sql.registered import UserFunction, versions
from weirflow.sql.types import type_name

if TYPE_CHECKING:
    from weirflow.ivm.kernel.expressions.rows import Node, Value

Find = Callable[[str, str | None], UserFunction | None]
"""Finds a function by its name, in a version or (None) in the last one."""
_SHOWN = 200
_TYPES: dict[pa.DataType, type[Any]] = {
    pa.bool_(): bool,
    pa.int8(): int,
    pa.int16(): int,
    pa.int32(): int,
    pa.int64(): int,
    pa.float32(): float,
    pa.float64(): float,
    pa.string(): str,
    pa.date32(): dt.date,
    pa.timestamp("us"): dt.datetime,
}


def is_plain(kind: pa.DataType) -> bool:
    """Whether values of a type are the same Python values here as in a function that Spark runs."""
    if pa.types.is_list(kind):
        return is_plain(kind.value_type)
    return kind in _TYPES or pa.types.is_decimal128(kind)


def found_function(settings: str, find: Find) -> tuple[str, UserFunction]:
    """The function that a call of these settings needs; ``FunctionMissing`` unless it is there, in its version."""
    ((name, version),) = versions(json.loads(settings)).items()
    function = find(name, version)
    if function is None:
        last = find(name, None)
        raise missing(name, version) if last is None else other_version(name, version, last.version)
    return name, function


def missing(name: str, version: str) -> FunctionMissing:
    """The error for a function that nobody has given."""
    return FunctionMissing(
        f"A view calls the function {name!r}, version {version!r}, which is not registered.",
        hint=f"session.udf({name!r}, ...) before the flow is opened, or IncrementalFlow(functions={{{name!r}: ...}})",
    )


def other_version(name: str, wanted: str, found: str) -> FunctionMissing:
    """The error for a function that is there in another version."""
    return FunctionMissing(
        f"A view was made with version {wanted!r} of the function {name!r}, but version {found!r} is registered.",
        hint=f"register version {wanted!r}; or replace the view while both are registered, then checkpoint",
    )


def python_node(
    name: str, function: UserFunction, arguments: Sequence[Node], kind: pa.DataType, by_engine: Node
) -> Node:
    """A call as a node; ``by_engine`` evaluates it where Python's result is not of just the declared type."""
    call, read = function.call, _reader(kind)

    def run(rows: Rows) -> Value:
        columns = [broadcast(node(rows), rows.length) for node in arguments]
        first, back = _different(columns, rows.length)
        values = [column.take(first).to_pylist() for column in columns]
        results: list[Any] = []
        for given in checked(zip(*values, strict=True) if values else [()] * len(first)):
            try:
                found = call(*given)
            except Exception as error:
                raise _failed(name, given, error) from error
            results.append(None if found is None else read(found))
        if any(one is _OTHER for one in results):
            return by_engine(rows)
        return pa.array(results, kind).take(pa.array(back))

    return run


def _failed(name: str, given: tuple[Any, ...], error: Exception) -> FunctionFailed:
    shown = repr(given)[1:-1].removesuffix(",")
    shown = shown if len(shown) <= _SHOWN else shown[: _SHOWN - 1] + "…"
    return FunctionFailed(f"The function {name!r} raised {type(error).__name__} for ({shown}): {error}")


def unlike(name: str, kind: pa.DataType) -> FunctionFailed:
    """The error for results of another type than declared, where no Spark says what becomes of them."""
    return FunctionFailed(
        f"The function {name!r} returned a value that is not of the declared type {type_name(kind)}.",
        hint="return exactly that type, or None; in a flow of a Session, Spark's rules decide about other types",
    )


def _different(columns: Sequence[pa.Array], length: int) -> tuple[pa.Array, Any]:
    """The places of different rows, and for each row which of them it is."""
    if not columns:
        return pa.array([0]), np.zeros(length, np.int64)
    order, starts, _ = group_rows(columns, length)
    back = np.empty(length, np.int64)
    back[order] = np.repeat(np.arange(len(starts)), np.diff(starts, append=length))
    return pa.array(order[starts]), back


class _Other:
    """Of a result: not of just the declared type."""


_OTHER = _Other()


def _reader(kind: pa.DataType) -> Callable[[Any], Any]:
    """A result as pyarrow takes it, or ``_OTHER``."""
    if pa.types.is_list(kind):
        inner = _reader(kind.value_type)
        return lambda value: _list(value, inner)
    if pa.types.is_decimal128(kind):
        return lambda value: _decimal(value, kind)
    wanted = _TYPES[kind]
    if wanted is int:
        most = 1 << (kind.bit_width - 1)
        return lambda value: value if type(value) is int and -most <= value < most else _OTHER
    if wanted is str:
        return _text
    if wanted is dt.datetime:
        return lambda value: value if type(value) is dt.datetime and value.tzinfo is None else _OTHER
    return lambda value: value if type(value) is wanted else _OTHER


def _list(value: Any, inner: Callable[[Any], Any]) -> Any:
    if type(value) is not list:
        return _OTHER
    found = [None if one is None else inner(one) for one in value]
    return _OTHER if any(one is _OTHER for one in found) else found


def _text(value: Any) -> Any:
    if type(value) is not str:
        return _OTHER
    try:
        value.encode()
    except UnicodeEncodeError:
        return _OTHER
    return value


def _decimal(value: Any, kind: pa.DataType) -> Any:
    if type(value) is not Decimal or not value.is_finite():
        return _OTHER
    try:
        pa.scalar(value, kind)
    except (pa.ArrowInvalid, InvalidOperation):
        return _OTHER
    return value
