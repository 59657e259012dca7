"""Spread policies: which shard a row goes to, where that is not as evenly as hashes are."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Protocol

import numpy as np

from weirflow.errors import ConfigError
from weirflow.extensions import SPREAD_POLICIES

if TYPE_CHECKING:
    from numpy.typing import NDArray

EVEN = "even"


class SpreadPolicy(Protocol):
    """Decides to which shard each row belongs. Called in every process that runs shards, now and later.

    The same hash and the same number of shards must give the same shard, always and everywhere: rows are found again by
    it. Rows with equal keys have equal hashes.
    """

    def __call__(self, hashes: NDArray[np.uint64], shards: int) -> NDArray[np.int64]:
        """The shard of each hash, from 0 to ``shards - 1``."""


def shard_of(hashes: NDArray[np.uint64], shards: int) -> NDArray[np.int64]:
    """The policy ``even``. Part of what is stored: shards find their rows by it again."""
    folded = hashes ^ (hashes >> np.uint64(32))
    return (folded % np.uint64(shards)).astype(np.int64)


@lru_cache(maxsize=16)
def spread_policy(name: str) -> SpreadPolicy:
    """The policy of this name.

    Raises:
        ConfigError: there is none here, or it cannot be loaded.
    """
    if name == EVEN:
        return shard_of
    policy: SpreadPolicy = SPREAD_POLICIES.get(name)

    def checked(hashes: NDArray[np.uint64], shards: int) -> NDArray[np.int64]:
        found = np.asarray(policy(hashes, shards))
        if found.shape != hashes.shape or found.dtype.kind not in "iu":
            raise ConfigError(
                f"The spread policy {name!r} gave {found.dtype} of shape {found.shape} for {len(hashes)} hashes.",
                hint="it returns an array of integers, one shard for each hash",
            )
        if len(found) and not 0 <= int(found.min()) <= int(found.max()) < shards:
            raise ConfigError(
                f"The spread policy {name!r} sent a row to shard {int(found.max())} or {int(found.min())} of {shards}.",
                hint="shards are numbered from 0",
            )
        return found.astype(np.int64, copy=False)

    return checked
