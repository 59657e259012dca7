"""The kinds of tables that tell what changed in them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from weirflow.flows.feeds.delta_changes import DeltaChanges
from weirflow.flows.feeds.iceberg_changes import IcebergChanges

if TYPE_CHECKING:
    from weirflow.flows.feeds.table_changes import TableChanges

CHANGES: dict[str, Callable[[Any, str], TableChanges]] = {"delta": DeltaChanges, "iceberg": IcebergChanges}
"""By the provider that Spark names."""
