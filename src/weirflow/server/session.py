"""``ServedSession``: the Session of a server, whose statements come from others."""

from __future__ import annotations

import importlib
import logging
from typing import TYPE_CHECKING, Any

from weirflow.session.session import Session

if TYPE_CHECKING:
    from weirflow.config import Settings

_log = logging.getLogger(__name__)


class ServedSession(Session):
    """A Session without what reaches beyond tables: functions that call any Java method, and paths as tables.

    For everybody, also for admins: what others send may be a part of what an admin runs.
    """

    def _prepare(self, native: Any) -> None:
        from weirflow.spark.analyzed.reach import is_classic, without_reflection  # noqa: PLC0415 - Spark is there now

        if is_classic(native):
            without_reflection(native)

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
    from weirflow.spark.analyzed.reach import HARDENED  # noqa: PLC0415 - beside what reads plans

    given = {name: getattr(settings, name) for name in settings.model_fields_set}
    given["spark_conf"] = {**settings.spark_conf, **HARDENED}
    given.setdefault("progress", "off")
    return ServedSession(**given)
