"""``CurrentKey``: the key that keyed state is read and written for, and where its state is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from weirflow.arguments import shown
from weirflow.errors import StateError, StateTypeError
from weirflow.state.encoding.groups import KeyGroupRange, group_of
from weirflow.state.encoding.key_types import KeyCodec, key_codec

if TYPE_CHECKING:
    from weirflow.state.descriptors import StateDescriptor


class CurrentKey:
    """The key of the moment; shared by all slots of a store.

    Attributes:
        value: the key.
        plain: whether the key is of the type ``exact``.
        exact: the type whose equal keys are one key, or None where that cannot be said.
        timestamp: the time of its event in milliseconds, or None.
    """

    def __init__(self, operator: str, groups: int, owned: KeyGroupRange) -> None:
        self.value: Any = None
        self.plain = False
        self.exact: type | None = None
        self.timestamp: int | None = None
        self._found: tuple[int, bytes] | None = None
        self._operator = operator
        self._groups = groups
        self._owned = owned
        self._codec: KeyCodec | None = None
        self._slot = ""

    def declare(self, descriptor: StateDescriptor) -> KeyCodec:
        """Take on a slot's type of keys; all slots of an operator have the same.

        Raises:
            ConfigError: no key can be of the type.
            StateError: another slot has another type.
        """
        codec = key_codec(descriptor.key)
        if self._codec is None:
            self._codec, self._slot, self.exact = codec, descriptor.name, codec.exact
        elif codec.name != self._codec.name:
            raise StateError(
                f"The keys of {descriptor.name!r} are {codec.name}, those of {self._slot!r} are {self._codec.name}.",
                hint="an operator has one key: give all its slots the same key type",
            )
        return self._codec

    def set(self, key: Any, timestamp: int | None) -> None:
        """Make a key the current one; one that cannot be is refused here, or where it is first used."""
        if type(key) is self.exact:
            self.plain = True
        else:
            self._found = self.locate(key)
            self.plain = False
        self.value = key
        self.timestamp = timestamp

    def unset(self) -> None:
        """Have no current key."""
        self.value = self.timestamp = self._found = None
        self.plain = False

    def located(self) -> tuple[int, bytes]:
        """The group and bytes of the current key, which is not plain; ``StateError`` if there is none."""
        if self._found is None:
            raise StateError("There is no current key.", hint="call store.set_key(...) first")
        return self._found

    def locate(self, key: Any) -> tuple[int, bytes]:
        """The group and bytes of a key.

        Raises:
            StateTypeError: it is not of the declared type.
            StateError: no slot is declared, or the key's group is not among those that are owned.
        """
        if self._codec is None:
            raise StateError(f"The operator {self._operator!r} has no keyed state yet.", hint="declare its slots first")
        try:
            data = self._codec.encode(key)
        except (TypeError, ValueError) as error:
            raise StateTypeError(
                f"The keys of {self._operator!r} are {self._codec.name}, but {shown(key)} is not: {error}.",
                slot=self._slot,
                key=shown(key),
            ) from error
        group = group_of(data, self._groups)
        if group not in self._owned:
            raise StateError(
                f"The key {shown(key)} is of key group {group}; this store has {self._owned}.",
                hint="route keys by weirflow.state.key_group",
            )
        return group, data
