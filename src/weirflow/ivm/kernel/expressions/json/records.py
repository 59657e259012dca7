"""``from_json`` and ``to_json``: structs of JSON texts, and back."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from weirflow.errors import DataError
from weirflow.ivm.kernel.deadline import checked
from weirflow.ivm.kernel.expressions.casts.context import Cast
from weirflow.ivm.kernel.expressions.casts.parse import rounded, unscaled
from weirflow.ivm.kernel.expressions.json.moments import (
    Read,
    date_reader,
    date_writer,
    moment_reader,
    moment_writer,
    shown_reader,
    shown_texts,
)
from weirflow.ivm.kernel.expressions.json.options import READ, WRITTEN, JsonOptions, json_options
from weirflow.ivm.kernel.expressions.json.reader import OF_RECORDS, Decimal, Fields, Malformed, Whole, whole
from weirflow.ivm.kernel.expressions.json.writer import double_text, string_text, value_text
from weirflow.ivm.kernel.expressions.nested.lists import entries_of, list_offsets
from weirflow.ivm.kernel.expressions.rows import on_arrays, valid_mask

if TYPE_CHECKING:
    from weirflow.ivm.kernel.expressions.signature import Builder, CallSignature, Kernel

_BITS = {pa.int8(): 7, pa.int16(): 15, pa.int32(): 31, pa.int64(): 63}
_WORDS = {
    "NaN": float("nan"),
    **dict.fromkeys(("Infinity", "+Infinity", "+INF"), float("inf")),
    **dict.fromkeys(("-Infinity", "-INF"), float("-inf")),
}
_BLANK = "".join(map(chr, range(0x21)))
_SECOND, _LONG = 1_000_000, 1 << 63


class _Unfit(Exception):
    """A value has no place in its type."""


class _Partly(Exception):
    """A part of a value has no place in its type; ``value`` has NULL there."""

    def __init__(self, value: Any) -> None:
        super().__init__()
        self.value = value


def from_json(signature: CallSignature) -> Kernel | None:
    """``from_json(text[, options, zone])`` of the struct that it gives: what does not fit, or is no JSON, is NULL."""
    kind = signature.result
    options = json_options(signature, READ)
    reader = None if options is None else _Reader(options)
    if reader is None or signature.types[0] != pa.string() or not (pa.types.is_struct(kind) and reader.reads(kind)):
        return None
    nothing = {field.name: None for field in kind}

    def record(text: str | None) -> dict[str, Any] | None:
        if text is None or not text.strip(_BLANK):
            return None
        try:
            value = OF_RECORDS(text)
            return reader.struct(value, kind) if isinstance(value, Fields) else nothing
        except Malformed:
            return nothing
        except _Partly as partly:
            found: dict[str, Any] = partly.value
            return found

    alone = on_arrays(lambda texts: pa.array([record(text) for text in checked(texts.to_pylist())], kind))
    return lambda texts, *_: alone(texts)


class _Reader:
    """From values of JSON to those of types: ``_Unfit`` or ``_Partly`` if they have no place there."""

    def __init__(self, options: JsonOptions) -> None:
        self._date = date_reader(options)
        self._moment = moment_reader(options)
        self._shown = shown_reader(options)

    def reads(self, kind: pa.DataType) -> bool:
        """Whether values of this type are read here."""
        if pa.types.is_struct(kind):
            names = {field.name for field in kind}
            is_plain = len(names) == kind.num_fields > 0 and "_corrupt_record" not in names
            return is_plain and all(self.reads(field.type) for field in kind)
        if pa.types.is_list(kind):
            return self.reads(kind.value_type)
        if pa.types.is_temporal(kind):
            return self._time(kind) is not None
        return kind in _BITS or kind in (pa.bool_(), pa.float64(), pa.string()) or pa.types.is_decimal128(kind)

    def _time(self, kind: pa.DataType) -> Read | None:
        if kind == pa.date32():
            return self._date
        if not pa.types.is_timestamp(kind):
            return None
        return self._shown if kind.tz is None else self._moment

    def _value(self, value: Any, kind: pa.DataType) -> Any:  # noqa: PLR0911 - one for each kind of value
        if value is None:
            return None
        if pa.types.is_struct(kind):
            return self.struct(value, kind)
        if pa.types.is_list(kind):
            return self._list(value, kind)
        if kind == pa.string():
            return whole(value) if type(value) is str else value_text(value)
        if pa.types.is_decimal128(kind):
            return _decimal(value, kind)
        if pa.types.is_temporal(kind):
            return self._read_time(value, kind)
        return _plain(value, kind)

    def _read_time(self, value: Any, kind: pa.DataType) -> int:
        read = self._time(kind)
        assert read is not None, "it was asked whether it is read"
        if type(value) is str and value:
            try:
                return read(value)
            except ValueError:
                raise _Unfit from None
        if isinstance(value, Whole) and pa.types.is_timestamp(kind) and kind.tz is not None:
            seconds = int(value)
            if -_LONG <= seconds < _LONG:
                return (seconds * _SECOND + _LONG) % (2 * _LONG) - _LONG  # Java's product, whatever is lost of it
        raise _Unfit

    def struct(self, value: Any, kind: pa.DataType) -> dict[str, Any]:
        """An object, with NULL for what is not there."""
        if not isinstance(value, Fields):
            raise _Unfit
        found: dict[str, Any] = {field.name: None for field in kind}
        is_partial = False
        for name, inner in value:
            if name not in found:
                continue
            try:
                found[name] = self._value(inner, kind.field(name).type)
            except _Partly as partly:
                found[name], is_partial = partly.value, True
            except _Unfit:
                is_partial = True
        if is_partial:
            raise _Partly(found)
        return found

    def _list(self, value: Any, kind: pa.DataType) -> list[Any]:
        if not isinstance(value, list) or isinstance(value, Fields):
            raise _Unfit
        found, is_partial = [], False
        for inner in value:
            try:
                found.append(self._value(inner, kind.value_type))
            except _Partly as partly:
                found.append(partly.value)
                is_partial = True
        if is_partial:
            raise _Partly(found)
        return found


def _plain(value: Any, kind: pa.DataType) -> Any:
    """A boolean, an integer or a double."""
    if kind == pa.bool_():
        if isinstance(value, bool):
            return value
        raise _Unfit
    if kind == pa.float64():
        if isinstance(value, Whole | Decimal):
            return float(int(value)) if isinstance(value, Whole) else float(value)
        if isinstance(value, float):
            return float(value)
        if isinstance(value, str) and value in _WORDS:
            return _WORDS[value]
        raise _Unfit
    if isinstance(value, Whole):
        number = int(value)
        if -(1 << _BITS[kind]) <= number < 1 << _BITS[kind]:
            return number
    raise _Unfit


def _decimal(value: Any, kind: pa.DataType) -> Any:
    """A number, or a text of one in which commas mean nothing, rounded half up; one with too many digits is unfit."""
    if not isinstance(value, str):
        raise _Unfit
    try:
        parsed = unscaled(value if isinstance(value, Whole | Decimal) else value.replace(",", ""))
        return rounded(parsed if parsed[0] else (0, 0), value, Cast(pa.string(), kind))
    except (ValueError, DataError):
        raise _Unfit from None


def to_json(signature: CallSignature) -> Kernel | None:
    """``to_json(value[, options], zone)`` of a struct, an array or a map; fields that are NULL are left out."""
    options = json_options(signature, WRITTEN)
    writer = None if options is None else _Writer(options)
    if writer is None or not writer.writes(signature.types[0]):
        return None
    alone = on_arrays(lambda values: pa.array(writer.texts(values), pa.string()))
    return lambda values, *_: alone(values)


class _Writer:
    """From values to their texts."""

    def __init__(self, options: JsonOptions) -> None:
        self._dates = date_writer(options)
        self._moments = moment_writer(options)
        self._ignores_nulls = options.ignores_nulls

    def writes(self, kind: pa.DataType) -> bool:
        """Whether values of this type are written here."""
        if pa.types.is_map(kind):
            return (kind.key_type in _BITS or kind.key_type == pa.string()) and self.writes(kind.item_type)
        if pa.types.is_list(kind):
            return self.writes(kind.value_type)
        if pa.types.is_struct(kind):
            return all(self.writes(field.type) for field in kind)
        if pa.types.is_timestamp(kind):
            return kind.tz is None or self._moments is not None
        if kind == pa.date32():
            return self._dates is not None
        is_plain = kind in _BITS or kind in (pa.bool_(), pa.string(), pa.binary(), pa.float32(), pa.float64())
        return is_plain or pa.types.is_decimal128(kind)

    def texts(self, values: pa.Array) -> list[str | None]:  # noqa: PLR0911 - one for each type
        """The texts of values of one type; None for NULL."""
        kind = values.type
        if pa.types.is_struct(kind):
            return self._structs(values)
        if pa.types.is_list(kind):
            return self._lists(values)
        if pa.types.is_map(kind):
            return self._maps(values)
        if kind == pa.string():
            return [None if one is None else string_text(one) for one in values.to_pylist()]
        if kind == pa.bool_():
            return [None if one is None else "true" if one else "false" for one in values.to_pylist()]
        if pa.types.is_floating(kind):
            single = kind == pa.float32()
            return [None if one is None else double_text(one, single=single) for one in values.to_pylist()]
        if kind == pa.binary():
            return [None if one is None else string_text(base64.b64encode(one).decode()) for one in values.to_pylist()]
        if pa.types.is_temporal(kind):
            return self._times(values)
        return [None if one is None else str(one) for one in values.to_pylist()]

    def _times(self, values: pa.Array) -> list[str | None]:
        is_date = values.type == pa.date32()
        write = self._dates if is_date else shown_texts if values.type.tz is None else self._moments
        assert write is not None, "it was asked whether it is written"
        there = valid_mask(values, len(values)).tolist()
        return [string_text(text) if is_there else None for text, is_there in zip(write(values), there, strict=True)]

    def _structs(self, values: pa.Array) -> list[str | None]:
        fields = []
        for at, field in enumerate(values.type):
            start = f"{string_text(field.name)}:"
            texts = self.texts(pc.struct_field(values, [at]))
            nothing = None if self._ignores_nulls else f"{start}null"
            fields.append([nothing if text is None else start + text for text in texts])
        there = valid_mask(values, len(values)).tolist()
        rows = zip(*fields, strict=True) if fields else ((),) * len(values)
        return [
            f"{{{','.join(text for text in row if text is not None)}}}" if is_there else None
            for row, is_there in zip(rows, there, strict=True)
        ]

    def _lists(self, values: pa.Array) -> list[str | None]:
        pieces = ["null" if text is None else text for text in self.texts(values.flatten())]
        return _joined(pieces, list_offsets(values).tolist(), values, "[]")

    def _maps(self, values: pa.Array) -> list[str | None]:
        entries = entries_of(values)
        items = ["null" if text is None else text for text in self.texts(entries.items)]
        pieces = [f"{string_text(str(key))}:{item}" for key, item in zip(entries.keys.to_pylist(), items, strict=True)]
        return _joined(pieces, entries.offsets.tolist(), values, "{}")


def _joined(pieces: list[str], offsets: list[int], values: pa.Array, ends: str) -> list[str | None]:
    there = valid_mask(values, len(values)).tolist()
    return [
        f"{ends[0]}{','.join(pieces[offsets[row] : offsets[row + 1]])}{ends[1]}" if is_there else None
        for row, is_there in enumerate(there)
    ]


FUNCTIONS: dict[str, Builder] = {"from_json": from_json, "to_json": to_json}
