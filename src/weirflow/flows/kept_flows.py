"""Where a Session keeps flows, and which it keeps there."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from weirflow.checkpoint import open_checkpoint_storage
from weirflow.errors import ConfigError
from weirflow.ivm.sharded.commits import CommitFiles
from weirflow.ivm.sharded.definition import decode_definition
from weirflow.types import Profile

if TYPE_CHECKING:
    from weirflow.flows.host import FlowSession

_COMMITS = "commits"


class KeptFlows:
    """The flows that a durable Session keeps, open or not. Looking at them opens none and needs no Spark.

    Attributes:
        folder: where flows in one process are; None if the Session keeps none.
        root: the folder or URI where flows in shards are; None likewise.
    """

    def __init__(self, session: FlowSession) -> None:
        settings, profile = session.settings, session.describe().profile
        self.folder: Path | None = None
        self.root: str | None = None
        if profile is Profile.SINGLE_NODE_DURABLE and settings.path is not None:
            self.folder = settings.path / "flows"
            self.root = str(settings.path / "partitioned")
        elif profile is Profile.DISTRIBUTED_DURABLE and settings.checkpoint_uri is not None:
            self.root = f"{settings.checkpoint_uri.rstrip('/')}/flows"

    def local(self) -> list[str]:
        """The names of flows in one process."""
        if self.folder is None or not self.folder.is_dir():
            return []
        return sorted(one.name for one in self.folder.iterdir() if (one / "identity").is_file())

    def spread(self) -> list[str]:
        """The names of flows in shards."""
        if self.root is None:
            return []
        if "://" in self.root:
            found = (info.name.split("/") for info in open_checkpoint_storage(self.root).list())
            return sorted({parts[0] for parts in found if parts[1:2] == [_COMMITS]})
        folder = Path(self.root)
        return sorted(one.name for one in folder.iterdir() if (one / _COMMITS).is_dir()) if folder.is_dir() else []

    def is_spread(self, name: str) -> bool | None:
        """Whether the flow of this name is in shards; None if none is kept.

        Raises:
            ConfigError: one of each kind is.
        """
        local, spread = name in self.local(), name in self.spread()
        if local and spread:
            raise ConfigError(
                f"Two flows are kept as {name!r}, one in this process and one in partitions.",
                hint=f"move one of the two away: {self.folder}/{name} or {self.root}/{name}",
            )
        return spread if local or spread else None

    def relations(self, name: str) -> tuple[str, ...]:
        """The sources and views of a flow in shards, as it was committed last.

        Raises:
            StorageError: it cannot be read.
        """
        commits = CommitFiles(open_checkpoint_storage(f"{self.root}/{name}"))
        newest = commits.newest()
        if newest is None:
            return ()
        definition = decode_definition(commits.definition(newest.definition))
        return (*definition.sources, *definition.views)
