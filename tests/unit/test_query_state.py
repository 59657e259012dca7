"""State of jobs read from outside: as it was saved, by key or as a table, without Spark where it is our own."""

# ruff: noqa: ARG002 - functions keep to a contract

import operator
from dataclasses import dataclass
from datetime import timedelta

import pytest

from weirflow import Session
from weirflow.checkpoint import open_checkpoint_storage
from weirflow.checkpoint.keyed_state.checkpoints import KeyedStateCheckpoints
from weirflow.checkpoint.keyed_state.savepoints import Savepoints
from weirflow.errors import DataError, ObjectNotFound, StateError
from weirflow.process import ProcessFunction, ProcessRunner
from weirflow.session.query_state import StateQueries
from weirflow.state import StateDescriptor, Ttl, state_migration
from weirflow.state.migrations import MIGRATIONS


@dataclass
class Last:
    page: str
    visits: int


class Visits(ProcessFunction):
    output = "user STRING"

    def open(self, ctx):
        key = tuple[str, int]
        self.total = ctx.reducing(StateDescriptor("total", key, int), operator.add)
        self.pages = ctx.list(StateDescriptor("pages", key, list[str]))
        self.counts = ctx.map(StateDescriptor("counts", key, dict[str, int]))
        self.last = ctx.value(StateDescriptor("last", key, Last))
        self.brief = ctx.value(StateDescriptor("brief", key, str, ttl=Ttl(timedelta(seconds=1), "event")))

    def on_element(self, ctx, key, row):
        page = row["page"]
        self.total.add(1)
        self.pages.add(page)
        self.counts.put(page, self.counts.get(page, 0) + 1)
        self.last.set(Last(page, self.total.get()))
        self.brief.set(page)
        ctx.timers.register(ctx.timestamp + 1_000_000)


@pytest.fixture
def job(tmp_path):
    """Two checkpoints of two batches, and a savepoint of the first."""
    runner = ProcessRunner(Visits(), key=("user", "shop"), event_time="at", operator="visits", parallelism=2)
    storage = open_checkpoint_storage(tmp_path)
    checkpoints = KeyedStateCheckpoints(storage)
    runner.run([visit("ann", "/", 1_000), visit("bob", "/", 1_000), visit("ann", "/cart", 1_000)])
    runner.snapshot(checkpoints)
    Savepoints(storage).create("before", runner.backends)
    runner.run([visit("ann", "/", 5_000)])
    runner.snapshot(checkpoints)
    return tmp_path


def visit(user, page, at):
    return {"user": user, "shop": 7, "page": page, "at": at}


@pytest.fixture
def session():
    with Session.embedded() as opened:
        yield opened
        assert opened._engine is None, "Spark was not needed"


def test_the_newest_epoch_by_kind(session, job):
    def ask(slot, key=("ann", 7)):
        return session.query_state(job, "visits", slot, key)

    assert ask("total") == 3
    assert ask("pages") == ["/", "/cart", "/"]
    assert ask("counts") == {"/": 2, "/cart": 1}
    assert ask("last") == {"page": "/", "visits": 3}
    assert [ask(slot, ("eve", 7)) for slot in ("total", "pages", "counts", "last")] == [None, [], {}, None]


def test_an_epoch_and_a_savepoint(session, job):
    assert session.query_state(job, "visits", "total", ("ann", 7), at=1) == 2
    assert session.query_state(job, "visits", "total", ("ann", 7), at="before") == 2
    with pytest.raises(ObjectNotFound, match="epoch 9"):
        session.query_state(job, "visits", "total", ("ann", 7), at=9)
    with pytest.raises(ObjectNotFound, match="'befor'"):
        session.query_state(job, "visits", "total", ("ann", 7), at="befor")


def test_a_descriptor_gives_the_declared_types_and_migrates(session, job):
    key = tuple[str, int]
    last = StateDescriptor("last", key, Last)
    assert session.query_state(job, "visits", last, ("ann", 7)) == Last("/", 3)

    renamed = StateDescriptor("total", key, str, version=2)

    @state_migration("total", from_version=1, to_version=2)
    def as_text(number):
        return f"{number} visits"

    try:
        assert session.query_state(job, "visits", renamed, ("ann", 7)) == "3 visits"
    finally:
        MIGRATIONS._steps.pop(("total", 1))


def test_what_has_expired_is_not_there(session, job):
    assert session.query_state(job, "visits", "brief", ("ann", 7)) == "/"
    assert session.query_state(job, "visits", "brief", ("bob", 7)) is None
    assert session.query_state(job, "visits", "brief", ("bob", 7), at=1) == "/"


def table(job, slot, at=None):
    found = StateQueries(job, at, None).table("visits", slot)
    return sorted(found.to_pylist(), key=repr)


def test_a_slot_as_a_table(job):
    assert table(job, "total") == [
        {"key_1": "ann", "key_2": 7, "value": 3},
        {"key_1": "bob", "key_2": 7, "value": 1},
    ]
    assert table(job, "pages", at=1) == [
        {"key_1": "ann", "key_2": 7, "position": 0, "value": "/"},
        {"key_1": "ann", "key_2": 7, "position": 1, "value": "/cart"},
        {"key_1": "bob", "key_2": 7, "position": 0, "value": "/"},
    ]
    assert table(job, "counts")[0] == {"key_1": "ann", "key_2": 7, "entry": "/", "value": 2}
    declared = StateDescriptor("last", tuple[str, int], Last)
    assert table(job, "last") == table(job, declared)
    assert table(job, declared)[0] == {"key_1": "ann", "key_2": 7, "value": {"page": "/", "visits": 3}}


def test_what_is_not_there_is_said(session, job, tmp_path):
    with pytest.raises(StateError, match="no operator 'visit'") as caught:
        session.query_state(job, "visit", "total", ("ann", 7))
    assert "visits" in caught.value.hint
    with pytest.raises(StateError, match="no keyed slot 'totl'") as caught:
        session.query_state(job, "visits", "totl", ("ann", 7))
    assert "total" in caught.value.hint
    with pytest.raises(StateError, match="no keyed slot 'weirflow\\.event_timers'"):
        session.query_state(job, "visits", "weirflow.event_timers", ("ann", 7))
    with pytest.raises(StateError, match="is not a key of 'total'"):
        session.query_state(job, "visits", "total", {"user": "ann"})
    with pytest.raises(ObjectNotFound, match="no checkpoint"):
        session.query_state(tmp_path / "elsewhere", "visits", "total", ("ann", 7))


def test_values_of_several_types_are_no_table(tmp_path):
    class Mixed(ProcessFunction):
        output = "user STRING"

        def open(self, ctx):
            self.kept = ctx.value(StateDescriptor("kept", str, int | str))

        def on_element(self, ctx, key, row):
            self.kept.set(row["value"])

    runner = ProcessRunner(Mixed(), key="user", operator="visits")
    runner.run([{"user": "ann", "value": 1}, {"user": "bob", "value": "one"}])
    runner.snapshot(KeyedStateCheckpoints(open_checkpoint_storage(tmp_path)))
    with pytest.raises(DataError, match="no one type"):
        table(tmp_path, "kept")
