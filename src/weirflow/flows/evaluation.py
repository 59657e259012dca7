"""Expressions that have no counterpart here, evaluated by Spark for the rows that a tick asks for."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from weirflow.errors import DataError, FunctionFailed, QueryError, UserCodeError
from weirflow.ivm.zset.hashing import has_floats
from weirflow.rows.types import spark_schema
from weirflow.sql.registered import PREFIX, versions

if TYPE_CHECKING:
    from weirflow.flows.functions import SessionFunctions

_MOST_ROWS = 500_000
"""That go to Spark at once."""
_MOST_RECENT, _SMALL = 64, 10_000
_ROW = "_wf_row"
_RULES = "spark.sql.optimizer.excludedRules"
_IN_PLANNING = "org.apache.spark.sql.catalyst.optimizer.ConvertToLocalRelation"
"""Evaluates small tables while a query is planned, where nothing can stop it."""


class RecentResults:
    """What was evaluated last of each question, for operators of a tick that ask the same: filters, then projections.

    Few and small: at most ``_MOST_RECENT`` results of ``_SMALL`` rows. Rows with floats are not kept, because Arrow
    takes 0.0 and -0.0 for equal.
    """

    def __init__(self) -> None:
        self._found: OrderedDict[Hashable, tuple[pa.Table, pa.Table]] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, wanted: Hashable, rows: pa.Table) -> pa.Table | None:
        """What was found for just these rows, if they were the last ones."""
        with self._lock:
            known = self._found.get(wanted)
        return None if known is None or not known[0].equals(rows) else known[1]

    def put(self, wanted: Hashable, rows: pa.Table, found: pa.Table) -> None:
        """Keep what was found."""
        if rows.num_rows > _SMALL or any(has_floats(column.type) for column in rows.columns):
            return
        with self._lock:
            self._found[wanted] = rows, found
            self._found.move_to_end(wanted)
            if len(self._found) > _MOST_RECENT:
                self._found.popitem(last=False)


class SparkEvaluator:
    """Evaluates expressions over rows, in Spark sessions of its own, one for each choice of settings.

    Args:
        open_session: a new native session that shares the Session's Spark.
        run: runs a call as an operation of the Session, with its errors translated.
        functions: those that expressions may call by name.
    """

    def __init__(
        self,
        open_session: Callable[[], Any],
        run: Callable[[str, Callable[[], Any]], Any],
        functions: SessionFunctions,
    ) -> None:
        self._functions = functions
        self._open_session = open_session
        self._run = run
        self._sessions: dict[tuple[tuple[str, str], ...], Any] = {}
        self._recent = RecentResults()
        self._lock = threading.Lock()

    def evaluate(self, expressions: Sequence[str], settings: Mapping[str, str], rows: pa.Table) -> pa.Table:
        """See ``EvaluatingEngine``."""
        self._functions.require(versions(settings))
        wanted = tuple(expressions), tuple(sorted(settings.items()))
        found = self._recent.get(wanted, rows)
        if found is None:
            found = self._in_pieces(expressions, settings, rows)
            self._recent.put(wanted, rows, found)
        return found

    def _in_pieces(self, expressions: Sequence[str], settings: Mapping[str, str], rows: pa.Table) -> pa.Table:
        slices = [rows.slice(at, _MOST_ROWS) for at in range(0, rows.num_rows, _MOST_ROWS)]
        return pa.concat_tables([self._evaluated(expressions, settings, one) for one in slices])

    def _evaluated(self, expressions: Sequence[str], settings: Mapping[str, str], rows: pa.Table) -> pa.Table:
        try:
            found: pa.Table = self._run("evaluate for a view", lambda: self._piece(expressions, settings, rows))
        except DataError:
            raise
        except UserCodeError as error:
            raise FunctionFailed(error.message, hint=error.hint) from error
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
        key = tuple(sorted(one for one in settings.items() if not one[0].startswith(PREFIX)))
        with self._lock:
            if key not in self._sessions:
                native = self._open_session()
                native.conf.set(_RULES, _IN_PLANNING)
                for name, value in key:
                    if native.conf.get(name) != value:
                        native.conf.set(name, value)
                self._sessions[key] = native
            if versions(settings):
                self._functions.install(self._sessions[key], anew=False)
            return self._sessions[key]
