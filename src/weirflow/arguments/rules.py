"""What an annotation lets through: one function for each type, made once for each signature."""

from __future__ import annotations

import collections.abc
import functools
import inspect
import math
import numbers
import os
import types
import typing
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from weirflow.arguments.forms import AnySize, Form, Hint, Local, Location, Secret
from weirflow.arguments.in_errors import shown

if TYPE_CHECKING:
    Settle = Callable[[Any], Any]

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


def rule(annotation: Any) -> Rule | None:
    """The rule that an annotation states; None if anything may be given."""
    origin = typing.get_origin(annotation)
    if origin is typing.Annotated:
        return _formed(annotation.__origin__, annotation.__metadata__)
    if origin in _BY_ORIGIN:
        return _BY_ORIGIN[origin](typing.get_args(annotation))
    if isinstance(origin, type):
        return _container(origin, typing.get_args(annotation))
    return _plain(annotation)


def _plain(annotation: Any) -> Rule | None:
    if annotation is None:
        return _BY_TYPE[types.NoneType]
    if not isinstance(annotation, type):  # a type variable, or what only type checkers understand
        return None
    if annotation in _BY_TYPE:
        return _BY_TYPE[annotation]
    if annotation in (object, Any):
        return None
    return _instance(annotation)


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


def _any_int(value: Any) -> Any:
    if type(value) is int:
        return value
    if isinstance(value, bool) or not isinstance(value, numbers.Integral):
        raise Unfit("an int", value)
    return int(value)


def _int(value: Any) -> Any:
    value = _any_int(value)
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


_BY_TYPE: dict[type, Rule] = {
    types.NoneType: Rule("None", _none, (types.NoneType,)),
    str: Rule("a str", _text, (str,)),
    int: Rule("an int", _int, (int,)),
    float: Rule("a number", _number, (float, int)),
    bool: Rule("True or False", _bool, (bool,)),
    Path: Rule("a path", _path),
    os.PathLike: Rule("a path", _path),
}


def _formed(annotation: Any, forms: Iterable[Form]) -> Rule | None:
    """A type with what is said of it besides."""
    base = rule(annotation)
    forms = [one for one in forms if hasattr(one, "lacks")]
    if base is None:
        return None
    settle = _any_int if any(isinstance(one, AnySize) for one in forms) else base.settle
    for one in forms:
        if not isinstance(one, AnySize | Hint | Secret):  # those say nothing of values
            settle = _narrowed(settle, one.lacks)
        if isinstance(one, Local):
            settle = _then(settle, one.settled)
    secret = any(isinstance(one, Secret) for one in forms)
    hint = next((one.text for one in forms if isinstance(one, Hint)), None)
    return Rule(base.wanted, settle, base.types, secret or base.secret, hint or base.hint)


def _narrowed(settle: Settle, lacks: Callable[[Any], str | None]) -> Settle:
    def narrowed(value: Any) -> Any:
        value = settle(value)
        lacking = lacks(value)
        if lacking is not None:
            raise Unfit(lacking, value, of_type=True)
        return value

    return narrowed


def _then(settle: Settle, further: Settle) -> Settle:
    return lambda value: further(settle(value))


def _one_of(annotations: tuple[Any, ...]) -> Rule | None:
    options = [rule(annotation) for annotation in annotations]
    rules = [option for option in options if option is not None]
    if len(rules) < len(options):
        return None
    wanted = _alternatives(dict.fromkeys(part for one in rules for part in one.wanted.split(" or ")))
    by_type = {kind: one.settle for one in reversed(rules) for kind in one.types}

    def settle(value: Any) -> Any:
        known = by_type.get(type(value))
        if known is not None:
            return known(value)
        for one in rules:
            try:
                return one.settle(value)
            except Unfit as unfit:
                if unfit.of_type or unfit.where:
                    raise
        raise Unfit(wanted, value)

    hint = next((one.hint for one in rules if one.hint), None)
    return Rule(wanted, settle, tuple(by_type), any(one.secret for one in rules), hint)


def _bare(noun: str) -> str:
    return noun.removeprefix("a ").removeprefix("an ")


def _alternatives(options: Iterable[str]) -> str:
    *most, last = options
    return f"{', '.join(most)} or {last}" if most else last


def _literal(choices: tuple[Any, ...]) -> Rule:
    wanted = _alternatives(map(repr, choices))

    def settle(value: Any) -> Any:
        for choice in choices:
            if isinstance(value, type(choice)) and value == choice:
                return value
        raise Unfit(wanted, value, of_type=isinstance(value, str))

    return Rule(wanted, settle)


def _callable(signature: tuple[Any, ...]) -> Rule:
    """A function that can be called with as many arguments as it will be, and does its work then."""
    given = signature[0] if signature and isinstance(signature[0], list) else None
    wanted = "a function" if given is None else f"a function of {_number_of(len(given))}"

    def settle(value: Any) -> Any:
        if not callable(value):
            raise Unfit(wanted, value)
        if given is not None:
            if not _takes(value, len(given)):
                raise Unfit(wanted, value, of_type=True)
            if runs_later(value) or runs_later(inspect.getattr_static(type(value), "__call__", None)):
                raise Unfit(f"{wanted}, neither async nor a generator", value, of_type=True)
        return value

    return Rule(wanted, settle)


def runs_later(function: Any) -> bool:
    """Whether a call runs nothing of the function, and returns what would."""
    kinds = (inspect.iscoroutinefunction, inspect.isgeneratorfunction, inspect.isasyncgenfunction)
    return any(is_one(function) for is_one in kinds)


