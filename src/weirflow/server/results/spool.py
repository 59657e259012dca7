"""``Spool``: results of statements, written by executors, fetched by tickets, gone when they expire."""

from __future__ import annotations

import fcntl
import logging
import os
import threading
import time
import uuid
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import msgspec
import pyarrow as pa

from weirflow.errors import ConfigError, ObjectNotFound, ResultTooLarge, SpoolFull, StorageError, WeirflowError
from weirflow.server.results.manifest import FILE, Manifest, from_bytes, to_bytes
from weirflow.server.results.parts import Part, PartWriter, read_report
from weirflow.server.results.place import Place
from weirflow.server.results.tickets import ResultTicket, gone

_log = logging.getLogger(__name__)

_LOCK = ".lock"
_GIB = 1 << 30
_LOOK_SECONDS = 0.5
_LONGEST_PAUSE = 30.0

Spread = Callable[[Any, PartWriter], list[bytes]]
"""Runs a writer on every partition of a frame, where its rows are; returns what it reports."""


@dataclass(frozen=True)
class SpoolLimits:
    """How much a spool holds, and for how long.

    Attributes:
        seconds: how long a result can be fetched after it is finished, or after its lease was renewed.
        total_bytes: how many bytes all results may have together.
        owner_bytes: how many bytes the results of one token may have together.
        result_bytes: how many bytes one result may have.
    """

    seconds: float = 900.0
    total_bytes: int = 32 * _GIB
    owner_bytes: int = 16 * _GIB
    result_bytes: int = 8 * _GIB


