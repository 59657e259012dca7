"""Which files of a query's checkpoint are those of one committed batch, and what the folder of a file sink has."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from weirflow.checkpoint import open_checkpoint_storage
from weirflow.streaming.savepoints.state import files_of_version

if TYPE_CHECKING:
    from weirflow.checkpoint.storage.contract import CheckpointStorage

METADATA = "metadata"
MARK = "savepoint.json"
_SINK_LOG = "_spark_metadata/"
_COMPACTED_EVERY = 10
_EMPTY_LOG = b"v1\n"
_NUMBER = re.compile(r"(\d+)(?:\.compact)?")


def storage_of_spark(location: str) -> CheckpointStorage:
    """The storage at a location as Spark calls it."""
    uri = f"s3://{location.removeprefix('s3a://')}" if location.startswith("s3a://") else location
    return open_checkpoint_storage(uri, private=False)


def committed_batch(storage: CheckpointStorage) -> int | None:
    """The last batch that is committed; None if none is."""
    return max(_numbers(storage, "commits/"), default=None)


def files_of_batch(storage: CheckpointStorage, batch: int) -> list[str]:
    """The names of the files that a query needs to go on after a batch, and of no others.

    All are known before the first is returned. They do not change any more, but the query deletes them when it has
    gone on: the state and offsets of the last hundred batches are kept by default, logs of sources for ten minutes.

    Raises:
        ObjectNotFound: some are deleted already; others may be named that are, which their reader finds out.
    """
    ends = _source_positions(storage.get(f"offsets/{batch}"))
    there = {info.name for info in storage.list() if not info.name.rpartition("/")[2].startswith(".")}
    needed = [METADATA, f"commits/{batch}", f"offsets/{batch}"]
    if batch:  # Spark begins with the offsets before, which need not be those of the batch before
        earlier = [number for name in there if (number := _number_in(name, "offsets/")) is not None and number < batch]
        needed.append(f"offsets/{max(earlier, default=batch - 1)}")
    plain = sorted(name for name in there if not name.endswith(".crc"))
    needed += [name for name in plain if name.startswith("sources/") and name.split("/")[1] not in ends]
    for source, end in ends.items():
        needed += _entries_up_to(there, f"sources/{source}/", end)
    needed += files_of_version(storage, there, batch + 1)
    return needed + [checksum for name in needed if (checksum := f"{name}.crc") in there]


def _entries_up_to(there: set[str], log: str, end: int) -> Iterator[str]:
    """Those of a log that its entry of this number needs: back to the last one that repeats all before it."""
    for number in range(end, -1, -1):
        if (compacted := f"{log}{number}.compact") in there:
            yield compacted
            return
        yield f"{log}{number}"


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
        if (number := _number_in(info.name, folder)) is not None:
            yield number


def _number_in(name: str, folder: str) -> int | None:
    found = _NUMBER.fullmatch(name.removeprefix(folder))
    return int(found[1]) if found else None
