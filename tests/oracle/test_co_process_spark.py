"""Functions of two streams in Spark queries: the rows of an embedded run, also over a restart; what is refused."""

# ruff: noqa: ARG002 - functions keep to a contract

import pytest
from support.two_inputs import (
    EVENT_TIME,
    KEY,
    ORDERS,
    START,
    VISITS,
    embedded,
    multisets,
    orders_and_visits,
    random_pairs,
)

from weirflow import Trigger
from weirflow.errors import ConfigError, UnsupportedError, UserCodeError
from weirflow.process import CoProcessFunction, ProcessFunction
from weirflow.state import StateDescriptor
from weirflow.testing.sequence import SequenceSource


@pytest.fixture
def sources():
    with SequenceSource(ORDERS) as orders, SequenceSource(VISITS) as visits:
        yield orders, visits


def add(sources, batches):
    for pair in batches:
        for source, rows in zip(sources, pair, strict=True):
            source.add(rows)


def connected(session, sources):
    left, right = (one.stream(session).with_event_time(time) for one, time in zip(sources, EVENT_TIME, strict=True))
    return left.key_by("customer").connect(right.key_by("id"))


def written(stream, function, checkpoint):
    """What each output gets of a query that ends when its input does."""
    found = {tag: [] for tag in ("output", *function.side_outputs)}

    def take(outputs, _):
        for tag, frame in outputs.items():
            found[tag] += frame.to_pylist()

    writer = stream.process(function).each_batch(take)
    with writer.option("checkpointLocation", checkpoint).trigger(Trigger.available_now()).start() as query:
        query.await_termination(120)
    return found


def test_two_streams_give_the_rows_of_an_embedded_run_over_a_restart(session, sources, tmp_path):
    function, batches = orders_and_visits(), random_pairs(7, batches=2, rows=25)
    # Behind the restart both streams come as far as they were: Spark has only kept the lesser of their watermarks.
    newest = max(row[time] for pair in batches[:2] for rows, time in zip(pair, EVENT_TIME, strict=True) for row in rows)
    batches[1][0].append({"customer": 98, "at": newest, "amount": 1})
    batches[1][1].append({"id": 98, "page": "home", "since": newest})

    add(sources, batches[:1])
    found = written(connected(session, sources), function, tmp_path)
    add(sources, batches[1:])
    rest = written(connected(session, sources), function, tmp_path)

    expected = embedded(function, batches, key=KEY, event_time=EVENT_TIME)
    assert multisets({tag: rows + rest[tag] for tag, rows in found.items()}) == multisets(expected)
    assert all(expected.values()), "every output is tried"
    assert session.query_state(tmp_path, 0, "pages", 99) == ["home"]
    assert {"customer": 99, "value": 1} in session.state_table(tmp_path, 0, "total").to_pylist()


def test_what_a_function_raises_says_for_which_stream(session, sources, tmp_path):
    class Failing(CoProcessFunction):
        output = "n BIGINT"

        def on_left(self, ctx, key, row):
            raise ValueError("no such thing")

        def on_right(self, ctx, key, row): ...

    add(sources, [([{"customer": 7, "at": START, "amount": 1}], [{"id": 7, "page": "home", "since": START}])])
    with pytest.raises(UserCodeError, match=r"^\S+ Failing.on_left for the key 7 raised ValueError: no such thing"):
        written(connected(session, sources), Failing(), tmp_path)


def test_what_cannot_be_right_is_refused_before_anything_starts(session, sources):
    class Plain(CoProcessFunction):
        output = "n BIGINT"

    class Broadcast(Plain):
        def open(self, ctx):
            ctx.broadcast(StateDescriptor("rules", None, dict[str, int]))

    class One(ProcessFunction):
        output = "n BIGINT"

    orders, visits = (source.stream(session) for source in sources)
    with pytest.raises(ConfigError, match="keyed by customer BIGINT, the right one by page STRING"):
        orders.key_by("customer").connect(visits.key_by("page"))
    with pytest.raises(ConfigError, match="keyed by customer BIGINT, the right one by id BIGINT, page STRING"):
        orders.key_by("customer").connect(visits.key_by("id", "page"))
    with pytest.raises(UnsupportedError, match="keys of type TIMESTAMP"):
        orders.key_by("at").connect(visits.key_by("since")).process(Plain())
    both = orders.key_by("customer").connect(visits.key_by("id"))
    with pytest.raises(UnsupportedError, match="broadcast state"):
        both.process(Broadcast())
    with pytest.raises(ConfigError, match="has one input, and two streams were connected"):
        both.process(One())
    with pytest.raises(ConfigError, match="uses event time, but its rows have none"):
        both.process(Plain(), time="event")
    assert both.process(Plain()).columns == ["n"]
