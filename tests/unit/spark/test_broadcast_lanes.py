"""Broadcast state in lanes, in tasks as Spark runs them: the rows of an embedded run, whatever the partitions."""

# ruff: noqa: ARG002, N802 - functions keep to a contract, times have Spark's names

import random
from datetime import timedelta

import pytest
from support.lane_engine import LaneEngine, Partition, lane_key, packed
from support.ruled_payments import (
    EVENT_TIME,
    KEY,
    PAYMENTS,
    START,
    embedded,
    multisets,
    random_batches,
    ruled_payments,
    together,
)

from weirflow.errors import ConfigError, StateError, UnsupportedError, UserCodeError
from weirflow.process import CoProcessFunction, ProcessFunction, ProcessRunner
from weirflow.process.hosted.broadcast import HostedBroadcastFunction
from weirflow.process.hosted.one_input import HostedProcessFunction
from weirflow.process.hosted.two_inputs import HostedCoProcessFunction
from weirflow.spark.process import copies
from weirflow.spark.process.lanes import LANES, copy_key, copy_lane, hash_int, steered
from weirflow.spark.process.stream import LaneProcessor
from weirflow.state import StateDescriptor, Ttl


@pytest.fixture(autouse=True)
def nothing_remembered():
    copies._remembered.clear()


def engine(function, partitions, event_time=EVENT_TIME):
    return LaneEngine(function, PAYMENTS.names, event_time, partitions)


def by_batch(outputs):
    """The rows that callbacks for rows put out, which come with their batch; timers may fire with the next one."""
    return [multisets({tag: rows for tag, rows in batch.items() if tag != "quiet"}) for batch in outputs]


@pytest.mark.parametrize("partitions", [1, 2, 5, 40])
@pytest.mark.parametrize("seed", range(8))
def test_batches_give_the_rows_of_an_embedded_run(seed, partitions):
    function, batches = ruled_payments(), random_batches(seed)
    spark = engine(function, partitions)
    found = [spark.batch(payments, rules, KEY) for payments, rules in batches]

    expected = embedded(function, batches, parallelism=3)
    assert by_batch(found) == by_batch(expected)
    assert multisets(together(found)) == multisets(together(expected))
    assert all(together(expected).values()), "every output is tried"


def test_what_workers_remember_changes_nothing():
    function, batches = ruled_payments(), random_batches(3)
    expected = multisets(together(embedded(function, batches)))
    for forget in (copies._remembered.clear, lambda: None):
        spark, found = engine(function, 3), []
        for payments, rules in batches:
            forget()
            found.append(spark.batch(payments, rules, KEY))
        assert multisets(together(found)) == expected
    copies._remembered.clear()
    spark = engine(function, 1)
    spark.batch([], batches[2][1], KEY)
    read = spark.partitions[0].reads
    spark.batch(batches[0][0], [], KEY)
    assert spark.partitions[0].reads == read, "the worker knows what it has written"
    copies._remembered.clear()
    spark.batch(batches[1][0], [], KEY)
    assert spark.partitions[0].reads == read + 1, "the copy is read once for all keys"


def test_keys_and_copies_stay_together_in_another_number_of_partitions():
    function, batches = ruled_payments(), random_batches(11)
    spark, found, choice = engine(function, 4), [], random.Random(1)
    for payments, rules in batches:
        found.append(spark.batch(payments, rules, KEY))
        copies._remembered.clear()
        spark.repartition(choice.choice([1, 3, 7, 50]))
    assert multisets(together(found)) == multisets(together(embedded(function, batches)))


def test_every_number_can_be_steered_to_every_hash():
    choice = random.Random(5)
    numbers = [choice.randrange(-(2**31), 2**31) for _ in range(500)] + [0, -1, 2**31 - 1, -(2**31)]
    assert all(hash_int(steered(target, seed), seed) == target for target in numbers for seed in numbers[:50])
    for lane in range(LANES):
        number, *nulls, steer = copy_key(lane, 2)
        assert nulls == [None, None]
        assert hash_int(steer, hash_int(number)) == lane == copy_lane(number)


class Limits(ProcessFunction):
    output = "account STRING, most BIGINT"

    def open(self, ctx):
        self.limits = ctx.broadcast(StateDescriptor("limits", None, dict[str, int]))

    def on_broadcast(self, ctx, row):
        self.limits.put(row["rule"], row["most"])

    def on_element(self, ctx, key, row):
        ctx.emit({"account": key, "most": self.limits.get("a")})


