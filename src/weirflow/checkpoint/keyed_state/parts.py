"""Parts of keyed state: saved from a backend, and put together again for any range of key groups in any backend."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from itertools import groupby, islice
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from weirflow.checkpoint.keyed_state.manifest import EARLIER, StatePart
from weirflow.checkpoint.sealed import refused
from weirflow.checkpoint.storage.local.errors import os_errors
from weirflow.errors import StateError, StorageError
from weirflow.state.backends.folder import FolderStateBackend, is_form, open_folder
from weirflow.state.backends.memory import InMemoryStateBackend
from weirflow.state.backends.ttl import TtlStateBackend
from weirflow.state.catalogue import read_slots
from weirflow.state.encoding.groups import KeyGroupRange
from weirflow.state.shared import merge_shared, read_shared

if TYPE_CHECKING:
    from weirflow.checkpoint.keyed_state.files import StateFiles
    from weirflow.state.backends.contract import StateBackend, StateReader

ENTRIES = "entries"
"""The form of packs of entries, which any backend takes."""
_USUAL = "rocksdb"
"""The form of state that is restored to a path and has none yet."""
_SHARED = "shared"
_PACK = ".pack"
# Entries that are copied at a time.
_BATCH = 10_000
_packed = msgspec.msgpack.Decoder(dict[str, list[tuple[bytes, bytes]]])


def stored_in(backend: StateBackend) -> StateBackend:
    """The backend that holds the state, without what is around it."""
    return stored_in(backend.backend) if isinstance(backend, TtlStateBackend) else backend


def save_part(files: StateFiles, groups: KeyGroupRange, backend: StateBackend) -> StatePart:
    """Write what is new of a backend that has these key groups."""
    backend = stored_in(backend)
    slots = {operator: list(read_slots(backend, operator).values()) for operator in backend.operators()}
    if isinstance(backend, FolderStateBackend):
        # Beside the database, where its files can be linked.
        with _scratch(backend.path, "linked") as folder:
            saved = {file.name: files.save_file(file) for file in backend.link_files(folder)}
        return StatePart(groups.first, groups.end, backend.form, saved, slots)
    with closing(backend.snapshot()) as snapshot:
        packs = {name: files.save(msgspec.msgpack.encode(pack), _PACK) for name, pack in _packs(snapshot, groups)}
    return StatePart(groups.first, groups.end, ENTRIES, packs, slots)


def restore_parts(
    files: StateFiles, parts: Sequence[StatePart], groups: KeyGroupRange, path: Path | None, fsync: int
) -> StateBackend:
    """A backend with the state of these key groups: at a path in files of the form in use, or in memory without one.

    Raises:
        StateError: something is at the path.
        StorageError: a file is missing or damaged, or the parts do not have all of the groups. Nothing is at the path.
    """
    chosen = [part for part in parts if groups.common(_groups(part)) is not None]
    if not chosen or chosen[0].first > groups.first or chosen[-1].end < groups.end:
        has = ", ".join(str(_groups(part)) for part in parts)
        raise StorageError(f"There is no state of the key groups {groups}; there is of {has}.", uri=files.uri)
    if path is None:
        memory = InMemoryStateBackend()
        _fill(files, chosen, groups, memory)
        return memory
    if path.exists() and (not path.is_dir() or any(path.iterdir())):
        raise StateError(f"State cannot be restored to {path}: the path is taken.", hint="use a path that is free")
    with os_errors("write", path):
        path.parent.mkdir(parents=True, exist_ok=True)
    with _scratch(path, "restored") as built:
        form = next((part.form for part in chosen if is_form(part.form)), _USUAL)
        if len(chosen) == 1 and chosen[0].form == form and _groups(chosen[0]) == groups:
            _place(files, chosen[0], built)
        else:
            with closing(open_folder(form, built, 1)) as database:
                _fill(files, chosen, groups, database)
        try:
            with os_errors("write", path):
                _sync(built)
                built.rename(path)
                _sync(path.parent)
            return open_folder(form, path, fsync)
        except BaseException:
            shutil.rmtree(path, ignore_errors=True)
            raise


@contextmanager
def _scratch(path: Path, purpose: str) -> Iterator[Path]:
    """A free path beside another, and free again afterwards; what a killed process has left there is removed."""
    scratch = path.with_name(f".{path.name}.weirflow-{purpose}")
    shutil.rmtree(scratch, ignore_errors=True)
    try:
        yield scratch
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def _sync(folder: Path) -> None:
    """Let what is in a folder survive a power failure."""
    opened = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)


def _groups(part: StatePart) -> KeyGroupRange:
    return KeyGroupRange(part.first, part.end)


def _packs(state: StateReader, groups: KeyGroupRange) -> Iterator[tuple[str, dict[str, list[tuple[bytes, bytes]]]]]:
    """The entries of each key group that has some, and those that belong to no key, always in the same order."""
    packs: dict[bytes, dict[str, list[tuple[bytes, bytes]]]] = {}
    for operator in state.operators():
        for group, entries in groupby(state.scan(operator, groups.start_key, groups.end_key), lambda one: one[0][:2]):
            packs.setdefault(group, {})[operator] = list(entries)
    for group in sorted(packs):
        yield str(int.from_bytes(group, "big")), packs[group]
    yield _SHARED, {operator: sorted(entries.items()) for operator, entries in read_shared(state).items()}


def _fill(files: StateFiles, parts: Iterable[StatePart], groups: KeyGroupRange, target: StateBackend) -> None:
    shared = []
    for part in parts:
        with _opened(files, part) as state:
            common = groups.common(_groups(part))
            assert common is not None, "the part was chosen for it"
            for operator in state.operators():
                entries = state.scan(operator, common.start_key, common.end_key)
                while batch := dict(islice(entries, _BATCH)):
                    target.write({operator: batch})
            shared.append(read_shared(state))
    target.write(merge_shared(shared))


@contextmanager
def _opened(files: StateFiles, part: StatePart) -> Iterator[StateReader]:
    """A part of either form, to be read."""
    if part.form != ENTRIES:
        if not is_form(part.form):
            raise refused(files.uri, f"it has state of the form {part.form!r}, which nothing here reads", EARLIER)
        with tempfile.TemporaryDirectory() as scratch:
            _place(files, part, Path(scratch) / "state")
            with closing(open_folder(part.form, Path(scratch) / "state", 0)) as database:
                yield database
        return
    memory = InMemoryStateBackend()
    for ref in part.files.values():
        try:
            pack = _packed.decode(files.load(ref))
        except msgspec.MsgspecError as error:
            raise refused(f"{files.uri}/{ref.object}", str(error), EARLIER) from error
        memory.write({operator: dict(entries) for operator, entries in pack.items()})
    yield memory


def _place(files: StateFiles, part: StatePart, folder: Path) -> None:
    """Copy the files of a database to a new folder."""
    with os_errors("write", folder):
        folder.mkdir(0o700)
    for name, ref in part.files.items():
        if Path(name).name != name:
            raise refused(f"{files.uri}/{ref.object}", f"{name!r} is not a file of a database", EARLIER)
        files.load_file(ref, folder / name)
