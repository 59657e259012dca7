"""Calls public functions with hostile values for each argument, everything else valid, and tells what went wrong."""

from __future__ import annotations

import contextlib
import inspect
import itertools
import signal
import time
from collections.abc import Generator, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from weirflow import WeirflowError
from weirflow.arguments import rules_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from support.public_api import Call

SECONDS = 20.0

ANYTHING = "anything"
"""Stands for all values."""

OPTION = "option"
"""What further named arguments are called."""

MEANT_BY_FORM: dict[str, dict[str, str]] = {
    "None": {"None": "as the signature says, nothing is given"},
    "bool": {"True": "yes"},
    "Count": {"0": "none"},
    "Seconds": {"0": "not at all", "1.5": "a second and a half"},
    "Lifetime": {"1.5": "a second and a half"},
    "Name": {"a word": "a name", "a digit": "a name"},
    "Token": {"a word": "a token", "a digit": "a token"},
    "Place": {"a word": "a folder in this one", "a digit": "a folder in this one", "a file": "a path"},
    "Folder": {"a word": "a folder in this one", "a digit": "a folder in this one"},
    "Uri": {"a word": "a folder in this one", "a digit": "a folder in this one", "a file": "a path"},
}
"""What values mean for arguments of a form: the forms are those in signatures."""


@dataclass(frozen=True)
class Situation:
    """How calls of a class are tried.

    Attributes:
        make: an object to call methods of.
        require_usable: raises unless the object still does what it should.
    """

    make: Callable[[], Any]
    require_usable: Callable[[Any], None] = lambda _: None


