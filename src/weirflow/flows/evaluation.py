"""Expressions that have no counterpart here, evaluated by Spark for the rows that a tick asks for."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pyarrow as pa

from weirflow.errors import DataError, QueryError
from weirflow.rows.types import spark_schema

_MOST_ROWS = 500_000
"""That go to Spark at once."""
_ROW = "_wf_row"


class SparkEvaluator:
    """Evaluates expressions over rows, in Spark sessions of its own, one for each choice of settings.

    Args:
        open_session: a new native session that shares the Session's Spark.
        run: runs a call as an operation of the Session, with its errors translated.
    """

    def __init__(self, open_session: Callable[[], Any], run: Callable[[str, Callable[[], Any]], Any]) -> None:
        self._open_session = open_session
        self._run = run
        self._sessions: dict[tuple[tuple[str, str], ...], Any] = {}
        self._lock = threading.Lock()

    def evaluate(self, expressions: Sequence[str], settings: Mapping[str, str], rows: pa.Table) -> pa.Table:
        """See ``EvaluatingEngine``."""
        slices = [rows.slice(at, _MOST_ROWS) for at in range(0, rows.num_rows, _MOST_ROWS)]
        return pa.concat_tables([self._evaluated(expressions, settings, one) for one in slices])

    def _evaluated(self, expressions: Sequence[str], settings: Mapping[str, str], rows: pa.Table) -> pa.Table:
        try:
            found: pa.Table = self._run("evaluate for a view", lambda: self._piece(expressions, settings, rows))
        except DataError:
            raise
        except QueryError as error:  # that it can be analyzed is proven, so it is about the rows
            raise DataError(error.message, hint=error.hint, condition=error.condition) from error
        return found

    def _piece(self, expressions: Sequence[str], settings: Mapping[str, str], rows: pa.Table) -> pa.Table:
        from weirflow.spark.frames.arrow import relation_frame  # noqa: PLC0415 - imports pyspark

        numbered = rows.append_column(_ROW, pa.array(range(rows.num_rows), pa.int32()))
        columns = [f"{text} AS `_wf_value{at}`" for at, text in enumerate(expressions)]
        frame = relation_frame(self._session(settings), numbered)
        found = frame.selectExpr(*columns, _ROW).toArrow()
        found = found.cast(spark_schema(found.schema))
        order = found.column(_ROW)
        if not order.equals(numbered.column(_ROW).cast(order.type)):
            found = found.sort_by(_ROW)
        return found.drop_columns(_ROW)

    def _session(self, settings: Mapping[str, str]) -> Any:
        key = tuple(sorted(settings.items()))
        with self._lock:
            if key not in self._sessions:
                native = self._open_session()
                for name, value in key:
                    if native.conf.get(name) != value:
                        native.conf.set(name, value)
                self._sessions[key] = native
            return self._sessions[key]
