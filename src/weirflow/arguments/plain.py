"""Rules of plain values: text, numbers, truth and paths; and what a rule is."""

from __future__ import annotations

import math
import numbers
import os
import types
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from weirflow.arguments.forms import Location

Settle: TypeAlias = Callable[[Any], Any]

_INT64 = range(-(2**63), 2**63)


class Unfit(Exception):
    """A value is not what its annotation says.

    Attributes:
        wanted: what it must be, to be read after "it must be".
        of_type: whether at least its type is right.
        value: the value, or the element of it that is wrong.
        where: the place of that element in the value, such as ``[2]``.
    """

    def __init__(self, wanted: str, value: Any, *, of_type: bool = False, where: str = "") -> None:
        super().__init__(wanted)
        self.wanted = wanted
        self.of_type = of_type
        self.value = value
        self.where = where


@dataclass(frozen=True)
class Rule:
    """What may be given for an argument.

    Attributes:
        wanted: what it is, in words.
        settle: what is passed on for a value, mostly the value itself; raises ``Unfit``.
        types: values of exactly these types are for this rule, if it is one of several.
        secret: whether values are not to be shown.
        hint: what to do about a wrong one, if that is to be said.
    """

    wanted: str
    settle: Settle
    types: tuple[type, ...] = ()
    secret: bool = False
    hint: str | None = None


def _none(value: Any) -> None:
    if value is not None:
        raise Unfit("None", value)


def _text(value: Any) -> Any:
    if not isinstance(value, str):
        raise Unfit("a str", value)
    if type(value) is not str:
        value = str.__str__(value)
    if not value.isascii():
        try:
            value.encode()
        except UnicodeEncodeError:
            raise Unfit("text that can be written in UTF-8", value, of_type=True) from None
    return value


def any_int(value: Any) -> Any:
    """An int of any size."""
    if type(value) is int:
        return value
    if isinstance(value, bool) or not isinstance(value, numbers.Integral):
        raise Unfit("an int", value)
    return int(value)


def _int(value: Any) -> Any:
    value = any_int(value)
    if value not in _INT64:
        raise Unfit("an int of 64 bits", value, of_type=True)
    return value


def _number(value: Any) -> Any:
    if isinstance(value, bool) or not isinstance(value, int | float | numbers.Real):
        raise Unfit("a number", value)
    try:
        settled = value if isinstance(value, int) else float(value)
        finite = math.isfinite(settled)
    except OverflowError:
        finite = False
    if not finite:
        raise Unfit("a finite number", value, of_type=True)
    return settled


def _bool(value: Any) -> Any:
    if isinstance(value, bool):
        return value
    if type(value).__name__ in ("bool", "bool_") and type(value).__module__ == "numpy":
        return bool(value)
    raise Unfit("True or False", value)


def _path(value: Any) -> Any:
    if not isinstance(value, os.PathLike) or not isinstance(os.fspath(value), str):
        raise Unfit("a path", value)
    text = _text(os.fspath(value))
    lacking = Location().lacks(text)
    if lacking is not None:
        raise Unfit(lacking, value, of_type=True)
    return value if isinstance(value, Path) else Path(text)


BY_TYPE: dict[type, Rule] = {
    types.NoneType: Rule("None", _none, (types.NoneType,)),
    str: Rule("a str", _text, (str,)),
    int: Rule("an int", _int, (int,)),
    float: Rule("a number", _number, (float, int)),
    bool: Rule("True or False", _bool, (bool,)),
    Path: Rule("a path", _path),
    os.PathLike: Rule("a path", _path),
}
