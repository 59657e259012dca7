"""The catalogue of bad arguments, of public calls that need a Session; see test_bad_arguments.py."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from support.argument_examples import MEANT, ON_SPARK, ORDERS, TOTALS, Counting, Pairing, every
from support.bad_arguments import ANYTHING, Catalogue, Situation, refused_by_form
from support.hostile_values import hostile_values
from support.public_api import public_calls
from support.unlisted_calls import is_for_users

from weirflow import IncrementalFlow
from weirflow.streaming.query.listeners import StreamingQueryListener
from weirflow.streaming.trigger import Trigger

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from support.public_api import Call

    from weirflow import Session

HARD_TO_COME_BY = frozenset(
    {"DetachedQuery", "MaterializedView", "ProcessedStream", "QuerySavepoints", "StreamingQuery", "TableFeed"}
)
"""Classes whose objects take a query, a job or a lake's table: what their signatures refuse is refused before that."""

IN_SHARDS = frozenset({"PartitionedIncrementalFlow"})
"""Flows in shards: their calls are those of ``PartitionedFlow``, but for some that are refused before Spark runs."""


TEXTS = ("a word", "a digit", "a million letters", "NUL")
OPTIONS = (
    *("True", "-1", "0", "a large int", "1.5", "-0.5", "1e300", "empty text", "blanks", *TEXTS),
    *("a path below a file", "a file"),
)
READERS = ("read_csv", "read_json", "read_parquet", "read_stream")
LATER = {"a path below a file": "looked at when it is used"}
LATER_FILES = {**LATER, "a file": "looked at when it is used"}
PARAMS = every("values for markers, which Spark counts", "an empty list", "a list of ints", "an empty dict")

MEANT_ON_SPARK: dict[str, dict[str, str]] = {
    "partition_by": {"an empty list": "none"},
    "DataFrame.write_table.name": {"a word": "a table"},
    **dict.fromkeys(("at", "WindowedStream.late_rows.path"), LATER),
    **dict.fromkeys(("Session.single_node.path", "StreamingQueryManager.detached.at"), LATER_FILES),
    "Session.flow.options": {"0": "none", "a large int": "as many"},
    **dict.fromkeys(("DataStreamWriter.option.value", "DataStreamWriter.options.options"), every("as text", *OPTIONS)),
    "expressions": {"a digit": "a constant"},
    **dict.fromkeys(("gap", "size", "slide"), every("Spark reads it", "a large int", *TEXTS)),
    "Session.distributed.token": every("the server looks at it", "empty text", "blanks", *TEXTS),
    **{f"Session.{one}.options": {ANYTHING: "PySpark's reader knows its options"} for one in READERS},
    "settings": {"None": "not given"},
    "params": PARAMS,
    "Session.submit.params": {**PARAMS, "nested garbage": "the job fails"},
    "Session.submit.query": every("the job fails", *TEXTS),
    "timeout_ms": every("long enough, or not", "a large int", "1.5"),
    **{f"Session.{one}.path": {"a file": "it is read"} for one in ("read_csv", "read_json")},
    "Session.udf.function": every("called with rows", "a class", "a function without arguments"),
    "Session.udf.returns": every("Spark reads it", *TEXTS),
}


def covered_calls() -> list[Call]:
    """Of what classes inherit, each function once."""
    seen = {call.function for call in public_calls() if call.owner is not None and call.owner.__name__ not in ON_SPARK}
    found = []
    for call in public_calls():
        if call.owner is not None and call.owner.__name__ in ON_SPARK and call.arguments and is_for_users(call.id):
            if call.function not in seen:
                found.append(call)
            seen.add(call.function)
    return found


