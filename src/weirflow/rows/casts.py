"""Arrow arrays to a type of Spark's: exactly, or an error that names the row and the value.

The rules are those of ``exact``. Where Arrow can prove that nothing is lost, a column is cast as a whole; every other
one goes value by value.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from weirflow.errors import ConfigError
from weirflow.rows.exact import converter
from weirflow.rows.misfit import Misfit, misfit_error, named
from weirflow.rows.types import spark_type

_AT_ONCE = 10_000
_CANNOT = (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError)


def cast_exactly(array: pa.ChunkedArray, kind: pa.DataType, name: str) -> pa.ChunkedArray:
    """The array as one of a type of Spark's, every value what it was.

    Raises:
        ConfigError: a value does not fit; it names the row, counted from 0. Or the array is not valid Arrow data.
    """
    require_valid(array, name)
    if array.type.equals(kind):
        return array
    if array.null_count == len(array):
        return pa.chunked_array([pa.nulls(len(array), kind)])
    try:
        plain = _plain(array, spark_type(array.type, name))
        return pa.chunked_array([_cast(chunk, kind) for chunk in plain.chunks], kind)
    except _CANNOT:
        return _one_by_one(array, kind, name)


def is_always_valid(kind: pa.DataType) -> bool:
    """Whether any bits are a value of a type; of whole days in milliseconds they are not."""
    return bool(pt.is_primitive(kind) and not pt.is_date64(kind))


def require_valid(array: pa.Array | pa.ChunkedArray, name: str) -> None:
    """``ConfigError`` if an array is not what its type says: bytes that are no UTF-8, a map with a key twice."""
    if is_always_valid(array.type):
        return
    try:
        array.validate(full=True)
    except pa.ArrowInvalid as error:
        raise ConfigError(
            f"The column {name!r} of type {array.type} is not valid Arrow data: {error}",
            hint="whoever made it did not check it; array.validate(full=True) says the same",
        ) from error
    if pt.is_map(array.type):
        chunks = array.chunks if isinstance(array, pa.ChunkedArray) else [array]
        if any(_repeats_keys(chunk) for chunk in chunks):
            _one_by_one(pa.chunked_array(chunks), spark_type(array.type, name), name)


def _repeats_keys(array: pa.Array) -> bool:
    """Whether a map may have a key twice; only maps of plain keys are known not to."""
    entries = array.cast(pa.list_(pa.struct([array.type.key_field, array.type.item_field])))
    keys = pc.struct_field(pc.list_flatten(entries), 0)
    pairs = pa.table({"row": pc.list_parent_indices(entries), "key": keys})
    try:
        return len(pairs.group_by(["row", "key"]).aggregate([])) < len(pairs)
    except pa.ArrowNotImplementedError:
        return True


def _plain(array: pa.ChunkedArray, kind: pa.DataType) -> pa.ChunkedArray:
    """The array as Spark has such values: no dictionaries, extensions or other units. All of it is a safe cast."""
    # Integers of any width are cast safely as they are; Spark has the widest of them as decimals.
    if array.type.equals(kind) or pt.is_integer(array.type):
        return array
    if isinstance(array.type, pa.BaseExtensionType):
        array = pa.chunked_array([chunk.storage for chunk in array.chunks], array.type.storage_type)
    if pt.is_dictionary(array.type):
        array = pa.chunked_array([chunk.dictionary_decode() for chunk in array.chunks], array.type.value_type)
    return array.cast(kind)


def _cast(array: pa.Array, kind: pa.DataType) -> pa.Array:
    """The array, cast as a whole; ``ArrowInvalid`` where it cannot be, or nothing is known about what is lost."""
    given = array.type
    if given.equals(kind):
        return array
    if pt.is_list(given) and pt.is_list(kind):
        elements = _cast(array.flatten(), kind.value_type)
        lengths = pc.fill_null(pc.list_value_length(array), 0)
        ends = pc.cumulative_sum(pc.cast(lengths, pa.int32()))
        offsets = pa.concat_arrays([pa.array([0], pa.int32()), ends])
        return pa.ListArray.from_arrays(offsets, elements, type=kind, mask=array.is_null())
    if pt.is_struct(given) and pt.is_struct(kind) and given.names == kind.names:
        parts = [_cast(part, field.type) for part, field in zip(array.flatten(), kind, strict=True)]
        return pa.StructArray.from_arrays(parts, fields=list(kind), mask=array.is_null())
    if not _is_checked(given, kind):
        raise pa.ArrowInvalid("value by value")
    result = array.cast(kind)
    if pt.is_float32(kind) and pt.is_floating(given) and not _same(pc.is_inf(result), pc.is_inf(array)):
        raise pa.ArrowInvalid("out of range")
    if pt.is_date32(kind) and not _same(result.cast(given), array):
        raise pa.ArrowInvalid("not midnight")
    return result


def _same(one: pa.Array, other: pa.Array) -> bool:
    return bool(pc.all(pc.equal(one, other), min_count=0).as_py())


def _is_checked(given: pa.DataType, kind: pa.DataType) -> bool:
    """Whether Arrow refuses to cast a value that would not be the same."""
    if pt.is_integer(given) or pt.is_floating(given):
        exact = pt.is_integer(given) and pt.is_decimal(kind)
        return bool(exact or pt.is_integer(kind) or pt.is_floating(kind))
    if pt.is_decimal(given):
        return bool(pt.is_decimal(kind))
    if pt.is_map(given) and pt.is_map(kind):  # of other names
        return bool(given.key_type.equals(kind.key_type) and given.item_type.equals(kind.item_type))
    # A day is the midnight of a clock; a moment is on no clock.
    clocks = [one for one in (given, kind) if pt.is_date32(one) or (pt.is_timestamp(one) and one.tz is None)]
    return len(clocks) == 2  # noqa: PLR2004 - both


def _one_by_one(array: pa.ChunkedArray, kind: pa.DataType, name: str) -> pa.ChunkedArray:
    convert = converter(kind)
    parts = []
    row = 0
    try:
        for part in _slices(array):
            converted = []
            for value in part:
                converted.append(convert(value))
                row += 1
            parts.append(pa.array(converted, kind))
    except Misfit as misfit:
        if isinstance(misfit.value, pa.Scalar):
            misfit.value = _Text(misfit.value)
        raise misfit_error(misfit, name, row, kind) from misfit.__cause__
    except _CANNOT as error:
        raise ConfigError(
            f"Column {name!r} has type {array.type} and cannot become {named(kind)}: {error}",
            hint="cast the column to the type you want first",
        ) from error
    return pa.chunked_array(parts, kind)


def _slices(array: pa.ChunkedArray) -> Iterator[pa.Array]:
    """Parts of the array that are small as Python values, so that a first value that does not fit is found at once."""
    for chunk in array.chunks:
        for start in itertools.count(step=_AT_ONCE):
            if start >= len(chunk):
                break
            yield chunk.slice(start, _AT_ONCE)


class _Text:
    """A value that Python has none for, to be shown."""

    def __init__(self, value: pa.Scalar) -> None:
        self._value = value

    def __repr__(self) -> str:
        return str(self._value.cast(pa.string()).as_py())
