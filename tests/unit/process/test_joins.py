"""Joins over keyed state equal a naive recomputation over all rows that were not late, and let go of their state."""

import random
from collections import Counter
from datetime import timedelta

import pytest

from weirflow.checkpoint import open_checkpoint_storage
from weirflow.checkpoint.keyed_state.checkpoints import KeyedStateCheckpoints
from weirflow.errors import ColumnNotFound, ConfigError
from weirflow.process import CoProcessRunner, run_co_process
from weirflow.process.joins import JoinInput, interval_join, stream_table_join, temporal_join
from weirflow.testing import CoProcessHarness

LEFT = JoinInput("k STRING, at BIGINT, n INT", key="k", time="at")
RIGHT = JoinInput("k STRING, since BIGINT, m INT, gone BOOLEAN", key="k", time="since")
DELAY = 5
SEEDS = range(25)


def ms(number):
    return timedelta(milliseconds=number)


def random_batches(seed):
    """Batches whose times go forward by and large, with equal times, late rows and keys that are NULL."""
    rng = random.Random(seed)
    number = iter(range(10_000))
    batches = []
    for batch in range(rng.randint(1, 8)):
        sides = []
        for time, value in (("at", "n"), ("since", "m")):
            rows = []
            for _ in range(rng.choice((0, 1, 3, 8))):
                at = 4 * batch + rng.randint(-12, 12)
                row = {"k": rng.choice("aabc") if rng.random() < 0.95 else None, time: at, value: next(number)}
                rows.append(row if time == "at" else row | {"gone": rng.random() < 0.2})
            sides.append(rows)
        batches.append(tuple(sides))
    return batches


def in_time(batches):
    """The left and right rows that are not late, in the order in which they are run."""
    latest, watermark, accepted = [None, None], None, ([], [])
    for batch in batches:
        for side, time in ((0, "at"), (1, "since")):
            rows = [row for row in batch[side] if watermark is None or row[time] > watermark]
            accepted[side].extend(rows)
            latest[side] = max((row[time] for row in accepted[side]), default=None)
        if None not in latest:
            reached = min(latest) - DELAY
            watermark = reached if watermark is None else max(watermark, reached)
    return accepted


def result(join, batches, seed):
    """The rows of all batches, as tuples; now and then the run goes on from a checkpoint in other instances."""
    rng = random.Random(seed)
    options = {"key": join.key, "event_time": join.event_time, "watermark_delay": ms(DELAY)}
    runner = CoProcessRunner(join, parallelism=rng.randint(1, 3), **options)
    rows = []
    for left, right in batches:
        rows += runner.run(left, right).rows.to_pylist()
        if rng.random() < 0.3:
            checkpoints = KeyedStateCheckpoints(open_checkpoint_storage("memory://"))
            runner.snapshot(checkpoints)
            runner = CoProcessRunner(join, parallelism=rng.randint(1, 4), backend=checkpoints.restore, **options)
    rows += runner.finish().rows.to_pylist()
    return Counter(tuple(row.values()) for row in rows)


def joined(left, right):
    return (left["k"], left["at"], left["n"], *((None, None, None) if right is None else list(right.values())[1:]))


def interval_reference(lefts, rights, lower, upper, how):
    rows = Counter()
    for left in lefts:
        matches = [
            right
            for right in rights
            if right["k"] == left["k"] is not None and left["at"] + lower <= right["since"] <= left["at"] + upper
        ]
        rows.update(joined(left, right) for right in matches)
        if not matches and how == "left":
            rows[joined(left, None)] += 1
    return rows


@pytest.mark.parametrize("how", ["inner", "left"])
@pytest.mark.parametrize(("lower", "upper"), [(-3, 4), (0, 0), (2, 9), (-9, -2)])
def test_interval_joins_equal_the_reference(how, lower, upper):
    join = interval_join(LEFT, RIGHT, lower=ms(lower), upper=ms(upper), how=how)
    matched = 0
    for seed in SEEDS:
        batches = random_batches(seed)
        expected = interval_reference(*in_time(batches), lower, upper, how)
        assert result(join, batches, seed) == expected, seed
        matched += len(expected)
    assert matched > 30


def temporal_reference(lefts, rights, how, deleted):
    rows = Counter()
    for left in lefts:
        versions = [right for right in rights if right["k"] == left["k"] is not None and right["since"] <= left["at"]]
        # Of equal times the last one.
        valid = max(reversed(versions), key=lambda right: right["since"], default=None)
        if valid is not None and deleted and valid["gone"]:
            valid = None
        if valid is not None or how == "left":
            row = joined(left, valid)
            rows[row[:-1] if deleted else row] += 1
    return rows


