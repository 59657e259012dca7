"""Which catalogs show the older snapshots of their tables, from which changes are read."""

from __future__ import annotations

from typing import Any

from weirflow.errors import UnsupportedError
from weirflow.spark.catalogs.kinds import KINDS

_LACKING = frozenset(kind.implementation for kind in KINDS.values() if not kind.keeps_snapshots)


def require_snapshots(native: Any, catalog: str) -> None:
    """Refuse a catalog whose tables show only their newest snapshot, however it was configured.

    Raises:
        UnsupportedError: changes cannot be read from it.
    """
    settings = (native.conf.get(f"spark.sql.catalog.{catalog}.{one}", "") for one in ("type", "catalog-impl"))
    if any(value and (value in _LACKING or value.endswith("NessieCatalog")) for value in settings):
        raise UnsupportedError(
            f"The catalog {catalog!r} is Nessie's, which shows only the newest snapshot of a table: what changed since "
            "an older one cannot be read.",
            hint="read the table whole, or keep it in another catalog, such as iceberg-rest",
        )
