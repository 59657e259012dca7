"""What an annotation lets through: one function for each type, made once for each signature."""

from __future__ import annotations

import collections.abc
import functools
import inspect
import operator
import os
import types
import typing
from collections.abc import Callable, Iterable
from typing import Any

from weirflow.arguments.forms import AnySize, Form, Hint, Local, Secret
from weirflow.arguments.in_errors import shown
from weirflow.arguments.plain import BY_TYPE, Rule, Settle, Unfit, any_int


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
        return BY_TYPE[types.NoneType]
    if not isinstance(annotation, type):  # a type variable, or what only type checkers understand
        return None
    if annotation in BY_TYPE:
        return BY_TYPE[annotation]
    if annotation in (object, Any):
        return None
    return _instance(annotation)


def _formed(annotation: Any, forms: Iterable[Form]) -> Rule | None:
    """A type with what is said of it besides."""
    base = rule(annotation)
    forms = [one for one in forms if hasattr(one, "lacks")]
    if base is None:
        return None
    settle = any_int if any(isinstance(one, AnySize) for one in forms) else base.settle
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
        return BY_TYPE[os.PathLike]
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
        return value if all(map(operator.is_, settled, value)) else settled

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
        is_same = all(map(operator.is_, settled, value)) and all(map(operator.is_, settled.values(), value.values()))
        return value if is_same else settled

    return Rule(base.wanted, settle, base.types)


def _settled(one: Rule | None, value: Any, where: str) -> Any:
    if one is None:
        return value
    try:
        return one.settle(value)
    except Unfit as unfit:
        raise Unfit(unfit.wanted, unfit.value, of_type=unfit.of_type, where=where + unfit.where) from None


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