@pytest.mark.parametrize("how", ["inner", "left"])
@pytest.mark.parametrize("deleted", [None, "gone"])
def test_temporal_joins_equal_the_reference(how, deleted):
    join = temporal_join(LEFT, RIGHT, how=how, deleted=deleted)
    matched = 0
    for seed in SEEDS:
        batches = random_batches(seed)
        expected = temporal_reference(*in_time(batches), how, deleted)
        assert result(join, batches, seed) == expected, seed
        matched += len(expected)
    assert matched > 30


@pytest.mark.parametrize("how", ["inner", "left"])
@pytest.mark.parametrize("deleted", [None, "gone"])
def test_stream_table_joins_equal_the_reference(how, deleted):
    table = JoinInput(RIGHT.columns, key="k")
    join = stream_table_join(JoinInput(LEFT.columns, key="k"), table, how=how, deleted=deleted)
    for seed in SEEDS:
        batches, rows, current = random_batches(seed), Counter(), {}
        for lefts, rights in batches:
            for right in rights:
                if deleted and right["gone"]:
                    current.pop(right["k"], None)
                elif right["k"] is not None:
                    current[right["k"]] = right
            for left in lefts:
                found = current.get(left["k"])
                if found is not None or how == "left":
                    row = joined(left, found)
                    rows[row[:-1] if deleted else row] += 1
        assert result(join, batches, seed) == rows, seed


def test_an_interval_join_keeps_rows_as_long_as_they_may_match():
    join = interval_join(LEFT, RIGHT, lower=ms(-2), upper=ms(10))
    test = CoProcessHarness(join, key=join.key, event_time=join.event_time)
    test.push_left({"k": "a", "at": 100, "n": 1})
    test.push_right({"k": "a", "since": 103, "m": 2})
    assert test.stored() == {"count": 1, "left": 1, "right": 1, "weirflow.event_timers": 2}
    test.advance_watermark(105)
    assert test.stored() == {"count": 1, "left": 1, "weirflow.event_timers": 1}
    test.advance_watermark(110)
    assert test.stored() == {}
    assert [(row["n"], row["m"]) for row in test.output] == [(1, 2)]


def test_a_temporal_join_keeps_one_old_version():
    join = temporal_join(LEFT, RIGHT)
    test = CoProcessHarness(join, key=join.key, event_time=join.event_time)
    test.push_right(*({"k": "a", "since": since, "m": since} for since in (10, 20, 30)))
    test.push_left({"k": "a", "at": 25, "n": 1})
    test.advance_watermark(28)
    assert test.stored() == {"versions": 2, "weirflow.event_timers": 1}
    assert [(row["n"], row["m"]) for row in test.output] == [(1, 20)]


def test_several_columns_are_a_key():
    left = JoinInput("country STRING, city STRING, n INT", key=["country", "city"])
    table = JoinInput("country STRING, city STRING, people BIGINT", key=["country", "city"])
    join = stream_table_join(left, table)
    rows = [{"country": "fr", "city": "paris", "n": 1}, {"country": "us", "city": "paris", "n": 2}]
    tables = [{"country": "us", "city": "paris", "people": 25_000}]
    first, _ = run_co_process(join, [(rows, tables)], key=join.key)
    assert first.rows.to_pylist() == [{"country": "us", "city": "paris", "n": 2, "people": 25_000}]


@pytest.mark.parametrize(
    ("made", "error", "message"),
    [
        (lambda: interval_join(LEFT, RIGHT, lower=ms(2), upper=ms(1)), ConfigError, "no time between"),
        (lambda: temporal_join(LEFT, JoinInput("k STRING", key="k")), ConfigError, "needs the times of both"),
        (lambda: temporal_join(LEFT, RIGHT, how="outer"), ConfigError, "how is 'outer'; it must be 'inner' or 'left'"),
        (lambda: temporal_join(LEFT, RIGHT, deleted="gon"), ColumnNotFound, "marks deletions"),
        (lambda: JoinInput("k STRING", key="kk"), ColumnNotFound, "no column 'kk' to join by"),
        (lambda: stream_table_join(LEFT, JoinInput("k BIGINT", key="k")), ConfigError, "of different types"),
        (lambda: stream_table_join(LEFT, JoinInput("k STRING, n INT", key="k")), ConfigError, "Both inputs have"),
        (lambda: JoinInput("k MAP<STRING,INT>", key="k").key_type, ConfigError, "cannot be the key of a join"),
    ],
)
def test_what_cannot_be_joined_is_refused(made, error, message):
    with pytest.raises(error, match=message):
        made()
