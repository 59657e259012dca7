"""Which files of a query's checkpoint are those of one committed batch, and what the folder of a file sink has."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

from weirflow.checkpoint import open_checkpoint_storage

if TYPE_CHECKING:
    from collections.abc import Iterator

    from weirflow.checkpoint.storage import CheckpointStorage

METADATA = "metadata"
MARK = "savepoint.json"
_SINK_LOG = "_spark_metadata/"
_COMPACTED_EVERY = 10
_EMPTY_LOG = b"v1\n"
_NUMBER = re.compile(r"(\d+)(?:\.compact)?")
_VERSION = re.compile(r"(\d+)[._]")


def storage_of_spark(location: str) -> CheckpointStorage:
    """The storage at a location as Spark calls it."""
    uri = f"s3://{location.removeprefix('s3a://')}" if location.startswith("s3a://") else location
    return open_checkpoint_storage(uri, private=False)


def committed_batch(storage: CheckpointStorage) -> int | None:
    """The last batch that is committed; None if none is."""
    return max(_numbers(storage, "commits/"), default=None)


def files_of_batch(storage: CheckpointStorage, batch: int) -> Iterator[str]:
    """The names of the files that a query needs to go on after a batch.

    They do not change any more, but are deleted a hundred batches later.
    """
    ends = _source_positions(storage.get(f"offsets/{batch}"))
    for info in storage.list():
        parts = info.name.split("/")
        if not parts[-1].startswith(".") and _is_of(parts, batch, ends):
            yield info.name


def _is_of(parts: list[str], batch: int, ends: dict[str, int]) -> bool:
    last = parts[-1]
    match parts[0]:
        case "metadata":
            return len(parts) == 1
        case "offsets" | "commits":
            return last.isdigit() and batch - 1 <= int(last) <= batch
        case "sources":
            found = _NUMBER.fullmatch(last)
            return found is None or int(found[1]) <= ends.get(parts[1], int(found[1]))
        case "state":
            version = None if "_metadata" in parts or "_stateSchema" in parts else _VERSION.match(last)
            return version is None or int(version[1]) <= batch + 1
        case _:
            return False


def _source_positions(offsets: bytes) -> dict[str, int]:
    """By the number of a source of files: the last entry of its log that the batch has read."""
    ends = {}
    for number, line in enumerate(offsets.decode().splitlines()[2:]):
        try:
            found = json.loads(line)
        except ValueError:  # sources write what they like
            continue
        if isinstance(found, dict) and isinstance(found.get("logOffset"), int):
            ends[str(number)] = found["logOffset"]
    return ends


def last_sink_batch(folder: CheckpointStorage) -> int | None:
    """The last batch that the log in a folder of files names; None if there is no log."""
    return max(_numbers(folder, _SINK_LOG), default=None)


def begin_sink_log(folder: CheckpointStorage, batch: int) -> None:
    """Have the log of an empty folder begin after a batch: Spark reads no log that lacks the batches before."""
    first = max(0, (batch + 1) // _COMPACTED_EVERY * _COMPACTED_EVERY - 1)
    for number in range(first, batch + 1):
        compact = ".compact" if (number + 1) % _COMPACTED_EVERY == 0 else ""
        folder.put(f"{_SINK_LOG}{number}{compact}", _EMPTY_LOG)


def _numbers(storage: CheckpointStorage, folder: str) -> Iterator[int]:
    for info in storage.list(folder):
        if found := _NUMBER.fullmatch(info.name.removeprefix(folder)):
            yield int(found[1])
