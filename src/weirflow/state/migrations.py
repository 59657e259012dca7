"""Steps that bring stored values from one version of their slot to a later one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import msgspec

from weirflow.arguments import Name, Positive, checked, shown
from weirflow.errors import ConfigError, MigrationMissing, StateDamaged

Function = TypeVar("Function", bound=Callable[[Any], Any])

_encode = msgspec.msgpack.Encoder().encode


@dataclass(frozen=True)
class Step:
    """A function from the values of one version to those of a later one, and the type that it reads."""

    slot: str
    from_version: int
    to_version: int
    function: Callable[[Any], Any]
    reads: Any = Any


@checked
class Migrations:
    """A set of steps, at most one from each version of each slot."""

    def __init__(self) -> None:
        self._steps: dict[tuple[str, int], Step] = {}

    def add(self, step: Step) -> None:
        """Add a step.

        Raises:
            ConfigError: it does not lead to a later version, reads what is not a type, or begins where another does.
        """
        if not 1 <= step.from_version < step.to_version:
            raise ConfigError(
                f"A migration of {step.slot!r} cannot lead from version {step.from_version} to {step.to_version}.",
                hint="it leads to a later version; the first is 1",
            )
        _require_type(step.reads)
        known = self._steps.setdefault((step.slot, step.from_version), step)
        if known is not step:
            raise ConfigError(
                f"{step.slot!r} has a migration from version {step.from_version} already, to {known.to_version}.",
                hint="register one step for each version",
            )

    def path(self, slot: Name, version: Positive, wanted: Positive) -> list[Step]:
        """The steps from one version to another.

        Raises:
            MigrationMissing: there is a gap, or the wanted version is older.
        """
        steps = []
        at = version
        while at != wanted:
            step = self._steps.get((slot, at))
            if step is None or step.to_version > wanted:
                raise _missing(slot, at, wanted)
            steps.append(step)
            at = step.to_version
        return steps

    def migrate(self, slot: Name, version: Positive, wanted: Positive, body: bytes) -> bytes:
        """The MessagePack of a value, converted from one version to another.

        Raises:
            MigrationMissing: no steps lead there.
            StateDamaged: a step cannot read the value, or what it returns cannot be stored.
        """
        for step in self.path(slot, version, wanted):
            try:
                old = msgspec.msgpack.decode(body, type=step.reads)
            except msgspec.MsgspecError as error:
                raise _unreadable(step, f"reads another type than is stored: {error}") from error
            new = step.function(old)
            try:
                body = _encode(new)
            except (TypeError, ValueError, OverflowError) as error:
                raise _unreadable(step, f"returns what cannot be stored: {error}") from error
        return body


MIGRATIONS = Migrations()
"""The steps of this process, which ``state_migration`` adds to."""


@checked
def state_migration(
    slot: Name, *, from_version: Positive, to_version: Positive, reads: Any = Any, migrations: Migrations = MIGRATIONS
) -> Callable[[Function], Function]:
    """Register a function as the step between two versions of a slot's values.

    It is called with each stored value of the older version when that value is read, and returns the later one. In list
    and map state a value is one element or entry. What it raises passes through to the reader.

    >>> own = Migrations()
    >>> @state_migration("total", from_version=1, to_version=2, migrations=own)
    ... def with_currency(amount: int) -> dict:
    ...     return {"amount": amount, "currency": "EUR"}

    Args:
        slot: whose values.
        from_version: of the values it takes.
        to_version: of those it returns.
        reads: the type it takes; without one, plain dicts, lists and scalars.
        migrations: where it is registered.

    Raises:
        ConfigError: it leads nowhere, or another step begins with the same version.
    """

    def register(function: Function) -> Function:
        register_state_migration(slot, from_version, to_version, function, reads=reads, migrations=migrations)
        return function

    return register


@checked
def register_state_migration(
    slot: Name,
    from_version: Positive,
    to_version: Positive,
    function: Callable[[Any], Any],
    *,
    reads: Any = Any,
    migrations: Migrations = MIGRATIONS,
) -> None:
    """Like ``state_migration``, for an existing function."""
    migrations.add(Step(slot, from_version, to_version, function, reads))


@checked
def apply_state_migration(
    slot: Name, from_version: Positive, to_version: Positive, value: Any, *, migrations: Migrations = MIGRATIONS
) -> Any:
    """Convert a value of one version to another version: dicts, lists and scalars, as they are stored.

    >>> own = Migrations()
    >>> register_state_migration("total", 1, 2, lambda amount: {"amount": amount}, migrations=own)
    >>> apply_state_migration("total", 1, 2, 30, migrations=own)
    {'amount': 30}

    Raises:
        ConfigError: the value cannot be stored.
        MigrationMissing: no steps lead there.
        StateDamaged: a step cannot read the value, or what it returns cannot be stored.
    """
    try:
        body = _encode(value)
    except (TypeError, ValueError, OverflowError) as error:
        raise ConfigError(f"The value {shown(value)} cannot be stored: {error}") from None
    return msgspec.msgpack.decode(migrations.migrate(slot, from_version, to_version, body))


def _require_type(reads: Any) -> None:
    try:
        msgspec.msgpack.Decoder(reads)
    except (TypeError, ValueError, NameError) as error:
        raise ConfigError(f"reads is {shown(reads)}; it must be a type of values: {error}") from None


def _missing(slot: str, at: int, wanted: int) -> MigrationMissing:
    if at > wanted:
        return MigrationMissing(
            f"A value of {slot!r} is of version {at}, and the slot is declared with version {wanted}.",
            slot=slot,
            from_version=at,
            to_version=wanted,
            hint="run the program that wrote it, or a later one",
        )
    return MigrationMissing(
        f"A value of {slot!r} is of version {at}, and no migration leads from there to version {wanted}.",
        slot=slot,
        from_version=at,
        to_version=wanted,
        hint=f'register one: @state_migration("{slot}", from_version={at}, to_version={at + 1})',
    )


def _unreadable(step: Step, why: str) -> StateDamaged:
    return StateDamaged(f"The migration of {step.slot!r} from {step.from_version} to {step.to_version} {why}.")
