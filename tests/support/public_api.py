"""Every public function, constructor and method, found by walking from what the packages export."""

from __future__ import annotations

import dataclasses
import importlib
import inspect
import sys
import typing
from enum import Enum
from typing import TYPE_CHECKING, Any

from weirflow.arguments import hints, rules_of
from weirflow.checkpoint.keyed_state.checkpoints import KeyedStateCheckpoints
from weirflow.checkpoint.keyed_state.savepoints import Savepoints
from weirflow.checkpoint.storage.local.storage import LocalStorage
from weirflow.checkpoint.storage.objects.storage import ObjectStoreStorage
from weirflow.ivm.sharded.flow import PartitionedFlow
from weirflow.testing.sequence import SequenceSource

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

PACKAGES = (
    "weirflow",
    "weirflow.checkpoint",
    "weirflow.metadata",
    "weirflow.process",
    "weirflow.process.joins",
    "weirflow.session",
    "weirflow.state",
    "weirflow.testing",
    "weirflow.vector",
)


IMPLEMENTATIONS = (KeyedStateCheckpoints, LocalStorage, ObjectStoreStorage, PartitionedFlow, Savepoints, SequenceSource)
"""What exported functions return under the name of a protocol, and what is imported from where it is."""


@dataclasses.dataclass(frozen=True)
class Call:
    """A function, a constructor (its name is that of the class) or a method."""

    id: str
    owner: type | None
    function: Callable[..., Any]

    @property
    def arguments(self) -> tuple[inspect.Parameter, ...]:
        """What can be given, but for the object itself."""
        found = list(inspect.signature(self.function).parameters.values())
        return tuple(found[1:] if self.owner is not None and not self._is_static else found)

    @property
    def _is_static(self) -> bool:
        return isinstance(inspect.getattr_static(self.owner, self.function.__name__, None), staticmethod)

    @property
    def is_checked(self) -> bool:
        return not self.arguments or rules_of(self.function) is not None


def public_calls() -> list[Call]:
    """All of them, by name. Methods that only others than users call are among them."""
    functions, classes = _exported()
    calls = [Call(name, None, function) for name, function in functions.items()]
    for owner in _reachable([*classes, *IMPLEMENTATIONS]):
        if not getattr(owner, "_is_protocol", False):  # what others implement
            calls += _of_class(owner)
    return sorted(calls, key=lambda call: call.id)


def _exported() -> tuple[dict[str, Any], list[type]]:
    functions, classes = {}, []
    for package in PACKAGES:
        module = importlib.import_module(package)
        for name in module.__all__:
            thing = getattr(module, name)
            if inspect.isclass(thing):
                classes.append(thing)
            elif inspect.isfunction(thing):
                functions[name] = thing
    return functions, classes


def _reachable(classes: list[type]) -> list[type]:
    """The classes, and those of what their public methods and properties return."""
    found: dict[type, None] = {}
    waiting = [*classes]
    while waiting:
        one = waiting.pop()
        if one in found or not _is_ours(one):
            continue
        found[one] = None
        for name in dir(one):
            if not name.startswith("_"):
                member = inspect.getattr_static(one, name)
                getter = member.fget if isinstance(member, property) else getattr(member, "__func__", member)
                if inspect.isfunction(getter):
                    waiting += _classes_in(_returned(getter))
    return list(found)


def _is_ours(one: type) -> bool:
    if not one.__module__.startswith("weirflow.") or issubclass(one, BaseException | Enum):
        return False
    # Pydantic checks what its own classes are given.
    return not hasattr(one, "model_fields")


def _returned(function: Callable[..., Any]) -> Any:
    function = inspect.unwrap(function)
    names = hints._Names(sys.modules[function.__module__], function.__globals__)
    try:
        return names.meaning(function.__annotations__.get("return"))
    except (NameError, AttributeError, ImportError, TypeError):
        return None


def _classes_in(annotation: Any) -> Iterator[type]:
    if inspect.isclass(annotation) and typing.get_origin(annotation) is None:
        yield annotation
    for part in typing.get_args(annotation):
        yield from _classes_in(part)


def _of_class(owner: type) -> Iterator[Call]:
    constructor = inspect.getattr_static(owner, "__init__")
    if inspect.isfunction(constructor) and not inspect.isabstract(owner):
        yield Call(owner.__name__, owner, constructor)
    for name in dir(owner):
        if not name.startswith("_"):
            member = inspect.getattr_static(owner, name)
            function = getattr(member, "__func__", member)
            if inspect.isfunction(function) and function.__module__.startswith("weirflow."):
                yield Call(f"{owner.__name__}.{name}", owner, function)
