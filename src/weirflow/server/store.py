"""Where a server keeps its tokens, its membership and what it starts again: the metadata store of its Session."""

from __future__ import annotations

from typing import TYPE_CHECKING

from weirflow.metadata.open import open_metadata
from weirflow.session.profiles import resolve_stores
from weirflow.types import Profile

if TYPE_CHECKING:
    from weirflow.config import Settings
    from weirflow.metadata.store import Metadata


def open_store(settings: Settings) -> Metadata:
    """The metadata store that the settings of a Session amount to; in memory if nothing is kept."""
    profile = resolve_stores(settings).profile
    if profile is Profile.DISTRIBUTED_DURABLE and settings.metadata_url is not None:
        return open_metadata(settings.metadata_url.get_secret_value())
    if profile is Profile.SINGLE_NODE_DURABLE and settings.path is not None:
        settings.path.mkdir(parents=True, exist_ok=True)
        return open_metadata(settings.path / "metadata.db")
    return open_metadata("memory://")


def is_kept(settings: Settings) -> bool:
    """Whether what is written there is still there after the server's end."""
    return resolve_stores(settings).profile is not Profile.DEV_LOCAL