class Spool:
    """The results of a server. All methods may be called from any thread.

    A result is its owner's alone. Results that a server left when it was killed can be fetched from the next one until
    they expire, if they were finished; the others are removed. The server's memory does not grow with them: rows pass
    in batches of a few megabytes.

    Args:
        place: a folder, which is made if need be, or the URI of an object store. The server and Spark's executors must
            both reach it.
        limits: how much it holds, and for how long.
        now: the time, in seconds since 1970.

    Raises:
        ConfigError: another process has the folder.
    """

    def __init__(self, place: str, limits: SpoolLimits | None = None, *, now: Callable[[], float] = time.time) -> None:
        self.limits = limits or SpoolLimits()
        self._place = Place(place)
        self._now = now
        self._lock = threading.Lock()
        self._results: dict[str, Manifest] = {}
        self._under_way: dict[str, tuple[str, int]] = {}
        self._checked: set[str] = set()
        self._closed = threading.Event()
        self._held = self._take_folder()
        self._find_old()
        self._sweeper = threading.Thread(target=self._sweep_for_ever, name="weirflow-spool", daemon=True)
        self._sweeper.start()

    @property
    def uri(self) -> str:
        """Where it is."""
        return self._place.uri

    @property
    def size(self) -> int:
        """How many bytes it holds, with what is being written."""
        with self._lock:
            return self._used(None)

    def __len__(self) -> int:
        return len(self._results)

    def close(self) -> None:
        """Let go of the place. Results stay, for the next server, until they expire. May be repeated."""
        self._closed.set()
        self._sweeper.join()
        if self._held is not None:
            os.close(self._held)
            self._held = None

    # How results come in

    def write_frame(
        self, owner: str, frame: Any, schema: pa.Schema, spread: Spread, stop: Callable[[], None], *, is_ordered: bool
    ) -> Manifest:
        """Have the rows of a frame written by whoever computes them, a part for each partition that has any.

        Args:
            owner: whose result it is: ``Caller.key``.
            frame: the frame.
            schema: its columns.
            spread: runs the writer on every partition of the frame. It raises what Spark raises.
            stop: has ``spread`` end with an error; called if the result becomes too large while it is written.
            is_ordered: whether the frame's rows have an order.

        Raises:
            SpoolFull: the spool, or the owner's share of it, is full; nothing is left of the result.
            ResultTooLarge: the result is larger than one may be.
        """
        with self._writing(owner) as folder:
            writer = PartWriter(self.uri, folder, schema, self.limits.result_bytes)
            with self._observed(owner, folder, stop) as refused:
                try:
                    reports = spread(frame, writer)
                except WeirflowError as error:
                    if refused:
                        raise refused[0] from error
                    raise
            parts = sorted((read_report(report) for report in reports), key=lambda part: part.number)
            return self._publish(owner, folder, schema, parts, is_ordered=is_ordered)

    def write_rows(self, owner: str, schema: pa.Schema, batches: Iterable[pa.RecordBatch]) -> Manifest:
        """Write rows that this process has as a result of one part; raises as ``write_frame``."""
        with self._writing(owner) as folder:
            writer = PartWriter(self.uri, folder, schema, self.limits.result_bytes)
            part = writer.write(0, batches)
            return self._publish(owner, folder, schema, [] if part is None else [part], is_ordered=True)

    @contextmanager
    def received(self, owner: str, schema: pa.Schema, pieces: Iterable[Iterable[pa.RecordBatch]]) -> Iterator[Manifest]:
        """Rows that somebody sends, as a result of a part for each piece that is there for the block only."""
        with self._writing(owner) as folder:
            writer = PartWriter(self.uri, folder, schema, self.limits.result_bytes)
            parts = []
            for number, piece in enumerate(pieces):
                part = writer.write(number, piece)
                if part is not None:
                    parts.append(part)
                    self._grow(owner, folder, sum(one.size for one in parts))
            manifest = self._publish(owner, folder, schema, parts, is_ordered=True)
        try:
            yield manifest
        finally:
            self.drop(owner, manifest.id)

    # How they are fetched

    def result(self, owner: str, result: str) -> Manifest:
        """A result that can be fetched; ``TicketExpired`` if there is none of this id that is the owner's."""
        with self._lock:
            manifest = self._results.get(result)
        if manifest is None or manifest.owner != owner or manifest.expires <= self._now():
            raise gone()
        return manifest

    def tickets(self, manifest: Manifest) -> list[ResultTicket]:
        """A ticket for each part; of a result that is ordered, or without rows, one for all."""
        if manifest.is_ordered or not manifest.parts:
            return [ResultTicket(manifest.id)]
        return [ResultTicket(manifest.id, number) for number in range(len(manifest.parts))]

    def fetch(self, owner: str, ticket: ResultTicket) -> pa.RecordBatchReader:
        """The rows that a ticket is for, read as they are asked for; as often as is wanted, and by many at a time.

        Raises:
            TicketExpired: there is no such result, or it is somebody else's.
            StorageError: a file is damaged or gone.
        """
        manifest = self.result(owner, ticket.result)
        if ticket.part is not None and ticket.part >= len(manifest.parts):
            raise gone()
        parts = manifest.parts if ticket.part is None else (manifest.parts[ticket.part],)
        if len(parts) == 1:
            return self._reader(parts[0])
        return pa.RecordBatchReader.from_batches(
            manifest.columns, (batch for part in parts for batch in self._reader(part))
        )

    def renew(self, owner: str, result: str) -> Manifest:
        """Have a result live as long from now on as a new one."""
        manifest = self.result(owner, result)
        renewed = msgspec.structs.replace(manifest, expires=self._now() + self.limits.seconds)
        with self._lock:
            if result not in self._results:
                raise gone()
            self._results[result] = renewed
        return renewed

    def drop(self, owner: str, result: str) -> bool:
        """Remove a result before its time; says whether there was one."""
        with self._lock:
            manifest = self._results.get(result)
            if manifest is None or manifest.owner != owner:
                return False
            del self._results[result]
        self._remove(manifest)
        return True

    def sweep(self) -> int:
        """Remove what has expired, which a thread of the spool does by itself; returns how many results."""
        with self._lock:
            ended = [one for one in self._results.values() if one.expires <= self._now()]
            for manifest in ended:
                del self._results[manifest.id]
        for manifest in ended:
            self._remove(manifest)
        return len(ended)

    # Inner workings

    @contextmanager
    def _writing(self, owner: str) -> Iterator[str]:
        """A folder to write into; what fails leaves nothing."""
        folder = uuid.uuid4().hex
        self._grow(owner, folder, 0)
        try:
            yield folder
        except BaseException:
            self._place.remove(folder)
            raise
        finally:
            with self._lock:
                self._under_way.pop(folder, None)

    def _grow(self, owner: str, folder: str, size: int) -> None:
        """A result that is being written has this many bytes now; raises if that is too much."""
        if size > self.limits.result_bytes:
            raise ResultTooLarge(
                f"The result is larger than {self.limits.result_bytes} bytes, which is the most that is allowed.",
                hint="ask for fewer rows or columns, or have the server allow more",
            )
        with self._lock:
            self._under_way[folder] = (owner, size)
            for whose, most in ((None, self.limits.total_bytes), (owner, self.limits.owner_bytes)):
                if self._used(whose) > most or (size == 0 and self._used(whose) >= most):
                    raise self._full(whose, most)

    def _used(self, owner: str | None) -> int:
        """Bytes of all results, or of one owner's; called with the lock."""
        used: Counter[str] = Counter()
        for manifest in self._results.values():
            used[manifest.owner] += manifest.size
        for whose, size in self._under_way.values():
            used[whose] += size
        return used.total() if owner is None else used[owner]

    def _full(self, owner: str | None, most: int) -> SpoolFull:
        ends = [one.expires for one in self._results.values() if owner in (None, one.owner)]
        wait = min(ends, default=self._now()) - self._now()
        whose = "The spool is" if owner is None else "Your share of the spool is"
        return SpoolFull(
            f"{whose} full: results that can still be fetched have {most} bytes.",
            retry_after=min(max(wait, 1.0), self.limits.seconds),
            hint="close what you have fetched, wait until it expires, or have the server keep more",
        )

    @contextmanager
    def _observed(self, owner: str, folder: str, stop: Callable[[], None]) -> Iterator[list[WeirflowError]]:
        """Look, while the block runs, how large its result has become, and stop it if that is too much."""
        refused: list[WeirflowError] = []
        done = threading.Event()

        def look() -> None:
            while not done.wait(_LOOK_SECONDS):
                try:
                    self._grow(owner, folder, sum(found.size for found in self._place.list(folder)))
                except (ResultTooLarge, SpoolFull) as error:
                    refused.append(error)
                    stop()
                    return
                except StorageError:  # which those who write notice, too
                    _log.warning("the size of the result %s is not known", folder, exc_info=True)

        looking = threading.Thread(target=look, name=f"weirflow-spool-{folder}", daemon=True)
        looking.start()
        try:
            yield refused
        finally:
            done.set()
            looking.join()

    def _publish(self, owner: str, folder: str, schema: pa.Schema, parts: list[Part], *, is_ordered: bool) -> Manifest:
        """Have a result that is written be there, if it is whole and there is room for it."""
        self._grow(owner, folder, sum(part.size for part in parts))
        if self._place.folder is not None:
            self._require_here(parts)
        manifest = Manifest(
            id=folder,
            owner=owner,
            expires=self._now() + self.limits.seconds,
            schema=schema.serialize().to_pybytes(),
            parts=tuple(parts),
            is_ordered=is_ordered,
        )
        self._place.write(f"{folder}/{FILE}", [to_bytes(manifest)])
        with self._lock:
            self._results[folder] = manifest
            self._under_way.pop(folder, None)
        return manifest

    def _require_here(self, parts: list[Part]) -> None:
        """Executors elsewhere may have written into a folder of their own that has the same name."""
        assert self._place.folder is not None
        for part in parts:
            if not (self._place.folder / part.name).is_file():
                raise StorageError(
                    "Executors wrote a part of the result where the server does not see it.",
                    uri=self.uri,
                    hint="put the spool into a folder that all of them share, or in an object store",
                )

    def _reader(self, part: Part) -> pa.RecordBatchReader:
        """The batches of a part, whose bytes are compared with its checksum the first time."""
        if part.name not in self._checked:
            crc32 = size = 0
            for chunk in self._place.chunks(part.name):
                crc32, size = zlib.crc32(chunk, crc32), size + len(chunk)
            if (crc32, size) != (part.crc32, part.size):
                raise StorageError(
                    f"The file {part.name!r} of a result has changed since it was written.",
                    uri=self.uri,
                    hint="run the statement again",
                )
            self._checked.add(part.name)
        return self._place.batches(part.name)

    def _remove(self, manifest: Manifest) -> None:
        self._place.remove(manifest.id)
        self._checked.difference_update(part.name for part in manifest.parts)

    def _take_folder(self) -> int | None:
        """Lock the folder: what is unfinished in it is nobody's then."""
        folder = self._place.folder
        if folder is None:
            return None
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            lock = os.open(folder / _LOCK, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise ConfigError(f"The folder {self.uri} cannot hold results: {error}.") from error
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(lock)
            raise ConfigError(
                f"Another server keeps its results in {self.uri}.", hint="give each server a folder of its own"
            ) from None
        return lock

    def _find_old(self) -> None:
        """Take over what a server before this one has left."""
        for found in list(self._place.list()):
            folder, _, file = found.name.partition("/")
            if file == FILE:
                try:
                    self._results[folder] = from_bytes(self._place.read(found.name), self.uri)
                except (ObjectNotFound, StorageError) as error:
                    _log.warning("a result that was left cannot be fetched: %s", error.message)
        # In a folder it is nobody's: this process has the lock. An object store may be others', too.
        self._remove_unfinished(older_than=0.0 if self._place.folder is not None else self.limits.seconds)

    def _remove_unfinished(self, *, older_than: float) -> None:
        """Remove what has no manifest and was not written to for some time."""
        newest: dict[str, float] = {}
        now = datetime.now(UTC)
        for found in self._place.list():
            folder, _, file = found.name.partition("/")
            if file:
                newest[folder] = min(newest.get(folder, float("inf")), (now - found.modified).total_seconds())
        with self._lock:
            known = self._results.keys() | self._under_way.keys()
        for folder, age in newest.items():
            if folder not in known and age >= older_than:
                self._place.remove(folder)

    def _sweep_for_ever(self) -> None:
        pause = min(max(self.limits.seconds / 10, 0.1), _LONGEST_PAUSE)
        while not self._closed.wait(pause):
            try:
                self.sweep()
            except StorageError:
                _log.warning("results that have expired could not be removed", exc_info=True)