def _number_of(arguments: int) -> str:
    return {0: "no arguments", 1: "1 argument"}.get(arguments, f"{arguments} arguments")


def _takes(function: Callable[..., Any], arguments: int) -> bool:
    try:
        inspect.signature(function).bind(*[None] * arguments)
    except TypeError:
        return False
    except ValueError:  # a builtin that does not tell
        return True
    return True


def _class(base: tuple[Any, ...]) -> Rule:
    wanted = "a class" if not base or base[0] in (Any, object) else f"a subclass of {base[0].__name__}"

    def settle(value: Any) -> Any:
        if not isinstance(value, type) or (isinstance(base[0], type) and not issubclass(value, base[0])):
            raise Unfit(wanted, value)
        return value

    return Rule(wanted, settle)


def _container(origin: type, parts: tuple[Any, ...]) -> Rule | None:
    """A container, with the rule of its elements."""
    if origin is os.PathLike:
        return _BY_TYPE[os.PathLike]
    base = _instance(origin)
    elements = [rule(part) for part in parts if part is not ...]
    if issubclass(origin, tuple) and parts:
        return _tuple(elements, many=... in parts)
    if base is None or not any(elements):
        return base
    if issubclass(origin, collections.abc.Mapping) and len(elements) == 2:  # noqa: PLR2004 - keys and values
        return _mapping(base, *elements)
    if issubclass(origin, collections.abc.Collection) and elements[0] is not None:
        return _collection(base, elements[0])
    return base


def _collection(base: Rule, element: Rule) -> Rule:
    wanted = f"{base.wanted} of {_bare(element.wanted)}"

    def settle(value: Any) -> Any:
        base.settle(value)
        settled = [_settled(element, one, f"[{index}]") for index, one in enumerate(value)]
        return value if all(map(_same, settled, value)) else settled

    return Rule(wanted, settle)


def _tuple(elements: list[Rule | None], *, many: bool) -> Rule:
    texts = ["anything" if one is None else one.wanted for one in elements]
    wanted = f"a tuple of {_bare(texts[0])}" if many else f"a tuple of {len(elements)}: {', '.join(texts)}"

    def settle(value: Any) -> Any:
        if not isinstance(value, tuple):
            raise Unfit(wanted, value)
        if not many and len(value) != len(elements):
            raise Unfit(wanted, value, of_type=True)
        rules = elements * len(value) if many else elements
        pairs = enumerate(zip(rules, value, strict=False))
        return tuple(_settled(one, part, f"[{index}]") for index, (one, part) in pairs)

    return Rule(wanted, settle)


def _mapping(base: Rule, key: Rule | None, element: Rule | None) -> Rule:
    def settle(value: Any) -> Any:
        base.settle(value)
        settled = {
            _settled(key, name, "'s key"): _settled(element, one, f"[{shown(name)}]") for name, one in value.items()
        }
        is_same = all(map(_same, settled, value)) and all(map(_same, settled.values(), value.values()))
        return value if is_same else settled

    return Rule(base.wanted, settle, base.types)


def _settled(one: Rule | None, value: Any, where: str) -> Any:
    if one is None:
        return value
    try:
        return one.settle(value)
    except Unfit as unfit:
        raise Unfit(unfit.wanted, unfit.value, of_type=unfit.of_type, where=where + unfit.where) from None


def _same(one: Any, other: Any) -> bool:
    return one is other


@functools.cache
def _instance(kind: type) -> Rule | None:
    wanted = _WORDS.get(kind) or f"a {kind.__name__}"
    if getattr(kind, "_is_protocol", False) and kind.__module__ not in ("typing", "collections.abc"):
        return _protocol(kind, wanted)

    # Text is a sequence of its characters, and a mapping an iterable of its keys, which nobody means.
    of_elements = kind in (collections.abc.Sequence, collections.abc.Iterable, collections.abc.Collection)

    def settle(value: Any) -> Any:
        if not isinstance(value, kind) or (of_elements and isinstance(value, str | bytes | collections.abc.Mapping)):
            raise Unfit(wanted, value)
        return value

    exact = (dict,) if kind is collections.abc.Mapping else (kind,)
    return Rule(wanted, settle, exact)


_WORDS: dict[type, str] = {
    collections.abc.Mapping: "a mapping",
    collections.abc.Sequence: "a sequence",
    collections.abc.Iterable: "an iterable",
    collections.abc.Iterator: "an iterator",
    collections.abc.Collection: "a collection",
    dict: "a dict",
    list: "a list",
    tuple: "a tuple",
    bytes: "bytes",
}


def _protocol(kind: type, wanted: str) -> Rule:
    """What has the methods of a protocol, whether or not it says that it keeps to it."""
    methods = [
        name
        for name in dir(kind)
        if not name.startswith("_") and inspect.isfunction(inspect.getattr_static(kind, name))
    ]

    def settle(value: Any) -> Any:
        if isinstance(value, type) or not all(callable(getattr(type(value), name, None)) for name in methods):
            raise Unfit(wanted, value)
        return value

    return Rule(wanted, settle) if methods else Rule(wanted, lambda value: value)


_BY_ORIGIN: dict[Any, Callable[[tuple[Any, ...]], Rule | None]] = {
    typing.Union: _one_of,
    types.UnionType: _one_of,
    typing.Literal: _literal,
    collections.abc.Callable: _callable,
    type: _class,
}