def test_a_function_needs_no_state_of_keys():
    spark = engine(Limits(), 2, event_time=None)
    spark.batch([], [{"rule": "a", "most": 7}], KEY)
    assert spark.batch([{"account": "x"}], [], KEY) == {"output": [{"account": "x", "most": 7}]}


def test_a_copy_is_stored_anew_when_it_has_become_much_longer_than_what_it_holds(monkeypatch):
    monkeypatch.setattr(copies, "_LEAST_REWRITTEN", 400)
    monkeypatch.setattr(copies, "_MOST_IN_CHUNK", 100)
    spark, rules = engine(Limits(), 1, event_time=None), {}
    for number in range(90):
        told = {"rule": f"rule {number % 20}" if number != 89 else "a", "most": number}
        rules[told["rule"]] = number
        spark.batch([], [told], KEY)
    stored = spark.partitions[0].variables["weirflow.broadcast.changes"]
    assert all(sum(len(chunk) for (chunk,) in chunks) < 1200 for chunks in stored.values())
    assert max(len(chunks) for chunks in stored.values()) > 1
    copies._remembered.clear()
    assert spark.batch([{"account": "x"}], [], KEY)["output"] == [{"account": "x", "most": 89}]


def test_a_copy_that_holds_nothing_any_more_is_stored_as_that(monkeypatch):
    class Cleared(Limits):
        def on_broadcast(self, ctx, row):
            self.limits.clear()
            if row["most"]:
                super().on_broadcast(ctx, row)

    monkeypatch.setattr(copies, "_LEAST_REWRITTEN", 1)
    spark = engine(Cleared(), 1, event_time=None)
    for most in (7, 0):
        spark.batch([], [{"rule": "a", "most": most}], KEY)
    copies._remembered.clear()
    assert spark.batch([{"account": "x"}], [], KEY)["output"] == [{"account": "x", "most": None}]
    assert spark.partitions[0].variables["weirflow.broadcast.changes"] == {}


def test_two_queries_of_one_worker_do_not_see_what_the_other_was_told():
    queries = {most: engine(Limits(), 2, event_time=None) for most in (7, 8)}
    for most, query in queries.items():
        query.batch([], [{"rule": "a", "most": most}], KEY)
    for most, query in queries.items():
        assert query.batch([{"account": "x"}], [], KEY)["output"] == [{"account": "x", "most": most}]


def test_all_rows_of_a_key_together_see_what_is_broadcast():
    class Together(Limits):
        def on_batch(self, ctx, key, rows):
            ctx.emit({"account": key, "most": self.limits.get("a", 0) + len(list(rows))})

    spark = engine(Together(), 2, event_time=None)
    rows = [{"account": "x"}, {"account": "x"}]
    assert spark.batch(rows, [{"rule": "a", "most": 7}], KEY)["output"] == [{"account": "x", "most": 9}]


@pytest.mark.parametrize("time", ["processing", "event"])
def test_broadcast_state_that_expires_is_absent(time):
    class Expiring(Limits):
        def open(self, ctx):
            ttl = Ttl(timedelta(seconds=10), time)
            self.limits = ctx.broadcast(StateDescriptor("limits", None, dict[str, int], ttl=ttl))

    def rows(second):
        return [{"account": "x", "at": START + timedelta(seconds=second), "amount": 1}]

    batches = [(rows(0), []), (rows(1), [{"rule": "a", "most": 7}]), (rows(9), []), (rows(12), []), (rows(13), [])]
    begin = int(START.timestamp() * 1000)
    clock = iter([begin + second * 1000 for second in (0, 1, 9, 12, 13)])
    event_time = EVENT_TIME if time == "event" else None
    spark, now = engine(Expiring(), 2, event_time), 0
    with ProcessRunner(Expiring(), key=KEY, event_time=event_time, clock=lambda: now) as runner:
        found = []
        for payments, rules in batches:
            now = next(clock)
            expected = runner.run(payments, broadcast=rules).rows.to_pylist()
            assert spark.batch(payments, rules, KEY, now)["output"] == expected
            found += [row["most"] for row in expected]
    assert found == [None, 7, 7, None, None] if time == "processing" else [None, 7, 7, 7, None]


