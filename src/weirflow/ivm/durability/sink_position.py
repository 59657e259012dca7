"""How far a function is that a durable flow gives a view's deltas to: one sealed file for each sink."""

from __future__ import annotations

import msgspec

from weirflow.checkpoint.sealed import FORMAT, unseal_or_plain

SINKS = "sinks/"
_HINT = "pass resync=True: the function is called with the view's current rows, and continues from there"


class SinkPosition(msgspec.Struct, frozen=True):
    """The epoch up to which a function was called, and with the deltas of what."""

    owner: str
    epoch: int
    format: int = FORMAT


def sink_file(name: str) -> str:
    """The name of a sink's file."""
    return f"{SINKS}{name}.json"


def sink_name(file: str) -> str:
    """The name of the sink whose file it is."""
    return file.removeprefix(SINKS).removesuffix(".json")


def decode_position(data: bytes, where: str) -> SinkPosition:
    """How far a function is, by its file; ``StorageError`` if that is damaged."""
    return unseal_or_plain(data, SinkPosition, where, _HINT)
