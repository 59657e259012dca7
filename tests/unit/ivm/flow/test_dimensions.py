"""A declared dimension: vectors of another length are refused by the tick, wherever the source is kept."""

import pyarrow as pa
import pytest

from weirflow import DeltaBatch, IncrementalFlow
from weirflow.errors import ConfigError, DataError, SqlSyntaxError
from weirflow.ivm.flow.folder.entries import entry_source, source_entry
from weirflow.ivm.flow.source import Source
from weirflow.ivm.sharded.executor import InThisProcess
from weirflow.ivm.sharded.flow import PartitionedFlow
from weirflow.rows.dimensions import dimensions_of, with_dimensions
from weirflow.sql.statements.flows import read_statement

COLUMNS = "id BIGINT, v ARRAY<FLOAT>, w ARRAY<DOUBLE>"
GOOD = [{"id": 1, "v": [1.0, 2.0], "w": [1.0]}, {"id": 2, "v": None, "w": []}]
BAD = [{"id": 3, "v": [1.0, 2.0], "w": None}, {"id": 4, "v": [1.0, 2.0, 3.0], "w": None}]


def declare(flow, key="id", **options):
    flow.register_source("docs", COLUMNS, key=key, **{"dimensions": {"v": 2}, **options})
    return flow


def refuses(flow, rows):
    before = flow.epoch, flow.snapshot("docs").sort_by("id")
    with pytest.raises(DataError, match=r"a vector of 3 numbers in 'v'; the source takes vectors of 2") as raised:
        flow.tick("docs", rows)
    assert raised.value.hint
    assert (flow.epoch, flow.snapshot("docs").sort_by("id")) == before
    assert not flow.pending


@pytest.mark.parametrize("key", ["id", None])
def test_a_vector_of_another_length_fails_the_tick(key):
    flow = declare(IncrementalFlow(), key)
    schema = flow.schema("docs")
    flow.tick("docs", GOOD)
    for rows in (BAD, pa.Table.from_pylist(BAD, schema=schema), DeltaBatch.from_inserts(BAD, schema=schema)):
        refuses(flow, rows)
    flow.tick("docs", DeltaBatch.from_deletes(GOOD[:1], schema=schema))
    assert flow.snapshot("docs").to_pylist() == GOOD[1:]
    if key:  # what a deletion by key says of other columns is no matter
        flow.tick("docs", DeltaBatch.from_deletes([{"id": 2, "v": [1.0]}], schema=schema))
        assert flow.snapshot("docs").num_rows == 0


@pytest.mark.parametrize("checkpoint", [True, False])
def test_it_is_kept_with_the_source(tmp_path, checkpoint):
    with declare(IncrementalFlow(path=tmp_path)) as flow:
        flow.register_view("ids", "SELECT id FROM docs")
        flow.tick("docs", GOOD)
        if checkpoint:
            flow.checkpoint()
    with IncrementalFlow(path=tmp_path) as again:
        refuses(again, BAD)
        assert again.source("docs").dimensions == (("v", 2),)
        assert "source docs, v of 2 numbers" in again.explain("ids")
        declare(again)  # the same again
        with pytest.raises(ConfigError, match="a different one"):
            declare(again, dimensions={"v": 3})
        with pytest.raises(ConfigError, match="a different one"):
            declare(again, dimensions=None)


def test_a_source_in_shards_has_it_too():
    uri = "memory://dimensions"
    with declare(PartitionedFlow(uri, 3, InThisProcess())) as flow:
        flow.register_view("ids", "SELECT id FROM docs")
        flow.tick("docs", GOOD)
    with PartitionedFlow(uri, 3, InThisProcess()) as again:
        refuses(again, BAD)
        assert "source docs, v of 2 numbers" in again.explain("ids")


def test_what_was_written_without_dimensions_has_none():
    source = Source("docs", pa.schema([("v", pa.list_(pa.float32()))]))
    wide = Source("docs", with_dimensions(source.schema, {"v": 384}, "docs"))
    assert source != wide
    assert [entry_source(source_entry(one)) == one for one in (source, wide)] == [True, True]
    assert (source.dimensions, wide.dimensions) == ((), (("v", 384),))
    assert dimensions_of(with_dimensions(wide.schema, {}, "docs")) == {}


@pytest.mark.parametrize("dimensions", [{"u": 2}, {"id": 2}, {"v": 0}, {"v": 10**7}, {"v": 2.5}, {"v": True}])
def test_dimensions_that_mean_nothing_are_refused(dimensions):
    with pytest.raises(ConfigError):
        declare(IncrementalFlow(), dimensions=dimensions)


@pytest.mark.parametrize(
    ("option", "found"),
    [("v = 384", {"v": 384}), ("V=2,w = 3 ", {"v": 2, "w": 3}), ("`v`= 2 , `w`=3", {"v": 2, "w": 3})],
)
def test_sql_declares_them(option, found):
    statement = read_statement(f"CREATE SOURCE docs ({COLUMNS}) WITH (dimensions = '{option}')")
    assert dict(statement.dimensions) == found


@pytest.mark.parametrize("option", ["", "v", "v =", "v = x", "v = 2,", "v = 2, v = 3", "u = 2", "v = 0", "v = 2 w = 3"])
def test_sql_that_declares_nothing_is_refused(option):
    with pytest.raises(SqlSyntaxError):
        read_statement(f"CREATE SOURCE docs ({COLUMNS}) WITH (dimensions = '{option}')")
