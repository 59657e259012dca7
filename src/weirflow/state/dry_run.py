"""``dry_run``: what migrations would do to stored state, without doing it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from weirflow.arguments import checked
from weirflow.errors import MigrationMissing, StateDamaged
from weirflow.state.catalogue import SlotInfo, read_slots
from weirflow.state.encoding.layout import CATALOGUE, slot_of
from weirflow.state.encoding.values import STAMP, read_varint
from weirflow.state.migrations import MIGRATIONS, Migrations

if TYPE_CHECKING:
    from weirflow.state.backends.contract import StateReader
    from weirflow.state.descriptors import StateDescriptor


@dataclass(frozen=True)
class MigrationReport:
    """A report about the values of one version in one slot.

    Attributes:
        operator: the slot's operator.
        slot: its name.
        version: of the values.
        values: how many there are; in list and map state, elements and entries.
        size: their size in bytes, including keys.
        steps: the versions that they would go through, beginning with their own; only their own if nothing would
            change.
        missing: the versions between which a step is missing, or None.
    """

    operator: str
    slot: str
    version: int
    values: int
    size: int
    steps: tuple[int, ...]
    missing: tuple[int, int] | None = None


@checked
def dry_run(
    state: StateReader,
    descriptors: Mapping[str, Iterable[StateDescriptor]],
    *,
    migrations: Migrations = MIGRATIONS,
) -> list[MigrationReport]:
    """Report what reading all state with these descriptors would migrate. It reads everything and changes nothing.

    Args:
        state: a backend or a snapshot.
        descriptors: for each operator, the descriptors with which its slots would be read.
        migrations: the migration steps to use.
    """
    reports = []
    for operator, slots in descriptors.items():
        found = stored_versions(state, operator)
        for wanted in slots:
            for (slot, version), (values, size) in found.items():
                if slot.name == wanted.name:
                    steps, missing = _way(migrations, slot.name, version, wanted.version)
                    reports.append(MigrationReport(operator, slot.name, version, values, size, steps, missing))
    return reports


def stored_versions(state: StateReader, operator: str) -> dict[tuple[SlotInfo, int], tuple[int, int]]:
    """For each slot of an operator and version of values, their number and bytes, in order; it reads everything.

    Raises:
        StateDamaged: something is stored that belongs to no slot.
    """
    slots = {name.encode(): slot for name, slot in read_slots(state, operator).items()}
    values: Counter[tuple[SlotInfo, int]] = Counter()
    size: Counter[tuple[SlotInfo, int]] = Counter()
    for key, data in state.scan(operator, b"", CATALOGUE):
        slot = slots.get(slot_of(key)[1:])
        if slot is None:
            raise StateDamaged(f"{operator!r} has state in a slot that its catalogue does not know.")
        which = slot, _version(slot, data)
        values[which] += 1
        size[which] += len(key) + len(data)
    in_order = sorted(values, key=lambda which: (which[0].name, which[1]))
    return {which: (values[which], size[which]) for which in in_order}


def _version(slot: SlotInfo, data: bytes) -> int:
    try:
        return read_varint(data, 0 if slot.expires is None else STAMP)[0]
    except IndexError:
        raise StateDamaged(f"A value of {slot.name!r} ends before its version.") from None


def _way(
    migrations: Migrations, slot: str, version: int, wanted: int
) -> tuple[tuple[int, ...], tuple[int, int] | None]:
    try:
        steps = migrations.path(slot, version, wanted)
    except MigrationMissing as error:
        return (version,), (error.from_version, error.to_version)
    return (version, *(step.to_version for step in steps)), None
