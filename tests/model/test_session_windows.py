"""After every tick of random deltas the sessions equal those found by walking all rows in order of time."""

import datetime as dt
from collections import Counter, defaultdict

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.maintained import Maintained

from weirflow.errors import NotIncremental, Reason

EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
SOURCES = {"e": pa.schema([("k", pa.string()), ("ts", pa.timestamp("us", "UTC")), ("v", pa.int64())])}
VIEWS = {
    "keyed": "SELECT k, session_window.start AS a, session_window.end AS z, COUNT(*) AS n, SUM(v) AS s FROM e "
    "GROUP BY k, session_window(ts, '5 seconds')",
    "overall": "SELECT session_window.start AS a, session_window.end AS z, COUNT(*) AS n, SUM(v) AS s FROM e "
    "GROUP BY session_window(ts, '2 seconds')",
}


def moment(seconds):
    return None if seconds is None else EPOCH + dt.timedelta(seconds=seconds)


def naive(rows, gap, *, keyed):
    """The sessions of rows (key, seconds, value), as rows of the views."""
    by_key = defaultdict(list)
    for key, seconds, value in rows:
        if seconds is not None:
            by_key[(key,) if keyed else ()].append((seconds, value))
    sessions = Counter()
    for key, events in by_key.items():
        merged = []
        for seconds, value in sorted(events):
            if merged and seconds <= merged[-1][1]:
                merged[-1][1:] = [seconds + gap, [*merged[-1][2], value]]
            else:
                merged.append([seconds, seconds + gap, [value]])
        for start, end, values in merged:
            sessions[*key, moment(start), moment(end), len(values), sum(values)] += 1
    return sessions


def check(views, rows):
    assert views.views["keyed"] == naive(rows.elements(), 5, keyed=True)
    assert views.views["overall"] == naive(rows.elements(), 2, keyed=False)


def tick(views, rows, changes):
    for row, weight in changes:
        rows[row] += weight
    views.tick({"e": [((key, moment(seconds), value), weight) for (key, seconds, value), weight in changes]})
    check(views, rows)


event = st.tuples(
    st.sampled_from(["a", "b", None]), st.none() | st.integers(-30, 60) | st.just(10**6), st.integers(-3, 3)
)
ticks = st.lists(st.lists(st.tuples(event, st.booleans(), st.integers(0, 10**6)), max_size=8), max_size=8)


@settings(max_examples=60, deadline=None)
@given(ticks)
def test_sessions_equal_a_walk_over_all_rows_after_every_tick(drawn):
    views, rows = Maintained(SOURCES, VIEWS), Counter()
    for delta in drawn:
        present = list(rows.elements())
        changes = []
        for row, retract, number in delta:
            if retract and present:
                changes.append((present.pop(number % len(present)), -1))
            else:
                present.append(row)
                changes.append((row, 1))
        tick(views, rows, changes)


@pytest.mark.parametrize("length", [1, 2, 3, 7, 40])
def test_sessions_of_any_length_are_bridged_and_split_again(length):
    """Two chains of events, as far apart as one more event can bridge, which comes and goes."""
    views, rows = Maintained(SOURCES, VIEWS), Counter()
    chains = [("a", sign * (4 + 5 * step), step) for sign in (-1, 1) for step in range(length)]
    tick(views, rows, [(row, 1) for row in chains])
    apart = naive(chains, 5, keyed=True)
    assert len(apart) == 2
    bridge = ("a", 0, 9)
    tick(views, rows, [(bridge, 1)])
    assert len(views.views["keyed"]) == 1
    tick(views, rows, [(bridge, -1)])
    assert views.views["keyed"] == apart
    tick(views, rows, [(row, -1) for row in chains])
    assert views.views["keyed"] == Counter()


ALONE = {
    "rows": "SELECT v, session_window(ts, '5 seconds').start AS a, session_window.end AS z FROM e",
    "whole": "SELECT v, session_window(ts, '5 seconds') AS w FROM e",
    "grouped": "SELECT session_window(ts, '5 seconds').end AS z, COUNT(*) AS n FROM e "
    "GROUP BY session_window(ts, '5 seconds').end",
    "by_name": "SELECT session_window(ts, '5 seconds').end AS z, COUNT(*) AS n FROM e GROUP BY z",
    "dates": "SELECT CAST(session_window(ts, '5 seconds').start AS DATE) AS d, COUNT(*) AS n FROM e GROUP BY 1",
    "nothing": "SELECT v, session_window(ts, '0 seconds').start AS a FROM e",
}
"""Where a session is not itself a key, it is that of the row alone, as Spark 4.1 has it."""


def test_sessions_of_single_rows():
    views = Maintained(SOURCES, ALONE)
    views.tick({"e": [(("a", moment(1), 7), 1), (("b", moment(3), 8), 1), (("b", None, 9), 1)]})
    views.tick({"e": [(("a", moment(3), 9), 1), (("a", moment(1), 7), -1)]})
    session = (("start", moment(3)), ("end", moment(8)))
    assert views.views == {
        "rows": Counter({(8, moment(3), moment(8)): 1, (9, moment(3), moment(8)): 1}),
        "whole": Counter({(8, session): 1, (9, session): 1}),
        "grouped": Counter({(moment(8), 2): 1}),
        "by_name": Counter({(moment(8), 2): 1}),
        "dates": Counter({(EPOCH.date(), 2): 1}),
        "nothing": Counter(),
    }


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT COUNT(*) AS n FROM e GROUP BY session_window(ts, '5 seconds').start, session_window(ts, '5 seconds')",
        "SELECT DISTINCT session_window(ts, '5 seconds') AS w FROM e",
        "SELECT w, COUNT(*) AS n FROM (SELECT session_window(ts, '5 seconds') AS w FROM e) GROUP BY w",
        "SELECT session_window(ts, '5 seconds') AS w FROM e UNION SELECT session_window(ts, '6 seconds') AS w FROM e",
        "SELECT v FROM e WHERE session_window(ts, '5 seconds').start > TIMESTAMP'1970-01-01'",
        "SELECT v FROM e WHERE window(ts, '5 seconds').start > TIMESTAMP'1970-01-01'",
    ],
)
def test_what_spark_would_merge_in_another_place_is_refused(sql):
    with pytest.raises(NotIncremental) as caught:
        Maintained(SOURCES, {"view": sql})
    assert caught.value.reason is Reason.OPERATOR_NOT_INCREMENTALIZABLE
