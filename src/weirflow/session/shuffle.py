"""Where Spark keeps what it shuffles between stages: on disks of its executors, unless its configuration says more."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from weirflow.types import Placement

if TYPE_CHECKING:
    from weirflow.config import Settings

_PLUGIN = "spark.shuffle.sort.io.plugin.class"
_MANAGER = "spark.shuffle.manager"
_SPARKS_OWN = frozenset({"sort", "tungsten-sort", "org.apache.spark.shuffle.sort.SortShuffleManager"})
_FALLBACK = "spark.storage.decommission.fallbackStorage.path"


def shuffle_place(settings: Settings) -> str:
    """A text for people, from what is configured; nothing is started or asked."""
    conf = settings.spark_conf
    if (plugin := conf.get(_PLUGIN)) is not None:
        return f"by the plugin {plugin}"
    if (manager := conf.get(_MANAGER, "sort")) not in _SPARKS_OWN:
        return f"by the shuffle manager {manager}"
    place = _disks(settings)
    if (fallback := conf.get(_FALLBACK)) is not None:
        return f"{place}; copied to {fallback} when an executor is taken away"
    return place


def _disks(settings: Settings) -> str:
    if settings.placement is Placement.DISTRIBUTED:
        if (settings.endpoint or "").startswith("sc:"):
            return "where the Spark Connect server has it"
        return "local disks of the executors"
    # Spark prefers the variable.
    folder = os.environ.get("SPARK_LOCAL_DIRS") or settings.spark_conf.get("spark.local.dir")
    return f"local disk at {folder}" if folder else "local disk, in a folder that is deleted with the Session"