@dataclass
class Catalogue:
    """Tries calls, and notes what is wrong.

    Attributes:
        values: the hostile ones, by what they are.
        situations: by the name of a class, how its methods are called.
        valid: makes valid values, by ``call.argument`` or by the argument's name.
        meant: by ``call.argument`` or the argument's name, what values mean that it takes.
        alongside: by the call, arguments with defaults that it needs to do something.
        options: by the call, one of the further named arguments that it takes.
        refused: calls that are refused, typed, whatever they are given in their situation, and why.
        runs_meant: whether calls are made whose value has a meaning.
        controls: whether it is looked at what calls with valid arguments come to.
        by_call: whether an object must be usable after all bad values of a call, and not after those of each argument.
        rows: how many calls were made.
        used: the meanings that calls had.
        problems: what went wrong.
    """

    values: Mapping[str, Any]
    situations: Mapping[str, Situation]
    valid: Mapping[str, Callable[[], Any]]
    meant: Mapping[str, Mapping[str, str]]
    alongside: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    options: Mapping[str, str] = field(default_factory=dict)
    refused: Mapping[str, str] = field(default_factory=dict)
    runs_meant: bool = True
    controls: bool = True
    by_call: bool = False
    rows: int = 0
    used: set[tuple[str, str]] = field(default_factory=set)
    problems: list[str] = field(default_factory=list)

    def try_call(self, call: Call) -> None:
        """Try each argument of a call with each value."""
        if self.controls:
            self._try_valid(call)
        situation = self._situation(call)
        target = situation.make()
        for argument in call.arguments:
            target = self._try_argument(call, argument, situation, target)
            if not self.by_call:
                self._require_usable(situation, target, f"{call.id}({argument.name})")
                target = situation.make()
        if self.by_call:
            self._require_usable(situation, target, call.id)

    def outcome(self, call: Call, target: Any) -> str:
        """What a call with valid arguments comes to: ``typed``, ``untyped`` with the error, ``slow`` or ``done``."""
        named = {one.name: self._valid(call, one.name) for one in call.arguments if self._is_given(call, one)}
        began = time.perf_counter()
        try:
            with _deadline(2 * SECONDS):
                _finish(self._callable(call, target)(**named))
        except WeirflowError:
            outcome = "typed"
        except BaseException as error:  # noqa: BLE001 - that there is none of these is what is shown
            outcome = f"untyped {type(error).__name__}: {error}"
        else:
            outcome = "done"
        return outcome if time.perf_counter() - began < SECONDS else f"slow, {outcome}"

    def unused(self) -> list[str]:
        """Meanings that are written down and that no call had."""
        return [f"{key}={kind}" for key, kinds in self.meant.items() for kind in kinds if (key, kind) not in self.used]

    def _try_valid(self, call: Call) -> None:
        """Were a call refused whatever it is given, its rows would show nothing."""
        outcome = self.outcome(call, self._situation(call).make())
        if outcome != ("typed" if call.id in self.refused else "done"):
            self.problems.append(f"{call.id}() with valid arguments: {outcome}")

    def _try_argument(self, call: Call, argument: inspect.Parameter, situation: Situation, target: Any) -> Any:
        """Values without a meaning are for one object, which is returned; those with one each for another."""
        for kind, value in self.values.items():
            meant = self._is_meant(call, argument, kind)
            if meant and not self.runs_meant:
                continue
            self.rows += 1
            own = situation.make() if meant else target
            refused = self._try_value(call, own, argument, kind, value)
            if not meant and not refused:
                self.problems.append(f"{call.id}({argument.name}={kind}): taken")
                target = situation.make()
            if meant and refused:
                self._require_usable(situation, own, f"{call.id}({argument.name}={kind})")
        return target

    def _require_usable(self, situation: Situation, target: Any, where: str) -> None:
        try:
            with _deadline(2 * SECONDS):
                situation.require_usable(target)
        except BaseException as error:  # noqa: BLE001 - that there is none of these is what is shown
            self.problems.append(f"{where}: unusable afterwards: {type(error).__name__}: {error}")

    def _try_value(self, call: Call, target: Any, argument: inspect.Parameter, kind: str, value: Any) -> bool:
        """Whether the call was refused, or failed in a way that is noted."""
        where = f"{call.id}({argument.name}={kind})"
        began = time.perf_counter()
        try:
            with _deadline(2 * SECONDS):
                _finish(self._result(call, target, argument, value))
        except WeirflowError as error:
            self._look_at(call, argument, error, where)
        except BaseException as error:  # noqa: BLE001 - that there is none of these is what is shown
            self.problems.append(f"{where}: untyped {type(error).__name__}: {str(error)[:150]}")
        else:
            self._note_meaning(call, argument, kind)
            return False
        finally:
            if time.perf_counter() - began > SECONDS:
                self.problems.append(f"{where}: took {time.perf_counter() - began:.1f} s")
        return True

    def _look_at(self, call: Call, argument: inspect.Parameter, error: WeirflowError, where: str) -> None:
        name = self._name(call, argument)
        if f"{call.id}(): " in error.message and f" {name}" not in error.message:
            self.problems.append(f"{where}: the error does not name the argument: {error.message[:150]}")
        if len(str(error)) > 50_000:
            self.problems.append(f"{where}: an error of {len(str(error))} characters")

    def _is_meant(self, call: Call, argument: inspect.Parameter, kind: str) -> bool:
        by_form = [MEANT_BY_FORM.get(form, {}) for form in str(argument.annotation).split(" | ")]
        return any(kind in one for one in by_form) or bool(self._meanings(call, argument, kind))

    def _meanings(self, call: Call, argument: inspect.Parameter, kind: str) -> list[tuple[str, str]]:
        """Where it is written what a value means for an argument."""
        keys = (f"{call.id}.{argument.name}", argument.name)
        return [(key, one) for key in keys for one in (kind, ANYTHING) if one in self.meant.get(key, {})]

    def _note_meaning(self, call: Call, argument: inspect.Parameter, kind: str) -> None:
        self.used.update(self._meanings(call, argument, kind)[:1])

    def _is_given(self, call: Call, one: inspect.Parameter) -> bool:
        """Whether an argument is always given: what must be, and without which the call is refused."""
        if one.kind in (one.VAR_POSITIONAL, one.VAR_KEYWORD):
            return False
        return one.default is one.empty or one.name in self.alongside.get(call.id, ())

    def _name(self, call: Call, argument: inspect.Parameter) -> str:
        return self.options.get(call.id, OPTION) if argument.kind is argument.VAR_KEYWORD else argument.name

    def _situation(self, call: Call) -> Situation:
        if call.owner is None or call.id == call.owner.__name__:
            return Situation(lambda: None)
        member = inspect.getattr_static(call.owner, call.id.rpartition(".")[2])
        if isinstance(member, classmethod | staticmethod):
            return Situation(lambda: call.owner)
        return self.situations[call.owner.__name__]

    def _result(self, call: Call, target: Any, argument: inspect.Parameter, value: Any) -> Any:
        named: dict[str, Any] = {}
        further: list[Any] = []
        for other in call.arguments:
            if other.name == argument.name:
                if other.kind is other.VAR_POSITIONAL:
                    further.append(value)
                else:
                    named[self._name(call, argument)] = value
            elif self._is_given(call, other):
                named[other.name] = self._valid(call, other.name)
        function = self._callable(call, target)
        if further:
            first = [named.pop(other.name) for other in call.arguments if other.name in named]
            return function(*first, *further)
        return function(**named)

    def _valid(self, call: Call, name: str) -> Any:
        for key in (f"{call.id}.{name}", name):
            if key in self.valid:
                return self.valid[key]()
        raise KeyError(f"what is a valid {name} of {call.id}?")

    def _callable(self, call: Call, target: Any) -> Callable[..., Any]:
        if call.owner is None:
            return call.function
        if call.id == call.owner.__name__:
            return call.owner
        return getattr(target, call.id.rpartition(".")[2])


def refused_by_form(call: Call, values: Mapping[str, Any]) -> tuple[int, list[str]]:
    """Of a call whose object is hard to come by: what its signature refuses, it refuses before it touches the object.

    Returns how many rows that are, and what went wrong.
    """
    problems = []
    rules = rules_of(call.function)
    assert rules is not None, call.id
    rows = 0
    for name, rule in rules.named.items():
        for kind, value in values.items():
            try:
                rule.settle(value)
            except Exception:  # noqa: BLE001 - the values that are looked for
                rows += 1
                try:
                    call.function(object.__new__(call.owner), **{name: value})
                except WeirflowError:
                    continue
                except BaseException as error:  # noqa: BLE001 - that there is none of these is what is shown
                    problems.append(f"{call.id}({name}={kind}): untyped {type(error).__name__}: {error}")
    return rows, problems


def _finish(result: Any) -> None:
    """Let go of what is held, or read what is read late."""
    for part in result if isinstance(result, tuple) else ():
        _finish(part)
    for ending in ("stop", "release", "leave", "close"):
        if not isinstance(result, Generator) and callable(getattr(type(result), ending, None)):
            getattr(result, ending)()
            return
    if isinstance(result, Iterator):
        for _ in itertools.islice(result, 10):
            pass


@contextlib.contextmanager
def _deadline(seconds: float) -> Iterator[None]:
    def ring(*_: object) -> None:
        raise TimeoutError(f"nothing came back within {seconds} s")

    before = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
