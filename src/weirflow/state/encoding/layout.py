"""Where things are stored: group (2 bytes), slot (its length in 1 byte, its name), key, and what follows the key.

Groups above all key groups hold what belongs to no key: broadcast state, and the catalogue of slots.
"""

from __future__ import annotations

from weirflow.errors import ConfigError

BROADCAST = b"\xff\xfe"
"""The group of broadcast state: the same on every instance of an operator."""
CATALOGUE = b"\xff\xff"
"""The group of the catalogue."""
END = b"\xff\xff\xff\xff"
"""Greater than all stored keys."""
NOBODY = ""
"""The operator whose catalogue holds what is about the backend as a whole."""
_LONGEST_SLOT = 255


def slot_bytes(slot: str) -> bytes:
    """A slot's part of a stored key.

    Raises:
        ConfigError: it is empty, or longer than 255 bytes.
    """
    name = slot.encode()
    if not 1 <= len(name) <= _LONGEST_SLOT:
        raise ConfigError(f"{slot!r} cannot be the name of a slot.", hint=f"use 1 to {_LONGEST_SLOT} bytes of UTF-8")
    return bytes((len(name),)) + name


def slot_of(stored: bytes) -> bytes:
    """The slot's part of a stored key; the key follows it."""
    return stored[2 : 3 + stored[2]]


def successor(prefix: bytes) -> bytes:
    """The least bytes that are greater than all that begin with a prefix; the prefix is not FF throughout.

    >>> successor(bytes.fromhex("01 ff")).hex()
    '02'
    """
    kept = prefix.rstrip(b"\xff")
    return kept[:-1] + bytes((kept[-1] + 1,))
