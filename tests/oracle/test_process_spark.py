"""Process functions in Spark queries: the rows of an embedded run, state that outlives the query, what is refused."""

# ruff: noqa: ARG002, RUF012 - functions keep to a contract

import operator
import random
import runpy
from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pytest

from weirflow import Trigger
from weirflow.errors import ConfigError, StateError, UnsupportedError, UserCodeError
from weirflow.process import CoProcessFunction, ProcessFunction, run_process
from weirflow.state import Aggregate, StateDescriptor, Ttl
from weirflow.testing.sequence import SequenceSource

# Spark's workers cannot import the example or this module: functions reach them by value.
FRAUD = runpy.run_path(str(Path(__file__).parents[2] / "examples" / "fraud.py"))
START = datetime(2026, 1, 1, tzinfo=UTC)
PAYMENTS = pa.schema({"account": pa.string(), "at": pa.timestamp("us", "UTC"), "amount": pa.float64()})
EVENTS = pa.schema({"user": pa.int64(), "at": pa.timestamp("us", "UTC"), "what": pa.string()})
SECOND = 1000


def everything():
    """A function that uses all kinds of state, timers and outputs; made here so that it is sent by value."""

    class Everything(ProcessFunction):
        output = "user BIGINT, seen BIGINT, total BIGINT, longest BIGINT, recent ARRAY<STRING>"
        side_outputs = {
            "timers": "user BIGINT, at BIGINT, watermark BIGINT, counts MAP<STRING, BIGINT>",
            "late": "user BIGINT, at TIMESTAMP, what STRING",
        }

        def open(self, ctx):
            self.seen = ctx.value(StateDescriptor("seen", int, int))
            self.recent = ctx.list(StateDescriptor("recent", int, list[str]))
            self.counts = ctx.map(StateDescriptor("counts", int, dict[str, int]))
            self.total = ctx.reducing(StateDescriptor("total", int, int), operator.add)
            longest = Aggregate(lambda: [0], lambda kept, word: [max(kept[0], len(word))], lambda kept: kept[0])
            self.longest = ctx.aggregating(StateDescriptor("longest", int, list[int]), longest)

        def on_element(self, ctx, key, row):
            what = row["what"]
            self.seen.set(self.seen.get(0) + 1)
            self.total.add(len(what))
            self.longest.add(what)
            self.counts.put(what, self.counts.get(what, 0) + 1)
            self.recent.add(what)
            if what == "quiet":
                ctx.timers.delete(ctx.timestamp + 5 * SECOND)
            elif what == "clear":
                self.counts.clear()
                self.recent.clear()
                self.seen.clear()
            elif what == "drop":
                self.counts.remove("a")
            else:
                ctx.timers.register(ctx.timestamp + 5 * SECOND)
                ctx.timers.register(ctx.timestamp + 5 * SECOND)
            if len(what) > 1:
                numbers = {"seen": self.seen.get(), "total": self.total.get(), "longest": self.longest.get()}
                ctx.emit({"user": key, **numbers, "recent": self.recent.get()})

        def on_timer(self, ctx, key, ts, kind):
            counts = dict(self.counts.items("b"))
            ctx.side("timers", {"user": key, "at": ts, "watermark": ctx.watermark, "counts": counts})
            self.recent.add(f"timer {ts // SECOND % 100}")
            if ts // SECOND % 3 == 0:
                ctx.timers.register(ts + 2 * SECOND)
                ctx.timers.delete(ts + SECOND)

    return Everything()


def random_batches(seed, batches=4, rows=18):
    """Events that mostly advance; the last one is far behind all others, so that every timer fires."""
    choice = random.Random(seed)
    words = ["a", "b", "c", "dd", "quiet", "clear", "drop", "ee"]
    made, now = [], 10
    for _ in range(batches):
        batch = []
        for _ in range(rows):
            now += choice.choice([0, 0, 1, 2])
            at = START + timedelta(seconds=now - choice.choice([0, 0, 0, 1, 9]))
            batch.append({"user": choice.randrange(4), "at": at, "what": choice.choice(words)})
        made.append(batch)
    return [*made, [{"user": 99, "at": START + timedelta(hours=1), "what": "zz"}]]


def embedded(function, batches, **options):
    """What each output gets, over all batches, without the end of the input."""
    results = list(run_process(function, batches, finish=False, **options))
    found = {"output": [row for result in results for row in result.rows.to_pylist()]}
    for tag in function.side_outputs:
        found[tag] = [row for result in results for row in result.sides[tag].to_pylist()]
    return found


