"""Names of snapshots: relations of a flow that hold the rows that a table outside of it had at some moment.

No source or view can have such a name, for it is no identifier. The name is all that tells a snapshot from a source, so
that it is stored like one.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

_NAME = re.compile(r"snapshot (?:(\d+) )?of (.+)", re.DOTALL)
_PLAIN = re.compile(r"[A-Za-z_]\w*", re.ASCII)


def table_of(name: str) -> str | None:
    """The table that a relation is a snapshot of, as SQL names it; None for a source or view.

    >>> table_of("snapshot 2 of shop.orders"), table_of("orders")
    ('shop.orders', None)
    """
    found = _NAME.fullmatch(name)
    return None if found is None else found[2]


def is_snapshot(name: str) -> bool:
    """Whether the name is that of a snapshot."""
    return table_of(name) is not None


def snapshots_of(table: str, known: Iterable[str]) -> list[str]:
    """Those of the known relations that are snapshots of a table, which may have had other columns at times.

    >>> snapshots_of("shop.Orders", ["orders", "snapshot of shop.orders"])
    ['snapshot of shop.orders']
    """
    return [name for name in known if is_same_table(table, table_of(name) or "")]


def is_same_table(one: str, other: str) -> bool:
    """Whether two names of tables are the same one's; where it is a file, upper and lower case differ."""
    return one == other or (one.casefold() == other.casefold() and "/" not in one)


def free_name(table: str, known: Iterable[str]) -> str:
    """A name for a snapshot of a table that none of the known relations has.

    >>> free_name("shop.orders", ["snapshot of shop.orders"])
    'snapshot 2 of shop.orders'
    """
    taken = {name.casefold() for name in known}
    name, number = f"snapshot of {table}", 1
    while name.casefold() in taken:
        number += 1
        name = f"snapshot {number} of {table}"
    return name


def shown_name(parts: Iterable[str]) -> str:
    """A table's name as SQL reads it, in quotes only where they are needed.

    >>> shown_name(["parquet", "/data/a`b"])
    'parquet.`/data/a``b`'
    """
    return ".".join(part if _PLAIN.fullmatch(part) else "`" + part.replace("`", "``") + "`" for part in parts)
