"""What a backend knows about its slots, kept beside their state: enough to read it without who wrote it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import msgspec

from weirflow.errors import StateDamaged, StateMismatch
from weirflow.state.descriptors import TimeKind  # noqa: TC001 - msgspec reads it
from weirflow.state.encoding.layout import CATALOGUE, END, slot_bytes

if TYPE_CHECKING:
    from weirflow.state.backends.contract import StateReader


class SlotInfo(msgspec.Struct, frozen=True):
    """A slot as it is stored.

    Attributes:
        name: of the slot.
        kind: of the state: value, list, map, reducing, aggregating or broadcast.
        key: the type of its keys, as text.
        value: the type of its values, as text.
        version: of the values that are written; older ones may still be there.
        groups: the number of key groups.
        expires: by which time, or None; whether values begin with a stamp.
    """

    name: str
    kind: str
    key: str
    value: str
    version: int
    groups: int
    expires: TimeKind | None = None

    def require_same_form(self, stored: SlotInfo, operator: str) -> None:
        """Refuse to read as this what was stored as something else.

        Raises:
            StateMismatch: the bytes would be read wrongly.
        """
        for what in ("kind", "key", "groups"):
            mine, theirs = getattr(self, what), getattr(stored, what)
            if mine != theirs:
                raise self._mismatch(operator, f"its {what} is {theirs}, and it is declared with {mine}")
        if self.version == stored.version and not reads_as(stored.value, self.value):
            raise StateMismatch(
                f"The slot {self.name!r} of {operator!r} holds values of type {stored.value}, and is declared with "
                f"{self.value} in the same version.",
                hint="increase the descriptor's version and register a state_migration, or use a slot of another name",
            )
        if self.expires != stored.expires:
            had = "none" if stored.expires is None else f"one by {stored.expires} time"
            has = "none" if self.expires is None else f"one by {self.expires} time"
            raise self._mismatch(operator, f"its time to live is {had}, and it is declared with {has}")

    def _mismatch(self, operator: str, why: str) -> StateMismatch:
        return StateMismatch(
            f"The slot {self.name!r} of {operator!r} is stored in another form: {why}.",
            hint="use a slot of another name, and copy what is needed",
        )


_PLAIN = re.compile(r"(?:bool|int|float|str|bytes|None|NoneType|list|dict|tuple|set|[\[\],| .])*")


def reads_as(stored: str, declared: str) -> bool:
    """Whether values of one type may be read as those of another, as far as the types' names tell.

    What is made of classes is only known when a value is read.

    >>> reads_as("int", "float"), reads_as("int", "int | None"), reads_as("Order", "Purchase"), reads_as("float", "int")
    (True, True, True, False)
    """
    if stored == declared or not _PLAIN.fullmatch(stored) or not _PLAIN.fullmatch(declared):
        return True
    if re.sub(r"\bint\b", "float", stored) == declared:
        return True
    return {*stored.replace("NoneType", "None").split(" | ")} < {*declared.replace("NoneType", "None").split(" | ")}


_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(SlotInfo)


def catalogue_key(slot: str) -> bytes:
    """Where the catalogue has a slot."""
    return CATALOGUE + slot_bytes(slot)


def encode_slot(slot: SlotInfo) -> bytes:
    """What the catalogue holds for a slot."""
    return _encoder.encode(slot)


def decode_slot(data: bytes, operator: str) -> SlotInfo:
    """A slot of the catalogue; ``StateDamaged`` if the bytes are none."""
    try:
        slot: SlotInfo = _decoder.decode(data)
    except msgspec.MsgspecError as error:
        raise StateDamaged(f"The catalogue of {operator!r} cannot be read: {error}") from error
    return slot


def read_slots(state: StateReader, operator: str) -> dict[str, SlotInfo]:
    """All slots of an operator, by name."""
    found = [decode_slot(data, operator) for _, data in state.scan(operator, CATALOGUE, END)]
    return {slot.name: slot for slot in found}
