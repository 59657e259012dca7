"""``RememberedChanges``: changes of few rows that were read, for other views that follow the same tables."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from weirflow.ivm.zset.delta import WEIGHT

if TYPE_CHECKING:
    import pyarrow as pa

_KEPT_BYTES = 64 << 20


@dataclass
class _Change:
    """What changed in a table between two of its versions, as it was read: each time the columns that were wanted."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    tables: list[pa.Table] = field(default_factory=list)

    @property
    def nbytes(self) -> int:
        return sum(table.nbytes for table in self.tables)


class RememberedChanges:
    """Changes between versions of tables, which stay what they are, up to so many bytes. For several threads.

    >>> import pyarrow as pa
    >>> memory = RememberedChanges()
    >>> rows = pa.table({"a": [1], "b": [2], "_weight": [1]})
    >>> memory.get("t from 1 to 2", rows.schema, lambda: rows) is rows
    True
    >>> memory.get("t from 1 to 2", pa.schema([("b", pa.int64())]), lambda: 1 / 0).to_pydict()
    {'b': [2], '_weight': [1]}
    >>> memory.count("t from 1 to 2")
    1
    """

    def __init__(self, kept_bytes: int = _KEPT_BYTES) -> None:
        self._kept_bytes = kept_bytes
        self._lock = threading.Lock()
        self._changes: OrderedDict[Hashable, _Change] = OrderedDict()

    def get(self, change: Hashable, columns: pa.Schema, read: Callable[[], pa.Table]) -> pa.Table:
        """These columns of a change, and the weights; ``read`` is called if nobody has read them."""
        with self._lock:
            known = self._changes.setdefault(change, _Change())
            self._changes.move_to_end(change)
        with known.lock:  # others who want the same wait for it
            found = next((table for table in known.tables if _has(table, columns)), None)
            if found is not None:
                return _chosen(found, columns)
            table = read()
            known.tables.append(table)
        self._let_go(change, known)
        return table

    def put(self, change: Hashable, table: pa.Table) -> None:
        """A change that is known, with all columns and the weights: nobody has to read it."""
        known = _Change(tables=[table])
        with self._lock:
            self._changes[change] = known
            self._changes.move_to_end(change)
        self._let_go(change, known)

    def known(self, change: Hashable, columns: pa.Schema) -> pa.Table | None:
        """As ``get``, but None if nobody has read it."""
        with self._lock:
            known = self._changes.get(change)
            found = [] if known is None else list(known.tables)
        return next((_chosen(table, columns) for table in found if _has(table, columns)), None)

    def count(self, change: Hashable) -> int | None:
        """How many rows a change has; None if nobody has read it."""
        with self._lock:
            known = self._changes.get(change)
        return known.tables[0].num_rows if known is not None and known.tables else None

    def _let_go(self, change: Hashable, known: _Change) -> None:
        """Forget the oldest changes if they are too large together, and this one if it is by itself."""
        with self._lock:
            while len(self._changes) > 1 and sum(one.nbytes for one in self._changes.values()) > self._kept_bytes:
                self._changes.popitem(last=False)
            if known.nbytes > self._kept_bytes:
                self._changes.pop(change, None)


def _has(table: pa.Table, columns: pa.Schema) -> bool:
    places = {one.name: table.schema.get_field_index(one.name) for one in columns}
    return all(places[one.name] >= 0 and table.schema.field(places[one.name]).type == one.type for one in columns)


def _chosen(table: pa.Table, columns: pa.Schema) -> pa.Table:
    return table.select([*(name for name in columns.names if name != WEIGHT), WEIGHT])


_of_contexts: WeakKeyDictionary[object, RememberedChanges] = WeakKeyDictionary()


def remembered_changes(context: object) -> RememberedChanges:
    """Those of a Spark, by its context."""
    return _of_contexts.setdefault(context, RememberedChanges())