def situations(session: Session) -> dict[str, Situation]:
    def new_flow() -> Any:
        flow = session.flow("catalogue")
        if not flow.sources:
            flow.register_source("orders", ORDERS)
            flow.register_view("totals", TOTALS)
            flow.tick("orders", [{"id": 1, "amount": 5}])
        return flow

    def one_row(frame: Any) -> None:
        assert frame.to_arrow().to_pylist() == [{"id": 1}]

    def still_answers(_: Any) -> None:
        assert session.sql("SELECT 1 AS one").to_arrow().to_pylist() == [{"one": 1}]

    def still_ticks(flow: Any) -> None:
        (before,) = flow.snapshot("totals").column("n").to_pylist()
        flow.tick("orders", [{"id": 2, "amount": 7}])
        assert flow.snapshot("totals").column("n").to_pylist() == [before + 1]

    def has_columns(frame: Any) -> None:
        assert frame.columns == ["timestamp", "value"]

    def counts(grouped: Any) -> None:
        assert "n" in grouped.agg("count(*) AS n").columns

    stream = session.read_stream("rate").with_event_time("timestamp")
    frame = session.from_arrow([{"id": 1}])
    done = session.submit("SELECT 1 AS one")
    assert done.wait(30)
    return {
        "Session": Situation(lambda: session, still_answers),
        "SessionFlow": Situation(new_flow, still_ticks),
        "DataFrame": Situation(lambda: frame, one_row),
        "StreamingDataFrame": Situation(lambda: stream, has_columns),
        "KeyedStream": Situation(lambda: stream.key_by("value"), counts),
        "ConnectedStreams": Situation(lambda: stream.key_by("value").connect(stream.key_by("value"))),
        "WindowedStream": Situation(lambda: stream.tumbling_window(1000), counts),
        "DataStreamWriter": Situation(stream.write_stream),
        "StreamingQueryManager": Situation(lambda: session.streams, still_answers),
        "Operations": Situation(lambda: session.operations, still_answers),
        "Operation": Situation(lambda: done),
        "Submitted": Situation(lambda: done),
    }


def valid_arguments(session: Session, folder: Path) -> dict[str, Callable[[], Any]]:
    numbers = iter(range(10**9))
    flow = IncrementalFlow()
    flow.register_source("orders", ORDERS)
    return {
        "address": lambda: "iceberg-rest+http://127.0.0.1:1",
        "at": lambda: folder / "jobs",
        "column": lambda: "timestamp",
        "data": lambda: [{"id": 1}],
        "endpoint": lambda: "sc://localhost:1",
        "expressions": lambda: "count(*) AS n",
        "flow": lambda: flow,
        "func": lambda: lambda frame: frame,
        "function": lambda: lambda value: value,
        "gap": lambda: 1000,
        "job": lambda: folder / "state",
        "key": lambda: "ann",
        "listener": StreamingQueryListener,
        "mode": lambda: "append",
        "name": lambda: "catalogue_rows",
        "names": lambda: ["totals"],
        "other": lambda: session.read_stream("rate").key_by("value"),
        "operation_id": lambda: "none",
        "operator": lambda: "op",
        "path": lambda: folder / f"path {next(numbers)}",
        "query": lambda: "SELECT 1 AS one",
        "size": lambda: 1000,
        "slide": lambda: 1000,
        "slot": lambda: "slot",
        "source": lambda: "orders",
        "stream": lambda: session.read_stream("rate"),
        "table": lambda: "catalogue_rows",
        "tag": lambda: "late",
        "timeout_ms": lambda: 20_000,
        "trigger": Trigger.available_now,
        "value": lambda: "1",
        "view": lambda: "totals",
        "DataStreamWriter.foreach_batch.function": lambda: lambda _frame, _number: None,
        "ConnectedStreams.process.function": Pairing,
        "KeyedStream.process.function": Counting,
    }


@pytest.mark.campaign
def test_bad_arguments(session: Session, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    session.register("catalogue_rows", [{"id": 1}])
    values = hostile_values(tmp_path, letters=10_000)
    meant = MEANT | MEANT_ON_SPARK
    made, valid = situations(session), valid_arguments(session, tmp_path)
    options = {"Session.add_catalog": "token", "Session.flow": "history", "SessionFlow.salvage": "history"}
    catalogue = Catalogue(values, made, valid, meant, options=options, runs_meant=False, controls=False, by_call=True)
    for call in covered_calls():
        assert call.owner is not None
        if call.owner.__name__ in HARD_TO_COME_BY | IN_SHARDS:
            rows, problems = refused_by_form(call, values)
            catalogue.rows += rows
            catalogue.problems += problems
        else:
            catalogue.try_call(call)
    assert catalogue.problems == []
