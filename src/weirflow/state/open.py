"""From a URI to a state backend."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated
from urllib.parse import unquote

from weirflow.arguments import Hint, Uri, checked
from weirflow.errors import ConfigError, StateError
from weirflow.extensions import STATE_BACKENDS
from weirflow.state.backends.memory import InMemoryStateBackend
from weirflow.state.backends.rocksdb import RocksDbStateBackend
from weirflow.state.encoding.groups import KeyGroupRange, group_ranges

if TYPE_CHECKING:
    from weirflow.state.backends.contract import StateBackend

_USE = "use a path or one of " + ", ".join(f"{scheme}://" for scheme in STATE_BACKENDS.own)
_WITH_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):(//)?")
_RANGE = re.compile(r"(\d+)-(\d+)")


@checked
def open_state_backend(uri: Annotated[Uri, Hint(_USE)], groups: KeyGroupRange | None = None) -> StateBackend:
    """The state backend at a URI or path, for the keys of some key groups.

    >>> backend = open_state_backend("memory://")
    >>> backend.write({"count": {b"ann": b"7"}})
    >>> backend.get("count", b"ann")
    b'7'

    Args:
        uri: ``memory://``, which is private; a path or ``rocksdb:///absolute/path``, in which each range of groups
            has a folder of its own; or a scheme that another package adds, see docs/extending.md.
        groups: whose keys are kept; None for all.

    Raises:
        ConfigError: the URI cannot be used.
        StateError: the folder has state of other ranges, or is in use.
    """
    wanted = groups or group_ranges(1)[0]
    if isinstance(uri, Path):
        return _in_folder(uri, wanted)
    match = _WITH_SCHEME.match(uri)
    if match is None:
        return _in_folder(Path(uri), wanted)
    scheme, rest = match[1].lower(), uri[match.end() :]
    if match[2] is None or not (scheme in STATE_BACKENDS.own or STATE_BACKENDS.has(scheme)):
        raise STATE_BACKENDS.unknown(scheme, f"State cannot be kept at a URI that begins with '{scheme}:'.", mark="://")
    if scheme == "memory":
        if rest:
            raise ConfigError(f"memory:// is private to each use; it has no name such as {rest!r}.", hint=_USE)
        return InMemoryStateBackend()
    if scheme == "rocksdb":
        if not rest.startswith("/") or "?" in rest or "#" in rest:
            raise ConfigError(
                "This rocksdb:// URI does not name a local folder.",
                hint="write rocksdb:///absolute/path, or the path itself",
            )
        return _in_folder(Path(unquote(rest)), wanted)
    added: StateBackend = STATE_BACKENDS.make(scheme, uri, wanted)
    return added


def _in_folder(path: Path, groups: KeyGroupRange) -> StateBackend:
    """The backend of these groups in a folder of all; state of others that overlap would not be found."""
    folder = path.expanduser().absolute()
    if folder.is_dir():
        for one in sorted(folder.iterdir()):
            found = _RANGE.fullmatch(one.name)
            kept = None if found is None else KeyGroupRange(int(found[1]), int(found[2]) + 1)
            if kept is not None and kept != groups and kept.common(groups) is not None:
                raise StateError(
                    f"The folder {folder} has the state of the key groups {kept}, not of {groups}.",
                    hint="open it with the parallelism that it was written with; to change that, save the state with "
                    "KeyedStateCheckpoints and restore it",
                )
    return RocksDbStateBackend(folder / str(groups))
