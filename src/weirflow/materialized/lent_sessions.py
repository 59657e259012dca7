"""``LentSessions``: native sessions in which SQL means what it meant when a view was created, each for one refresh.

A session has catalogs of its own, which are slow to make and know the tables that were read last.
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Hashable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary, ref

from weirflow.flows.own_session import own_session, with_settings

if TYPE_CHECKING:
    from weirflow.materialized.definition import Definition

_KEPT = 8


@dataclass(frozen=True)
class LentSession:
    """One that nobody else has, and what tells those like it from others."""

    native: Any
    kind: Hashable


class LentSessions:
    """Those that share the Spark of one native session. For several threads.

    Args:
        main: whose catalogs they have, as these are when one is lent.
    """

    def __init__(self, main: Any) -> None:
        self._main = ref(main)
        self._lock = threading.Lock()
        self._free: list[LentSession] = []

    def lend(self, definition: Definition, *, is_new: bool = False) -> LentSession:
        """One for the query of a view: a new one if there is no other, or if it is to know no table yet."""
        main = self._main()
        assert main is not None
        kind = _kind(main, definition)
        with self._lock:
            for place, one in enumerate(() if is_new else self._free):
                if one.kind == kind:
                    return self._free.pop(place)
        return LentSession(_made(main, definition), kind)

    def take_back(self, lent: LentSession) -> None:
        """Keep one for the next who wants its like: it is as it was lent."""
        with self._lock:
            self._free.append(lent)
            del self._free[:-_KEPT]


_of_sessions: WeakKeyDictionary[Any, LentSessions] = WeakKeyDictionary()


def lent_sessions(main: Any) -> LentSessions:
    """Those beside a native session."""
    return _of_sessions.setdefault(main, LentSessions(main))


def _kind(main: Any, definition: Definition) -> Hashable:
    """What tells sessions of a kind from others; catalogs are known by their settings, which may be secret."""
    configured = str(main._jsparkSession.sessionState().conf().settings().toString())  # noqa: SLF001 - one call
    digest = hashlib.sha256(configured.encode()).digest()
    return digest, definition.settings, definition.catalog, definition.namespace


def _made(main: Any, definition: Definition) -> Any:
    native = with_settings(own_session(main), definition.settings)
    native.conf.set("spark.sql.sources.partitionOverwriteMode", "static")  # all rows are replaced, of all partitions
    native.catalog.setCurrentCatalog(definition.catalog)
    native.catalog.setCurrentDatabase(definition.namespace)
    return native
