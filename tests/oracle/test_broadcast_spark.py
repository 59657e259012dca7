"""Functions with a broadcast input in Spark queries: the rows of an embedded run, also over restarts and kills."""

# ruff: noqa: ARG002 - functions keep to a contract

import json
import random
import signal
import subprocess
import sys
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import functions as sf
from support.ruled_payments import (
    EVENT_TIME,
    KEY,
    PAYMENTS,
    RULES,
    START,
    embedded,
    multisets,
    random_batches,
    ruled_payments,
    together,
)

from weirflow import Trigger
from weirflow.errors import ConfigError, StateError, UnsupportedError, UserCodeError
from weirflow.process import ProcessFunction
from weirflow.spark.process.lanes import LANE, LANES, copy_key, copy_lane, in_every_lane, in_lanes
from weirflow.state import StateDescriptor
from weirflow.testing.sequence import SequenceSource

TESTS = Path(__file__).parents[1]


def sources(folder):
    return SequenceSource(PAYMENTS, folder / "payments"), SequenceSource(RULES, folder / "rules")


@contextmanager
def partitions(session, count):
    """Have queries that begin here keep their state in so many partitions."""
    before = session.spark.conf.get("spark.sql.shuffle.partitions")
    session.spark.conf.set("spark.sql.shuffle.partitions", count)
    try:
        yield
    finally:
        session.spark.conf.set("spark.sql.shuffle.partitions", before)


def add(opened, batches):
    for pair in batches:
        for source, rows in zip(opened, pair, strict=True):
            source.add(rows)


def write(session, opened, function, checkpoint, take):
    """Run a query that ends when its input does; ``take`` gets the outputs of each batch."""
    payments, rules = (source.stream(session) for source in opened)
    stream = payments.with_event_time(EVENT_TIME).key_by(KEY).process(function, broadcast=rules)
    writer = stream.each_batch(take).option("checkpointLocation", checkpoint).trigger(Trigger.available_now())
    with writer.start() as query:
        query.await_termination(240)


def collected(session, opened, function, checkpoint):
    """What each output gets of each batch."""
    found = []

    def take(outputs, _):
        found.append({tag: frame.to_pylist() for tag, frame in outputs.items()})

    write(session, opened, function, checkpoint, take)
    return found


def by_batch(outputs):
    """What rows put out, batch by batch. Timers may fire with the next one, also where there is nothing else."""
    told = [multisets({tag: rows for tag, rows in batch.items() if tag != "quiet"}) for batch in outputs]
    return [batch for batch in told if any(batch.values())]


def test_batches_give_the_rows_of_an_embedded_run_over_a_restart(session, tmp_path):
    function, batches = ruled_payments(), random_batches(3, accounts=40)
    opened = sources(tmp_path)
    add(opened, batches[:2])
    with partitions(session, 5):
        found = collected(session, opened, function, tmp_path / "checkpoint")
    add(opened, batches[2:])
    # The query keeps the number of partitions that it began with.
    with partitions(session, 2):
        found += collected(session, opened, function, tmp_path / "checkpoint")
    assert len(list((tmp_path / "checkpoint" / "state" / "0").glob("[0-9]"))) == 5

    expected = embedded(function, batches)
    assert by_batch(found) == by_batch(expected)
    assert multisets(together(found)) == multisets(together(expected))
    assert all(together(expected).values()), "every output is tried"

    assert session.query_state(tmp_path / "checkpoint", 0, "seen", "last") == 1
    assert {KEY: "last", "value": 1} in session.state_table(tmp_path / "checkpoint", 0, "seen").to_pylist()
    with pytest.raises(StateError, match="has no slot 'rules'") as caught:
        session.state_table(tmp_path / "checkpoint", 0, "rules")
    assert caught.value.hint == "its slots are: seen"


CHILD = """
import os, signal, sys
from pathlib import Path
sys.path[:0] = [sys.argv[1], sys.argv[1] + "/oracle"]
from test_broadcast_spark import partitions, sources, told_to_files, write
from support.ruled_payments import ruled_payments
from weirflow import Session

folder, last = Path(sys.argv[2]), int(sys.argv[3])
keep = told_to_files(folder)

def take(outputs, number):
    keep(outputs, number)
    if number == last:
        os.kill(os.getpid(), signal.SIGKILL)

if __name__ == "__main__":
    with Session.embedded(progress="off") as session, partitions(session, 4):
        write(session, sources(folder), ruled_payments(), folder / "checkpoint", take)
"""


def told_to_files(folder):
    """Keeps the outputs of each batch in a file of its number, so that a repeated one takes the place of the first."""

    def keep(outputs, number):
        found = {tag: frame.to_pylist() for tag, frame in outputs.items()}
        (folder / f"batch-{number:03}.json").write_text(json.dumps(found, default=datetime.isoformat))

    return keep