def on_spark(stream, checkpoint, key, function, **options):
    """The same of a query that ends when its input does."""
    found = {tag: [] for tag in ("output", *function.side_outputs)}

    def take(outputs, _):
        for tag, frame in outputs.items():
            found[tag] += frame.toArrow().to_pylist()

    writer = stream.key_by(key).process(function, **options).each_batch(take)
    with writer.option("checkpointLocation", checkpoint).trigger(Trigger.available_now()).start() as query:
        query.await_termination(120)
    return found


def multisets(found):
    return {tag: Counter(map(repr, map(_comparable, rows))) for tag, rows in found.items()}


def _comparable(row):
    times = {name: value.timestamp() for name, value in row.items() if isinstance(value, datetime)}
    maps = {name: sorted(value) for name, value in row.items() if isinstance(value, list) and name == "counts"}
    return {**row, **times, **maps}


def test_the_fraud_detector_gives_the_rows_of_an_embedded_run(session, tmp_path):
    function, batches = FRAUD["FraudDetector"](), FRAUD["payments"]()
    with SequenceSource(PAYMENTS) as source:
        for batch in batches:
            source.add(batch)
        found = on_spark(source.stream(session).with_event_time("at"), tmp_path, "account", function)
    expected = embedded(function, batches, key="account", event_time="at")
    assert multisets(found) == multisets(expected)
    assert all(expected.values()), "every output is tried"


@pytest.mark.campaign
def test_all_kinds_of_state_and_timers_over_a_restart_and_read_from_outside(session, tmp_path):
    function, batches = everything(), random_batches(7)
    with SequenceSource(EVENTS) as source:
        for batch in batches[:2]:
            source.add(batch)
        found = on_spark(source.stream(session).with_event_time("at"), tmp_path, "user", function)
        for batch in batches[2:]:
            source.add(batch)
        rest = on_spark(source.stream(session).with_event_time("at"), tmp_path, "user", function)
    found = {tag: rows + rest[tag] for tag, rows in found.items()}
    expected = embedded(function, batches, key="user", event_time="at")
    assert multisets(found) == multisets(expected)
    assert all(expected.values()), "every output is tried"

    assert session.query_state(tmp_path, 0, "seen", 99) == 1
    assert session.query_state(tmp_path, 0, StateDescriptor("counts", int, dict[str, int]), 99) == {"zz": 1}
    assert session.query_state(tmp_path, 0, "recent", 99) == ["zz"]
    assert session.query_state(tmp_path, 0, "longest", 99) == [2]
    assert session.query_state(tmp_path, 0, "seen", 1234) is None
    assert session.query_state(tmp_path, 0, "seen", 99, at=0) is None
    session.state_table(tmp_path, 0, "counts").createOrReplaceTempView("counts")
    assert session.sql("SELECT * FROM counts WHERE user = 99").to_arrow().to_pylist() == [
        {"user": 99, "entry": "zz", "value": 1}
    ]
    with pytest.raises(StateError, match="no slot 'sen'"):
        session.query_state(tmp_path, 0, "sen", 99)
    with pytest.raises(StateError, match="no operator 3"):
        session.query_state(tmp_path, 3, "seen", 99)
    with pytest.raises(ConfigError, match="numbers"):
        session.query_state(tmp_path, "process", "seen", 99)


def test_timers_by_the_clock_and_state_that_expires(session, tmp_path):
    class Clocked(ProcessFunction):
        output = "user BIGINT, n BIGINT, timer BOOLEAN"

        def open(self, ctx):
            self.kept = ctx.value(StateDescriptor("kept", int, int, ttl=Ttl(timedelta(hours=1))))
            self.gone = ctx.value(StateDescriptor("gone", int, int, ttl=Ttl(timedelta(milliseconds=1))))

        def on_element(self, ctx, key, row):
            self.kept.set(self.kept.get(0) + 1)
            ctx.emit({"user": key, "n": self.kept.get() * 10 + self.gone.get(0), "timer": False})
            self.gone.set(5)
            ctx.timers.register(ctx.now, "processing")
            ctx.timers.register(ctx.now + 3_600_000, "processing")

        def on_timer(self, ctx, key, ts, kind):
            assert (ctx.timestamp, kind, ts) == (None, "processing", ctx.now)
            ctx.emit({"user": key, "n": self.kept.get(), "timer": True})

    event = {"user": 1, "at": START, "what": "a"}
    with SequenceSource(EVENTS) as source:
        source.add([event])
        source.add([event])
        found = on_spark(source.stream(session), tmp_path, "user", Clocked())
    assert [(row["n"], row["timer"]) for row in found["output"]] == [(10, False), (1, True), (20, False), (2, True)]
    assert session.query_state(tmp_path, 0, "kept", 1) == 2


