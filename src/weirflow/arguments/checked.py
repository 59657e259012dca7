"""``checked``: a function or class whose arguments are looked at before it is called."""

from __future__ import annotations

import functools
import inspect
import types
from collections.abc import Callable
from typing import Any, NoReturn, TypeVar, cast

from weirflow.arguments.hints import parameter_types
from weirflow.arguments.in_errors import kind_of, shown
from weirflow.arguments.plain import Rule, Unfit
from weirflow.arguments.rules import rule
from weirflow.errors import ConfigError
from weirflow.stack import grows

Checked = TypeVar("Checked", bound="Callable[..., Any]")

_ROUTINES = (types.FunctionType, types.BuiltinFunctionType, types.MethodType)


def checked(thing: Checked) -> Checked:
    """Look at the arguments of a function before each call; of a class, at those of its constructor and public methods.

    Each argument must be what its annotation says, forms in ``Annotated`` included; otherwise the call raises
    ``ConfigError`` and has done nothing. A bool is not an int; an integer of NumPy is passed on as an int, text of a
    subclass of str as a str, whatever has a path as a ``Path``. Defaults are not looked at. Methods that a class
    inherits are as they are.

    >>> from weirflow.arguments import Count
    >>> @checked
    ... def forget(history: Count) -> None: ...
    >>> forget(-1)
    Traceback (most recent call last):
    weirflow.errors.ConfigError: [CONFIG_INVALID] forget(): history is -1; it must be at least 0.
    """
    if inspect.isclass(thing):
        for name, member in list(vars(thing).items()):
            if not name.startswith("_") or name == "__init__":
                _check_member(thing, name, member)
        return thing
    return cast("Checked", _checked_function(thing))


def rules_of(function: Callable[..., Any]) -> ParameterRules | None:
    """What a function lets through; None if it is not checked."""
    read: Callable[[], ParameterRules] | None = getattr(function, "__argument_rules__", None)
    return None if read is None else read()


def require(annotation: Any, value: Any) -> Any:
    """What is passed on for a value that an annotation lets through; ``ValueError`` says what another must be."""
    known = rule(annotation)
    if known is None:
        return value
    try:
        return known.settle(value)
    except (MemoryError, RecursionError):
        raise
    except Exception as wrong:  # noqa: BLE001 - also what a value raises when it is looked at
        raise ValueError(f"it must be {wrong.wanted if isinstance(wrong, Unfit) else known.wanted}") from None


class ParameterRules:
    """The rules of a function's parameters.

    Attributes:
        function: the function.
        positional: for each parameter that can be given by position, its name and rule.
        rest: the name and rule of further positional arguments.
        named: by its name, the rule of a parameter.
        others: the rule of other named arguments.
        unknown: parameters whose annotation cannot be read here; anything may be given for them.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function
        found, self.unknown = parameter_types(function)
        rules = {name: rule(kind) for name, kind in found.items()}
        self.positional: list[tuple[str, Rule | None]] = []
        self.rest: tuple[str, Rule] | None = None
        self.named: dict[str, Rule] = {}
        self.others: Rule | None = None
        for name, parameter in inspect.signature(function).parameters.items():
            known = rules.get(name)
            if parameter.kind is parameter.VAR_POSITIONAL:
                self.rest = None if known is None else (name, known)
            elif parameter.kind is parameter.VAR_KEYWORD:
                self.others = known
            else:
                if parameter.kind is not parameter.KEYWORD_ONLY:
                    self.positional.append((name, known))
                if known is not None and parameter.kind is not parameter.POSITIONAL_ONLY:
                    self.named[name] = known

    def settle(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
        """The positional arguments to pass on; those in ``kwargs`` are settled in place."""
        changed: list[Any] | None = None
        index = 0
        for (name, known), value in zip(self.positional, args, strict=False):
            if known is not None:
                try:
                    settled = known.settle(value)
                except Exception as wrong:  # noqa: BLE001 - also what a value raises when it is looked at
                    self._refuse(name, known, value, wrong, args)
                if settled is not value:
                    changed = changed or list(args)
                    changed[index] = settled
            index += 1
        if self.rest is not None and index < len(args):
            name, known = self.rest
            further = [self._settled(name, known, value, args) for value in args[index:]]
            changed = [*(changed or args)[:index], *further]
        for name, value in kwargs.items():
            known = self.named.get(name, self.others)
            if known is not None:
                try:
                    kwargs[name] = known.settle(value)
                except Exception as wrong:  # noqa: BLE001 - also what a value raises when it is looked at
                    self._refuse(name, known, value, wrong, args)
        return args if changed is None else tuple(changed)

    def _settled(self, name: str, known: Rule, value: Any, args: tuple[Any, ...]) -> Any:
        try:
            return known.settle(value)
        except Exception as wrong:  # noqa: BLE001 - also what a value raises when it is looked at
            self._refuse(name, known, value, wrong, args)

    def _refuse(self, name: str, known: Rule, value: Any, wrong: Exception, args: tuple[Any, ...]) -> NoReturn:
        if isinstance(wrong, MemoryError | RecursionError):  # not the value's fault
            raise wrong
        unfit = wrong if isinstance(wrong, Unfit) else Unfit(known.wanted, value)
        given = _said(unfit, secret=known.secret)
        message = f"{self._called(args)}: {name}{unfit.where} is {given}; it must be {unfit.wanted}."
        raise ConfigError(message, hint=known.hint) from None

    def _called(self, args: tuple[Any, ...]) -> str:
        """How the user calls the function: methods by the object's own class, whichever class defines them."""
        own = self.function.__name__
        method = bool(self.positional) and self.positional[0][0] in ("self", "cls") and bool(args)
        if not method:
            return f"{own}()"
        owner = args[0] if issubclass(type(args[0]), type) else type(args[0])
        return f"{owner.__name__}()" if own == "__init__" else f"{owner.__name__}.{own}()"


def _said(unfit: Unfit, *, secret: bool) -> str:
    value = unfit.value
    if value is None:
        return "None"
    if issubclass(type(value), type):
        return f"the class {value.__name__}"
    if issubclass(type(value), _ROUTINES):
        return f"the function {value.__name__}"
    kind = kind_of(value)
    if secret:
        return kind if not unfit.of_type else "not usable"
    text = shown(value)
    return text if unfit.of_type or text == kind else f"{kind} ({text})"


@grows
def _rules_of(function: Callable[..., Any]) -> ParameterRules:
    """What the signature says, however deep the first caller is: types that it names may have to be imported."""
    return ParameterRules(function)


def _checked_function(function: Callable[..., Any]) -> Callable[..., Any]:
    rules: ParameterRules | None = None

    def read() -> ParameterRules:
        nonlocal rules
        if rules is None:
            rules = _rules_of(function)
        return rules

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        return function(*(rules or read()).settle(args, kwargs), **kwargs)

    call.__argument_rules__ = read  # type: ignore[attr-defined]  # how rules_of finds them
    return call


def _check_member(owner: type, name: str, member: Any) -> None:
    if isinstance(member, classmethod | staticmethod):
        if not hasattr(member.__func__, "__argument_rules__"):
            setattr(owner, name, type(member)(_checked_function(member.__func__)))
    elif inspect.isfunction(member) and not hasattr(member, "__argument_rules__"):
        setattr(owner, name, _checked_function(member))