def test_a_query_that_is_killed_within_a_batch_goes_on_as_if_it_had_not_been(session, tmp_path):
    function, batches = ruled_payments(), random_batches(8, accounts=40)
    opened = sources(tmp_path)
    add(opened, batches)
    done = subprocess.run(
        [sys.executable, "-c", CHILD, str(TESTS), str(tmp_path), "2"],
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == -signal.SIGKILL, done.stderr
    # State of the batch is stored, and the batch is not committed.
    assert sorted(int(one.name) for one in (tmp_path / "checkpoint" / "commits").glob("[0-9]*")) == [0, 1]
    write(session, opened, function, tmp_path / "checkpoint", told_to_files(tmp_path))

    found = [json.loads(one.read_text()) for one in sorted(tmp_path.glob("batch-*.json"))]
    for batch in found:
        for row in batch["late"]:
            row["at"] = datetime.fromisoformat(row["at"])
    expected = embedded(function, batches)
    assert by_batch(found) == by_batch(expected)
    assert multisets(together(found)) == multisets(together(expected))


@pytest.mark.parametrize("kind", ["bigint", "string", "double", "float", "smallint", "boolean", "binary"])
def test_spark_hashes_keys_and_copies_to_their_lane(session, kind):
    choice = random.Random(kind)
    numbers = [choice.randrange(-(2**60), 2**60) for _ in range(300)] + [0, None]
    spark = session.spark
    frame = spark.createDataFrame([(one,) for one in numbers], "n BIGINT")
    number = {"boolean": sf.col("n") > 0, "binary": sf.encode(sf.col("n").cast("string"), "utf-8")}
    small = sf.pmod(sf.col("n"), sf.lit(30_000)) if kind == "smallint" else sf.col("n")
    frame = frame.select(number.get(kind, small.cast(kind)).alias("a key"), sf.lit("x").alias("b"))
    keys = frame.select(*in_lanes(["a key", "b"]))
    rows = keys.select(LANE, sf.hash(*keys.columns).alias("hash")).collect()
    assert len(rows) == len(numbers)
    assert all(row[LANE] == row["hash"] for row in rows)
    assert len({row[LANE] for row in rows}) > (LANES // 2 if kind != "boolean" else 1)

    types = [(field.name, field.dataType) for field in frame.schema.fields]
    copies = in_every_lane(spark.range(1), types, "row").drop("row")
    rows = copies.select("*", sf.hash(*copies.columns).alias("hash")).collect()
    assert [copy_lane(row[LANE]) for row in rows] == list(range(LANES)) == [row["hash"] for row in rows]
    assert [tuple(row)[:-1] for row in rows] == [copy_key(lane, 2) for lane in range(LANES)]
    assert copies.dtypes == keys.dtypes


class Limits(ProcessFunction):
    output = "n BIGINT"

    def open(self, ctx):
        self.limits = ctx.broadcast(StateDescriptor("limits", None, dict[str, int]))

    def on_broadcast(self, ctx, row):
        raise ValueError("no such rule")


def test_what_on_broadcast_raises_names_it(session, tmp_path):
    class Failing(ProcessFunction):
        output = "n BIGINT"

        def on_broadcast(self, ctx, row):
            raise ValueError("no such rule")

    opened = sources(tmp_path)
    add(opened, [([], [{"rule": "a", "most": 1}])])
    with pytest.raises(UserCodeError, match=r"Failing.on_broadcast raised ValueError: no such rule"):
        collected(session, opened, Failing(), tmp_path / "checkpoint")


def test_what_cannot_be_right_is_refused_before_anything_starts(session, tmp_path):
    class Deaf(ProcessFunction):
        output = "n BIGINT"

    times = SequenceSource(PAYMENTS, tmp_path / "times").stream(session).with_event_time("at")
    payments, rules = (source.stream(session) for source in sources(tmp_path))
    keyed = payments.key_by(KEY)
    with pytest.raises(ConfigError, match="Limits has broadcast state, and no stream is broadcast to it"):
        keyed.process(Limits())
    with pytest.raises(ConfigError, match="Deaf is given a broadcast stream and has no on_broadcast"):
        keyed.process(Deaf(), broadcast=rules)
    with pytest.raises(ConfigError, match="The broadcast stream has an event time"):
        keyed.process(Limits(), broadcast=times)
    with pytest.raises(UnsupportedError, match="keys of type TIMESTAMP"):
        payments.key_by("at").process(Limits(), broadcast=rules)
    assert keyed.process(Limits(), broadcast=rules).columns == ["n"]


def test_keys_of_several_columns_and_rows_of_all_types(session, tmp_path):
    class Told(ProcessFunction):
        output = "key STRING, told STRING"

        def open(self, ctx):
            self.told = ctx.broadcast(StateDescriptor("told", None, dict[int, str]))

        def on_broadcast(self, ctx, row):
            self.told.put(row["id"], repr(row))

        def on_element(self, ctx, key, row):
            ctx.emit({"key": repr((key, row["number"])), "told": " ".join(self.told.values())})

    rows = pa.schema({"name": pa.string(), "number": pa.int64()})
    nested = pa.struct({"a": pa.list_(pa.int64()), "b": pa.string()})
    told = pa.schema({"id": pa.int64(), "one": nested, "raw": pa.binary(), "few": pa.map_(pa.string(), pa.int64())})
    say = [{"id": 1, "one": {"a": [1, None], "b": "ü"}, "raw": b"\x00", "few": [("k", 1)]}]
    say += [{"id": 2, "one": None, "raw": None, "few": None}]
    with SequenceSource(rows, tmp_path / "rows") as left, SequenceSource(told, tmp_path / "told") as right:
        left.add([{"name": None, "number": 1}, {"name": "x", "number": 2}])
        right.add(say)
        stream = left.stream(session).key_by("name", "number").process(Told(), broadcast=right.stream(session))
        found = []
        writer = stream.write_stream().foreach_batch(lambda batch, _: found.extend(batch.to_pylist()))
        writer = writer.option("checkpointLocation", tmp_path / "checkpoint").trigger(Trigger.available_now())
        with writer.start() as query:
            query.await_termination(120)
    assert sorted(row["key"] for row in found) == ["(('x', 2), 2)", "((None, 1), 1)"]
    assert {row["told"] for row in found} == {" ".join(map(repr, say))}


def test_on_broadcast_and_callbacks_for_keys_see_the_time_of_their_batch(session, tmp_path):
    class Clocked(ProcessFunction):
        output = "told BIGINT, now BIGINT, timer BOOLEAN"

        def open(self, ctx):
            self.told = ctx.broadcast(StateDescriptor("told", None, dict[str, int]))
            self.seen = ctx.value(StateDescriptor("seen", str, int))

        def on_broadcast(self, ctx, row):
            self.told.put("now", ctx.now)

        def on_element(self, ctx, key, row):
            ctx.emit({"told": self.told.get("now"), "now": ctx.now, "timer": False})
            ctx.timers.register(ctx.now, "processing")

        def on_timer(self, ctx, key, ts, kind):
            ctx.emit({"told": self.told.get("now"), "now": ctx.now, "timer": True})

    payment, rule = {"account": "x", "at": START, "amount": 1}, {"rule": "a", "most": 1}
    payments, rules = opened = sources(tmp_path)
    add(opened, [([payment], [rule]), ([payment], [rule])])
    stream = payments.stream(session).key_by(KEY).process(Clocked(), broadcast=rules.stream(session))
    found = []
    writer = stream.write_stream().foreach_batch(lambda batch, _: found.append(batch.to_pylist()))
    writer = writer.option("checkpointLocation", tmp_path / "checkpoint").trigger(Trigger.available_now())
    with writer.start() as query:
        query.await_termination(120)
    first, second = ([(row["timer"], row["told"] == row["now"]) for row in batch] for batch in found)
    assert first == second == [(False, True), (True, True)]
    assert found[0][0]["now"] < found[1][0]["now"]


def test_large_copies_are_read_as_they_were_written_and_stored_anew_now_and_then(session, tmp_path):
    class Large(ProcessFunction):
        output = "told STRING"

        def open(self, ctx):
            from weirflow.spark.process import copies  # noqa: PLC0415 - of the worker

            copies._remembered.clear()
            self.told = ctx.broadcast(StateDescriptor("told", None, dict[str, str]))

        def on_broadcast(self, ctx, row):
            self.told.put(row["rule"], chr(96 + row["most"]) * 700_000)

        def on_element(self, ctx, key, row):
            ctx.emit({"told": " ".join(f"{rule}:{len(text)}{text[-1]}" for rule, text in self.told.items())})

    payment = {"account": "x", "at": START, "amount": 1}
    payments, rules = opened = sources(tmp_path)
    told = [[("a", 1), ("b", 2), ("c", 3)], [], [("b", 5)], [("a", 6), ("c", 7)], [("b", 8)], []]
    add(opened, [([payment], [{"rule": rule, "most": most} for rule, most in rows]) for rows in told])
    stream = payments.stream(session).key_by(KEY).process(Large(), broadcast=rules.stream(session))
    found = []
    writer = stream.write_stream().foreach_batch(
        lambda batch, _: found.extend(row["told"] for row in batch.to_pylist())
    )
    writer = writer.option("checkpointLocation", tmp_path / "checkpoint").trigger(Trigger.available_now())
    with writer.start() as query:
        query.await_termination(240)
    texts = ["aabbcc", "aabbcc", "aabecc", "afbecg", "afbhcg", "afbhcg"]
    assert found == [" ".join(f"{text[at]}:700000{text[at + 1]}" for at in (0, 2, 4)) for text in texts]
