"""``from_json`` and ``to_json``: structs of JSON texts, and back."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from weirflow.ivm.kernel.deadline import checked
from weirflow.ivm.kernel.expressions.calendar import text_of_days
from weirflow.ivm.kernel.expressions.json.reader import OF_RECORDS, Decimal, Fields, Malformed, Whole
from weirflow.ivm.kernel.expressions.json.writer import double_text, string_text, value_text
from weirflow.ivm.kernel.expressions.nested.lists import entries_of, list_offsets
from weirflow.ivm.kernel.expressions.rows import numbers, on_arrays, valid_mask
from weirflow.ivm.kernel.expressions.zones import Clock, clock_of

if TYPE_CHECKING:
    from weirflow.ivm.kernel.expressions.signature import Builder, CallSignature, Kernel

_BITS = {pa.int8(): 7, pa.int16(): 15, pa.int32(): 31, pa.int64(): 63}
_WORDS = {
    "NaN": float("nan"),
    **dict.fromkeys(("Infinity", "+Infinity", "+INF"), float("inf")),
    **dict.fromkeys(("-Infinity", "-INF"), float("-inf")),
}
_BLANK = "".join(map(chr, range(0x21)))
_DAY, _SECOND = 86_400_000_000, 1_000_000


class _Unfit(Exception):
    """A value has no place in its type."""


class _Partly(Exception):
    """A part of a value has no place in its type; ``value`` has NULL there."""

    def __init__(self, value: Any) -> None:
        super().__init__()
        self.value = value


def from_json(signature: CallSignature) -> Kernel | None:
    """``from_json(text)`` of the struct that it gives: what does not fit is NULL, and all that is no JSON."""
    kind = signature.result
    if signature.types != (pa.string(),) or not _is_readable(kind):
        return None
    nothing = {field.name: None for field in kind}

    def record(text: str | None) -> dict[str, Any] | None:
        if text is None or not text.strip(_BLANK):
            return None
        try:
            value = OF_RECORDS(text)
            return _converted(value, kind) if isinstance(value, Fields) else nothing
        except Malformed:
            return nothing
        except _Partly as partly:
            found: dict[str, Any] = partly.value
            return found

    return on_arrays(lambda texts: pa.array([record(text) for text in checked(texts.to_pylist())], kind))


def _is_readable(kind: pa.DataType) -> bool:
    if pa.types.is_struct(kind):
        names = {field.name for field in kind}
        is_plain = len(names) == kind.num_fields > 0 and "_corrupt_record" not in names
        return is_plain and all(_is_readable(field.type) for field in kind)
    if pa.types.is_list(kind):
        return _is_readable(kind.value_type)
    return kind in _BITS or kind in (pa.bool_(), pa.float64(), pa.string())


def _converted(value: Any, kind: pa.DataType) -> Any:  # noqa: C901, PLR0911 - one for each kind of value
    if value is None:
        return None
    if pa.types.is_struct(kind):
        return _struct(value, kind)
    if pa.types.is_list(kind):
        return _list(value, kind)
    if kind == pa.string():
        return value if type(value) is str else value_text(value)
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


def _struct(value: Any, kind: pa.DataType) -> dict[str, Any]:
    if not isinstance(value, Fields):
        raise _Unfit
    found: dict[str, Any] = {field.name: None for field in kind}
    is_partial = False
    for name, inner in value:
        if name not in found:
            continue
        try:
            found[name] = _converted(inner, kind.field(name).type)
        except _Partly as partly:
            found[name], is_partial = partly.value, True
        except _Unfit:
            is_partial = True
    if is_partial:
        raise _Partly(found)
    return found


def _list(value: Any, kind: pa.DataType) -> list[Any]:
    if not isinstance(value, list) or isinstance(value, Fields):
        raise _Unfit
    found, is_partial = [], False
    for inner in value:
        try:
            found.append(_converted(inner, kind.value_type))
        except _Partly as partly:
            found.append(partly.value)
            is_partial = True
    if is_partial:
        raise _Partly(found)
    return found


def to_json(signature: CallSignature) -> Kernel | None:
    """``to_json(value, zone)`` of a struct, an array or a map; fields that are NULL are left out."""
    kind, zone = signature.types[0], signature.constants[1]
    if zone is None or not _is_writable(kind):
        return None
    clock = clock_of(zone.as_py())
    alone = on_arrays(lambda values: pa.array(_texts(values, clock), pa.string()))
    return lambda values, _: alone(values)


def _is_writable(kind: pa.DataType) -> bool:
    if pa.types.is_map(kind):
        return (kind.key_type in _BITS or kind.key_type == pa.string()) and _is_writable(kind.item_type)
    if pa.types.is_list(kind):
        return _is_writable(kind.value_type)
    if pa.types.is_struct(kind):
        return all(_is_writable(field.type) for field in kind)
    is_plain = kind in _BITS or kind in (pa.bool_(), pa.string(), pa.binary(), pa.date32(), pa.float32(), pa.float64())
    return is_plain or pa.types.is_decimal128(kind) or pa.types.is_timestamp(kind)


def _texts(values: pa.Array, clock: Clock) -> list[str | None]:  # noqa: PLR0911 - one for each type
    """The texts of values of one type; None for NULL."""
    kind = values.type
    if pa.types.is_struct(kind):
        return _structs(values, clock)
    if pa.types.is_list(kind):
        return _lists(values, clock)
    if pa.types.is_map(kind):
        return _maps(values, clock)
    if kind == pa.string():
        return [None if one is None else string_text(one) for one in values.to_pylist()]
    if kind == pa.bool_():
        return [None if one is None else "true" if one else "false" for one in values.to_pylist()]
    if pa.types.is_floating(kind):
        single = kind == pa.float32()
        return [None if one is None else double_text(one, single=single) for one in values.to_pylist()]
    if kind == pa.binary():
        return [None if one is None else string_text(base64.b64encode(one).decode()) for one in values.to_pylist()]
    if kind == pa.date32():
        return _quoted(text_of_days(numbers(values).astype(np.int64)), values)
    if pa.types.is_timestamp(kind):
        return _quoted(_moments(values, clock), values)
    return [None if one is None else str(one) for one in values.to_pylist()]


def _quoted(texts: list[str], values: pa.Array) -> list[str | None]:
    there = valid_mask(values, len(values)).tolist()
    return [f'"{text}"' if is_there else None for text, is_there in zip(texts, there, strict=True)]


def _moments(values: pa.Array, clock: Clock) -> list[str]:
    """With milliseconds and, unless it is a time of no zone, how far the clock is ahead of UTC."""
    micros = numbers(values)
    zoned = values.type.tz is not None
    offsets = clock.offset_at(micros) if zoned else np.zeros(len(micros), np.int64)
    days, rest = np.divmod(micros + offsets, _DAY)
    texts = []
    for day, time, offset in zip(text_of_days(days), rest.tolist(), offsets.tolist(), strict=True):
        seconds, fraction = divmod(time, _SECOND)
        shown = f"{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}.{fraction // 1000:03d}"
        texts.append(f"{day}T{shown}{_offset(offset // _SECOND) if zoned else ''}")
    return texts


def _offset(seconds: int) -> str:
    if not seconds:
        return "Z"
    size = abs(seconds)
    tail = f":{size % 60:02d}" if size % 60 else ""
    return f"{'-' if seconds < 0 else '+'}{size // 3600:02d}:{size // 60 % 60:02d}{tail}"


def _structs(values: pa.Array, clock: Clock) -> list[str | None]:
    fields = []
    for at, field in enumerate(values.type):
        start = f"{string_text(field.name)}:"
        texts = _texts(pc.struct_field(values, [at]), clock)
        fields.append([None if text is None else start + text for text in texts])
    there = valid_mask(values, len(values)).tolist()
    rows = zip(*fields, strict=True) if fields else ((),) * len(values)
    return [
        f"{{{','.join(text for text in row if text is not None)}}}" if is_there else None
        for row, is_there in zip(rows, there, strict=True)
    ]


def _lists(values: pa.Array, clock: Clock) -> list[str | None]:
    pieces = ["null" if text is None else text for text in _texts(values.flatten(), clock)]
    return _joined(pieces, list_offsets(values).tolist(), values, "[]")


def _maps(values: pa.Array, clock: Clock) -> list[str | None]:
    entries = entries_of(values)
    items = ["null" if text is None else text for text in _texts(entries.items, clock)]
    pieces = [f"{string_text(str(key))}:{item}" for key, item in zip(entries.keys.to_pylist(), items, strict=True)]
    return _joined(pieces, entries.offsets.tolist(), values, "{}")


def _joined(pieces: list[str], offsets: list[int], values: pa.Array, ends: str) -> list[str | None]:
    there = valid_mask(values, len(values)).tolist()
    return [
        f"{ends[0]}{','.join(pieces[offsets[row] : offsets[row + 1]])}{ends[1]}" if is_there else None
        for row, is_there in enumerate(there)
    ]


FUNCTIONS: dict[str, Builder] = {"from_json": from_json, "to_json": to_json}