def test_broadcast_state_cannot_be_changed_for_a_key_nor_state_of_keys_without_one():
    class Wrong(Limits):
        def on_element(self, ctx, key, row):
            self.limits.put("a", 1)

    with pytest.raises(StateError, match="cannot be changed for a key"):
        engine(Wrong(), 1, event_time=None).batch([{"account": "x"}], [], KEY)

    class Keyless(Limits):
        def open(self, ctx):
            super().open(ctx)
            self.seen = ctx.value(StateDescriptor("seen", str, int))

        def on_broadcast(self, ctx, row):
            self.seen.set(1)

    with pytest.raises(StateError, match="no current key"):
        engine(Keyless(), 1, event_time=None).batch([], [{"rule": "a", "most": 7}], KEY)


def test_what_on_broadcast_raises_says_so():
    class Failing(Limits):
        def on_broadcast(self, ctx, row):
            raise ValueError("no such rule")

    with pytest.raises(UserCodeError) as caught:
        engine(Failing(), 1, event_time=None).batch([], [{"rule": "a", "most": 7}], KEY)
    assert caught.value.message == "Failing.on_broadcast raised ValueError: no such rule"


def test_what_cannot_be_is_refused():
    class Refreshed(Limits):
        def open(self, ctx):
            ttl = Ttl(timedelta(seconds=10), refresh="read")
            self.limits = ctx.broadcast(StateDescriptor("limits", None, dict[str, int], ttl=ttl))

    class Deaf(ProcessFunction):
        output = "n BIGINT"

    class Pair(CoProcessFunction):
        output = "n BIGINT"
        open = Limits.open

    with pytest.raises(ConfigError, match="Limits has broadcast state, and no stream is broadcast to it"):
        HostedProcessFunction(Limits(), ["account"], None).lifetimes()
    with pytest.raises(UnsupportedError, match="Pair has broadcast state, but no input of two connected streams"):
        HostedCoProcessFunction(Pair(), (None, None)).lifetimes()
    with pytest.raises(UnsupportedError, match="lives on when it is read"):
        HostedBroadcastFunction(Refreshed(), ["account"], None).lifetimes()
    with pytest.raises(ConfigError, match="Deaf is given a broadcast stream and has no on_broadcast"):
        HostedBroadcastFunction(Deaf(), ["account"], None)


def test_a_pyspark_without_a_way_to_another_key_is_refused():
    partition = Partition()
    partition._statefulProcessorApiClient = None
    with pytest.raises(UnsupportedError, match="cannot read a key's state while another key is current"):
        task(partition)


def task(partition):
    processor = LaneProcessor(HostedBroadcastFunction(Limits(), ["account"], None), 1)
    processor.init(partition)
    return processor


def told(processor, partition, lane, rule="a"):
    key = copy_key(lane, 1)
    partition.switch(key)
    processor.handleInputRows(key, iter([(*key, None, one) for one in packed([{"rule": rule, "most": 7}], 0)]), TIMES)


class _Times:
    def getCurrentProcessingTimeInMs(self):
        return 0

    def getCurrentWatermarkInMs(self):
        return 0


TIMES = _Times()


def test_a_task_fails_if_spark_brings_keys_elsewhere_than_broadcast_rows():
    partition = Partition()
    processor = task(partition)
    told(processor, partition, 3)
    key = lane_key("x")
    assert key[0] != 3
    with pytest.raises(StateError, match="came without what is broadcast"):
        processor.handleInputRows(key, iter([(*key, {"account": "x"}, None)]), TIMES)


def test_a_task_fails_if_spark_brings_keys_first():
    partition = Partition()
    processor = task(partition)
    key = lane_key("x")
    partition.switch(key)
    list(processor.handleInputRows(key, iter([(*key, {"account": "x"}, None)]), TIMES))
    with pytest.raises(StateError, match="behind rows"):
        told(processor, partition, key[0])


def test_a_task_fails_if_copies_have_come_apart():
    partition = Partition()
    told(task(partition), partition, 3)
    processor = task(partition)
    told(processor, partition, 3, "b")
    with pytest.raises(StateError, match="the copy in lane 4 is not that of other lanes"):
        told(processor, partition, 4, "b")
