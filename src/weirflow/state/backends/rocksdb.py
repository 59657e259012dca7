"""``RocksDbStateBackend``: state in a folder of this machine, larger than memory and there after a crash."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Generator, Iterator, Sequence
from itertools import takewhile
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any
from weakref import WeakSet

from typing_extensions import override

from weirflow.arguments import Count, Folder, checked
from weirflow.errors import DependencyMissing, StateError
from weirflow.forks import keep_to_this_process, never_finalize
from weirflow.state.backends.folder import FolderStateBackend
from weirflow.state.backends.rocksdb_snapshot import RocksDbSnapshot
from weirflow.state.encoding.layout import END, NOBODY
from weirflow.state.recent import RecentEntries

try:
    import rocksdict
except ModuleNotFoundError:  # the optional part 'rocksdb'; said when a backend is opened
    rocksdict = None  # type: ignore[assignment]

if TYPE_CHECKING:
    from weirflow.state.backends.contract import Changes

_NOBODY = "default"
_OPERATOR = "operator:"
# State is overwritten often: in RocksDB's own 64 MiB every version of a key slows down the next.
_WRITE_BUFFER = 8 << 20


class RocksDbStateBackend(FolderStateBackend, form="rocksdb"):
    """State in RocksDB, a column family for each operator; see ``StateBackend`` for the contract.

    A written batch survives the death of the process in any case.

    Args:
        path: a folder for this backend only; it is created if it does not exist. Only one backend at a time may have it
            open.
        fsync: after how many batches the log is synced to the disk: a power failure loses the batches since then. 0
            leaves it to the operating system.

    Raises:
        DependencyMissing: rocksdict is not installed.
        StateError: the folder is in use, or holds no such state.
    """

    @checked
    def __init__(self, path: Folder, *, fsync: Count = 1) -> None:
        if rocksdict is None:
            raise DependencyMissing.extra("rocksdb", needed_for="RocksDbStateBackend")  # noqa: S610 - no Django
        self._path = Path(path).absolute()
        self._fsync = fsync
        self._unsynced = 0
        self._lazily, self._synced = rocksdict.WriteOptions(), rocksdict.WriteOptions()
        self._synced.sync = True
        self._live: WeakSet[Generator[tuple[bytes, bytes]]] = WeakSet()
        self._snapshots: WeakSet[RocksDbSnapshot] = WeakSet()
        self._families: dict[str, Any] = {}
        self._handles: dict[str, Any] = {}
        self._recent: defaultdict[str, RecentEntries] = defaultdict(RecentEntries)
        self._lock = Lock()
        self._closed = False
        self._is_foreign = False
        self._db: Any = None
        try:
            self._path.mkdir(0o700, parents=True, exist_ok=True)
            known = [_NOBODY]
            if (self._path / "CURRENT").exists():
                known = rocksdict.Rdict.list_cf(str(self._path), _options())
            self._db = rocksdict.Rdict(str(self._path), _options(), {name: _options() for name in known})
            keep_to_this_process(self)
            for name in known:
                self._register(name, self._db.get_column_family(name))
        except Exception as error:
            self.close()
            raise self._failed("opened", error) from error
        except BaseException:
            self.close()
            raise

    def __repr__(self) -> str:
        return f"<state in {self._path}>"

    @property
    @override
    def path(self) -> Path:
        return self._path

    @override
    def get(self, operator: str, key: bytes) -> bytes | None:
        return self.multi_get(operator, (key,))[0]

    @override
    def multi_get(self, operator: str, keys: Sequence[bytes]) -> list[bytes | None]:
        family = self._families.get(operator)
        if family is None:
            self._require_open()
            return [None] * len(keys)
        try:
            # One call for each is faster than RocksDB's own for many.
            return self._recent[operator].get_many(keys, family.get)
        except Exception as error:
            raise self._failed("read", error) from error

    @override
    def write(self, changes: Changes) -> None:
        self._require_open()
        due = 0 < self._fsync <= self._unsynced + 1
        # Put back when they have what is written: after an exception, whenever it comes, they are read anew.
        recent = {operator: self._recent.pop(operator, None) for operator in changes}
        try:
            with self._lock:
                self._db.write(self._batch(changes), self._synced if due else self._lazily)
        except Exception as error:
            raise self._failed("written", error) from error
        self._unsynced = 0 if due else self._unsynced + 1
        for operator, known in recent.items():
            if known is not None:
                known.update(changes[operator])
                self._recent[operator] = known

    @override
    def scan(self, operator: str, start: bytes, end: bytes, *, reverse: bool = False) -> Iterator[tuple[bytes, bytes]]:
        family = self._families.get(operator)
        if family is None:
            self._require_open()
            return iter(())
        scan = self._items(family, start, end, reverse=reverse)
        # An unfinished one would keep the database open.
        self._live.add(scan)
        return scan

    @override
    def operators(self) -> list[str]:
        self._require_open()
        found = [operator for operator in self._families if operator != NOBODY]
        return sorted(operator for operator in found if next(self.scan(operator, b"", END), None) is not None)

    @override
    def snapshot(self) -> RocksDbSnapshot:
        self._require_open()
        try:
            with self._lock:
                snapshot = RocksDbSnapshot({name: one.iter() for name, one in self._families.items()}, self._failed)
        except Exception as error:
            raise self._failed("read", error) from error
        self._snapshots.add(snapshot)
        return snapshot

    @override
    def link_files(self, folder: Path) -> list[Path]:
        """See ``FolderStateBackend``.

        Data files are hard links if the folder is on the same file system, so they take no space. Files that are still
        in use since an earlier call are the same files.
        """
        self._require_open()
        try:
            rocksdict.Checkpoint(self._db).create_checkpoint(str(folder))
        except Exception as error:
            raise self._failed(f"linked to {folder}", error) from error
        # An empty log is always there and says nothing.
        return sorted(file for file in folder.iterdir() if file.suffix != ".log" or file.stat().st_size)

    def close(self) -> None:
        """See ``StateReader``. After an exception you can call it again, and it continues."""
        self._closed = True
        if self._db is None or self._is_foreign:
            return
        for scan in list(self._live):
            scan.close()
        for snapshot in list(self._snapshots):
            snapshot.close()
        try:
            self._handles.clear()
            self._recent.clear()
            while self._families:
                self._families.popitem()[1].close()
            self._db.close()
            self._db = None
        except Exception as error:
            raise self._failed("closed", error) from error

    def left_behind(self) -> None:
        """See ``Owned``: RocksDB's threads are not here, and its files are the parent's."""
        self._is_foreign = True
        never_finalize(self._db, self._families, self._handles, *self._live, *self._snapshots)
        for snapshot in self._snapshots:
            snapshot.left_behind()
        self._families, self._handles = {}, {}
        self._recent.clear()

    def _items(self, family: Any, start: bytes, end: bytes, *, reverse: bool) -> Generator[tuple[bytes, bytes]]:
        try:
            bound = rocksdict.ReadOptions()
            bound.set_iterate_upper_bound(end)
            found = family.items(backwards=reverse, from_key=end if reverse else start, read_opt=bound)
            # rocksdict's lower bound sets the upper one, so that the start has to be looked for.
            yield from takewhile(lambda item: item[0] >= start, found) if reverse else found
        except Exception as error:
            raise self._failed("read", error) from error

    def _batch(self, changes: Changes) -> Any:
        batch = rocksdict.WriteBatch(raw_mode=True)
        for operator, own in changes.items():
            batch.set_default_column_family(self._handle(operator))
            for key in sorted(own):
                value = own[key]
                if value is None:
                    del batch[key]
                else:
                    batch[key] = value
        return batch

    def _handle(self, operator: str) -> Any:
        if operator not in self._handles:
            name = _OPERATOR + operator
            self._register(name, self._family(name))
        return self._handles[operator]

    def _family(self, name: str) -> Any:
        try:
            return self._db.create_column_family(name, _options())
        except Exception:
            # An exception may have come when it was there and not known here yet.
            if name not in rocksdict.Rdict.list_cf(str(self._path), _options()):
                raise
            return self._db.get_column_family(name)

    def _register(self, name: str, family: Any) -> None:
        operator = NOBODY if name == _NOBODY else name.removeprefix(_OPERATOR)
        self._families[operator] = family
        self._handles[operator] = self._db.get_column_family_handle(name)

    def _require_open(self) -> None:
        if self._closed:
            raise StateError("The state backend is closed.")
        if self._is_foreign:
            raise StateError(
                f"The state in {self._path} was opened by the process that this one was forked from.",
                hint="use it there; a child reads a checkpoint",
            )

    def _failed(self, what: str, error: Exception) -> StateError:
        hint = "close the other backend first" if "lock" in str(error).lower() else None
        return StateError(f"The state in {self._path} could not be {what}: {error}", hint=hint)


def _options() -> Any:
    options = rocksdict.Options(raw_mode=True)
    options.create_if_missing(True)  # noqa: FBT003 - RocksDB's own
    options.set_write_buffer_size(_WRITE_BUFFER)
    # A batch is whole in all column families also when a power failure takes the end of the log.
    options.set_atomic_flush(True)
    return options