def test_state_that_has_expired_takes_no_other_key_with_it(session, tmp_path):
    class Expiring(ProcessFunction):
        output = "user BIGINT, brief BIGINT"

        def open(self, ctx):
            self.brief = ctx.value(StateDescriptor("brief", int, int, ttl=Ttl(timedelta(seconds=10), "event")))
            self.other = ctx.value(StateDescriptor("other", int, int))

        def on_element(self, ctx, key, row):
            if row["what"] == "write":
                self.brief.set(key)
            elif row["what"] == "look":
                ctx.emit({"user": key, "brief": self.brief.get()})
            else:
                self.other.set(key)

    def events(what, second, users):
        return [{"user": user, "at": START + timedelta(seconds=second), "what": what} for user in users]

    odd, even = [1, 3, 5, 7, 9, 11], [2, 4, 6, 8, 10, 12]
    with SequenceSource(EVENTS) as source:
        source.add(events("write", 100, odd) + events("write", 108, even))
        source.add(events("other", 111, [99]))
        source.add(events("look", 112, odd) + events("other", 112, even))
        found = on_spark(source.stream(session).with_event_time("at"), tmp_path, "user", Expiring())
    assert multisets(found) == multisets({"output": [{"user": user, "brief": None} for user in odd]})
    left = session.state_table(tmp_path, 0, "brief").to_arrow().to_pylist()
    assert sorted(row["value"] for row in left if row["user"] in even) == even


def test_what_a_function_raises_names_it_and_the_key(session, tmp_path, capfd):
    class Failing(ProcessFunction):
        output = "user BIGINT"

        def on_element(self, ctx, key, row):
            if row["what"] == "raise":
                raise ValueError("no such thing")
            ctx.emit({"user": "not a number"})

    for what, message in (("raise", "raised ValueError: no such thing"), ("emit", "does not fit column 'user'")):
        with SequenceSource(EVENTS) as source:
            source.add([{"user": 7, "at": START, "what": what}])
            with pytest.raises(UserCodeError, match=message) as caught:
                on_spark(source.stream(session), tmp_path / what, "user", Failing())
        assert "Failing" in caught.value.message
        assert "\n" not in caught.value.message
        line = Failing.on_element.__code__.co_firstlineno + 2
        told = "Failing.on_element for the key 7 raised ValueError: no such thing at "
        told += f'{__file__}, line {line}: raise ValueError("no such thing")'
        assert what == "emit" or caught.value.message == told
    assert capfd.readouterr().err == ""


def test_what_spark_has_not_is_refused_before_anything_starts(session):
    class Broadcast(ProcessFunction):
        output = "user BIGINT"

        def open(self, ctx):
            ctx.broadcast(StateDescriptor("rules", None, dict[str, int]))

    class Both(CoProcessFunction):
        output = "user BIGINT"

    class Plain(ProcessFunction):
        output = "user BIGINT"
        side_outputs = {"odd": "user BIGINT"}

    with SequenceSource(EVENTS) as source:
        stream = source.stream(session)
        with pytest.raises(ConfigError, match="Broadcast has broadcast state, and no stream is broadcast to it"):
            stream.key_by("user").process(Broadcast())
        with pytest.raises(ConfigError, match="Both has two inputs, and one stream was given"):
            stream.key_by("user").process(Both())
        with pytest.raises(ConfigError, match="is not a ProcessFunction"):
            stream.key_by("user").process(len)
        with pytest.raises(ConfigError, match="uses event time, but its rows have none"):
            stream.key_by("user").process(Plain(), time="event")
        with pytest.raises(UnsupportedError, match="keys of type TIMESTAMP"):
            stream.key_by("at").process(Plain())
        with pytest.raises(ConfigError, match="no side output 'od'"):
            stream.key_by("user").process(Plain()).side("od")
        assert stream.key_by("user").process(Plain()).side("odd").columns == ["user"]


def test_a_timer_of_the_other_kind_says_what_to_change(session, tmp_path):
    class Mixed(ProcessFunction):
        output = "user BIGINT"

        def open(self, ctx):
            ctx.value(StateDescriptor("seen", int, int))

        def on_element(self, ctx, key, row):
            ctx.timers.register(ctx.now, "processing")

        def on_timer(self, ctx, key, ts, kind): ...

    with SequenceSource(EVENTS) as source:
        source.add([{"user": 7, "at": START, "what": "a"}])
        with pytest.raises(UserCodeError, match="all timers of its Spark query go by event time"):
            on_spark(source.stream(session).with_event_time("at"), tmp_path, "user", Mixed())
