"""The Session that tests of one process share: at most one Spark runs there at a time."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from weirflow import Session

if TYPE_CHECKING:
    from collections.abc import Iterator


PARTITIONS = "spark.sql.shuffle.partitions"
INTERPRETED = {"spark.sql.codegen.wholeStage": "false", "spark.sql.codegen.factoryMode": "NO_CODEGEN"}
"""A query of a test runs once, over a few rows: compiling it takes longer than interpreting it."""
SETTINGS = {"cores": 2, "driver_memory": "1g", "progress": "off", "spark_conf": INTERPRETED}


class SharedSession:
    """A Session that is opened when first asked for, and again after it was closed."""

    def __init__(self) -> None:
        self._session: Session | None = None
        self._settings: dict[str, Any] = {}

    def open(self, **settings: Any) -> Session:
        """The one with these settings; one with others is closed, because there is no Spark beside it."""
        if self._settings != settings:
            self.close()
        if self._session is None:
            conf = {**INTERPRETED, **settings.get("spark_conf", {})}
            self._session = Session(**{**SETTINGS, **settings, "spark_conf": conf})
            self._settings = settings
        return self._session

    @contextmanager
    def borrowed(self, **settings: Any) -> Iterator[Session]:
        """``open`` for one test: names registered, tables written and flows opened are gone afterwards."""
        opened = self.open(**settings)
        before, flows = opened.spark.conf.get(PARTITIONS), _flows(opened)
        yield opened
        for flow in _flows(opened):
            if flow not in flows:
                flow.close()
        assert list(opened.operations) == []
        assert opened.spark.conf.get(PARTITIONS) == before, "later tests would be slow: Spark's default is 200"
        if _has_tables(opened):
            for name in opened.tables():
                opened.drop(name)

    def close(self) -> None:
        if self._session is not None:
            self._session.close()
            self._session = None


def _flows(session: Session) -> list[Any]:
    """The flows that are open; to ask for them would make the Session look for tables among them ever after."""
    return [] if session._flow_sql is None else list(session._flow_sql.flows.opened)


def _has_tables(session: Session) -> bool:
    """Whether there are names to drop; unlike a query this takes no time."""
    catalog = session.spark._jsparkSession.sessionState().catalog()
    return bool(catalog.listTables(catalog.getCurrentDatabase()).nonEmpty())
