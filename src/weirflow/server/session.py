"""``ServedSession``: the Session of a server, whose statements come from others."""

from __future__ import annotations

import importlib
import logging
from typing import TYPE_CHECKING, Any

from weirflow.session.session import Session

if TYPE_CHECKING:
    from weirflow.config import Settings

_log = logging.getLogger(__name__)

_EXECUTORS = "spark.executor.extraJavaOptions"


class ServedSession(Session):
    """A Session without what reaches beyond tables: functions that call Java methods, paths as tables, documents' DTDs.

    For everybody, also for admins: what others send may be a part of what an admin runs.
    """

    def _prepare(self, native: Any) -> None:
        from weirflow.spark.analyzed import reach  # noqa: PLC0415 - Spark is there now

        if reach.is_classic(native):
            reach.without_reflection(native)
            reach.without_external_dtds(native)

    def executor_hosts(self) -> list[str]:
        """The hosts of Spark's executors; none if Spark was not started, or does not tell."""
        engine = self._engine
        if engine is None:
            return []
        from weirflow.spark.jobs.executors import executor_hosts  # noqa: PLC0415 - Spark is there

        try:
            return executor_hosts(engine.session)
        except Exception as error:  # noqa: BLE001 - Spark may end at any moment, in any of its own ways
            _log.debug("Spark does not tell its executors: %s", error)
            return []


def served_session(settings: Settings) -> ServedSession:
    """The Session of these settings, for a server.

    It imports pyspark at once: its modules need each other, and threads of which each begins with another one, as first
    requests do, find them half imported.
    """
    importlib.import_module("pyspark.sql")
    from weirflow.spark.analyzed.reach import EXECUTORS_WITHOUT_DTDS, HARDENED  # noqa: PLC0415 - beside what reads plans

    given = {name: getattr(settings, name) for name in settings.model_fields_set}
    conf = {**settings.spark_conf, **HARDENED}
    if (settings.endpoint or "").startswith("spark://"):
        conf[_EXECUTORS] = f"{conf.get(_EXECUTORS, '')} {EXECUTORS_WITHOUT_DTDS}".strip()
    given["spark_conf"] = conf
    given.setdefault("progress", "off")
    return ServedSession(**given)
