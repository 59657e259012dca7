"""``schema_of_json``: the type that Spark infers of a JSON text, which is a constant."""

from __future__ import annotations

import re
from dataclasses import dataclass
from decimal import Decimal as Number
from typing import TYPE_CHECKING, Any, TypeAlias

import pyarrow as pa

from weirflow.ivm.kernel.expressions.json.reader import OF_RECORDS, Decimal, Fields, Malformed, Whole
from weirflow.stack import grows

if TYPE_CHECKING:
    from weirflow.ivm.kernel.expressions.signature import Builder, CallSignature, Kernel

_MOST_DIGITS = 38
_LONG = 1 << 63
_LONG_DIGITS = 20
_PLAIN_NAME = re.compile("[A-Za-z_][A-Za-z0-9_]*")


@dataclass(frozen=True)
class _Struct:
    fields: tuple[tuple[str, _Type], ...]


@dataclass(frozen=True)
class _Array:
    element: _Type


@dataclass(frozen=True)
class _Decimal:
    precision: int
    scale: int


_Type: TypeAlias = "str | _Struct | _Array | _Decimal"
"""A type that is inferred; those without parts by their names, and of NULLs alone that of VOID."""
_VOID, _LONGS, _DOUBLE, _STRING, _BOOLEAN = "VOID", "BIGINT", "DOUBLE", "STRING", "BOOLEAN"


def schema_of_json(signature: CallSignature) -> Kernel | None:
    """The type of a constant text; of what is no JSON, Spark says it."""
    constant = signature.constants[0]
    text = None if constant is None else constant.as_py()
    if text is None:
        return None
    try:
        kind = _inferred(OF_RECORDS(text))
    except Malformed:
        return None
    found = pa.scalar(_text(_kept(kind) or _without_parts(kind)), pa.string())
    return lambda _: found


@grows
def _inferred(value: Any) -> _Type:  # noqa: PLR0911 - one for each kind of value
    if value is None or (type(value) is str and not value):
        return _VOID
    if isinstance(value, bool):
        return _BOOLEAN
    if isinstance(value, Whole):
        return _LONGS if -_LONG <= int(value) < _LONG else _of_digits(value)
    if isinstance(value, Decimal | float):
        return _DOUBLE
    if isinstance(value, str):
        return _STRING
    if isinstance(value, Fields):
        return _Struct(
            tuple(sorted(((name, _inferred(one)) for name, one in value), key=lambda field: _units(field[0])))
        )
    element: _Type = _VOID
    for one in value:
        element = _common(element, _inferred(one))
    return _Array(element)


def _units(name: str) -> bytes:
    """What Java sorts texts by."""
    return name.encode("utf-16-be", "surrogatepass")


def _of_digits(text: str) -> _Type:
    digits = len(Number(text).as_tuple().digits)
    return _Decimal(digits, 0) if digits <= _MOST_DIGITS else _DOUBLE


@grows
def _common(left: _Type, right: _Type) -> _Type:  # noqa: PLR0911 - one for each pair of types
    """The type that has a place for values of both."""
    if right in (left, _VOID):
        return left
    if left == _VOID:
        return right
    if isinstance(left, _Struct) and isinstance(right, _Struct):
        return _merged(left, right)
    if isinstance(left, _Array) and isinstance(right, _Array):
        return _Array(_common(left.element, right.element))
    if {left, right} <= {_LONGS, _DOUBLE} or (_DOUBLE in (left, right) and _is_decimal(left, right)):
        return _DOUBLE
    if _is_decimal(left, right):
        return _wider(*(one if isinstance(one, _Decimal) else _Decimal(_LONG_DIGITS, 0) for one in (left, right)))
    return _STRING


def _is_decimal(left: _Type, right: _Type) -> bool:
    """Whether both are numbers, and one of them a decimal."""
    kinds = [isinstance(one, _Decimal) for one in (left, right)]
    return any(kinds) and all(kind or one in (_LONGS, _DOUBLE) for kind, one in zip(kinds, (left, right), strict=True))


def _wider(left: _Decimal, right: _Decimal) -> _Type:
    scale = max(left.scale, right.scale)
    whole = max(left.precision - left.scale, right.precision - right.scale)
    return _DOUBLE if whole + scale > _MOST_DIGITS else _Decimal(whole + scale, scale)


def _merged(left: _Struct, right: _Struct) -> _Struct:
    """The fields of both, by name."""
    found: dict[str, _Type] = {}
    for name, kind in (*left.fields, *right.fields):
        found[name] = _common(found[name], kind) if name in found else kind
    return _Struct(tuple(sorted(found.items(), key=lambda field: _units(field[0]))))


@grows
def _kept(kind: _Type) -> _Type | None:
    """A type without structs that have no fields, and texts where nothing is known; None if nothing is left."""
    if kind == _VOID:
        return _STRING
    if isinstance(kind, _Array):
        element = _kept(kind.element)
        return None if element is None else _Array(element)
    if isinstance(kind, _Struct):
        fields = [(name, found) for name, one in kind.fields if name and (found := _kept(one)) is not None]
        return _Struct(tuple(fields)) if fields else None
    return kind


def _without_parts(kind: _Type) -> _Type:
    """What a type is taken for that has nothing left."""
    if isinstance(kind, _Struct):
        return _Struct(())
    if isinstance(kind, _Array) and isinstance(kind.element, _Struct):
        return _Array(_Struct(()))
    return _STRING


@grows
def _text(kind: _Type) -> str:
    if isinstance(kind, _Array):
        return f"ARRAY<{_text(kind.element)}>"
    if isinstance(kind, _Struct):
        return f"STRUCT<{', '.join(f'{_name(name)}: {_text(one)}' for name, one in kind.fields)}>"
    return f"DECIMAL({kind.precision},{kind.scale})" if isinstance(kind, _Decimal) else kind


def _name(name: str) -> str:
    return name if _PLAIN_NAME.fullmatch(name) else f"`{name.replace('`', '``')}`"


FUNCTIONS: dict[str, Builder] = {"schema_of_json": schema_of_json}
