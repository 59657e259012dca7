"""Flows that are killed with ``kill -9`` while they write to a vector store: it has every change of the view once."""

import random

import pytest
from support import vector_library
from support.nursery import Nursery

from weirflow import IncrementalFlow
from weirflow.failpoints import VECTOR_POINTS

TICKS = 26
# Between the commit and the note of it, and at every other step.
KILLS = [
    ("vector.before_create", 1),
    ("vector.before_index", 1),
    ("vector.before_copy", 3),
    ("vector.before_commit", 5),
    ("vector.after_commit", 3),
    ("vector.after_commit", 4),
    ("sink.after_write", 2),
]
TABLE = """
CREATE TABLE chunks (id bigint PRIMARY KEY, body text, v public.vector(3));
CREATE TABLE told (at bigserial, kind text, id bigint, body text);
CREATE FUNCTION tell() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
  INSERT INTO told (kind, id, body) VALUES (TG_OP, coalesce(NEW.id, OLD.id), NEW.body); RETURN NULL; END $$;
CREATE TRIGGER told AFTER INSERT OR UPDATE OR DELETE ON chunks FOR EACH ROW EXECUTE FUNCTION tell();
"""


@pytest.fixture(scope="module")
def nursery():
    with Nursery(vector_library.__file__) as nursery:
        yield nursery


@pytest.fixture
def database(pgvector, tmp_path):
    """A table that tells of every change, and its address where the flows find it."""
    opened = pgvector()
    opened.run(TABLE)
    (tmp_path / vector_library.ADDRESS).write_text(opened.uri)
    return opened


def check(database, path, ticks=TICKS):
    rows = database.run("SELECT id, body, v::real[] FROM chunks")
    assert {one: (body, vector) for one, body, vector in rows} == vector_library.expected(ticks)
    with vector_library.declare(IncrementalFlow("library", path=path)) as flow:
        assert sorted(tuple(row.values()) for row in flow.snapshot("chunks").to_pylist()) == sorted(rows)
    assert database.run("SELECT epoch FROM weirflow_vector_positions") == [(ticks,)]
    seen = {}
    for kind, one, body in database.run("SELECT kind, id, body FROM told ORDER BY at"):
        assert (one in seen) == (kind != "INSERT"), f"{kind} of {one}"
        assert kind == "DELETE" or seen.get(one) != body, f"{body} was written twice"
        if kind == "DELETE":
            del seen[one]
        else:
            seen[one] = body
    assert seen == {one: body for one, body, _ in rows}


def test_kills_at_every_step_lose_and_double_nothing(nursery, database, tmp_path):
    assert set(VECTOR_POINTS) <= {point for point, _ in KILLS}
    for point, nth in KILLS:
        assert nursery.live(tmp_path / "flow", TICKS, point=point, nth=nth), f"{point} was not reached"
    assert not nursery.live(tmp_path / "flow", TICKS)
    check(database, tmp_path / "flow")


@pytest.mark.campaign
@pytest.mark.parametrize("seed", range(10))
def test_fifty_kills_lose_and_double_nothing(nursery, database, tmp_path, seed):
    """Ten flows of five kills each, wherever they fall."""
    chosen = random.Random(seed)
    points = [*VECTOR_POINTS, "sink.before_write", "sink.after_write", "tick.before_publish", "log.half_appended"]
    kills, ticks = 0, TICKS
    while kills < 5:
        every = chosen.choice([0, 1, 5, 9])
        killed = nursery.live(
            tmp_path / "flow", ticks, point=chosen.choice(points), nth=chosen.randrange(1, 8), checkpoint_every=every
        )
        kills += killed
        ticks += 0 if killed else 4
    nursery.live(tmp_path / "flow", ticks)
    check(database, tmp_path / "flow", ticks)
