"""What is done in this process because little has changed: ticks, and changes that several views read."""

import pyarrow as pa
import pytest

from weirflow.flows.feeds.remembered_changes import RememberedChanges
from weirflow.flows.small_stages import FEW_ROWS, is_small
from weirflow.ivm.durability.manifest import Pack
from weirflow.ivm.sharded.worker.reports import RowsRef, StageTask, TickTask

ROWS = pa.table({"a": [1, 2], "b": ["x", "y"], "_weight": [1, -1]})


def task(rows=1, state=1, fill=None, uri="/state"):
    ticks = [TickTask(1, {0: {"orders": [RowsRef(rows, data=b"")]}})]
    packs = {"pack": Pack(state, "")}
    return StageTask(uri, b"", 1, ticks, 0, fill, {}, {}, packs=packs, released={}, watermarks={})


@pytest.mark.parametrize(
    ("one", "expected"),
    [
        (task(), True),
        (task(rows=FEW_ROWS + 1), False),
        (task(state=1 << 40), False),
        (task(fill=0), False),
        (task(state=1 << 30), True),
        (task(state=1 << 30, uri="s3://lake/state"), False),
    ],
)
def test_a_tick_runs_here_if_rows_and_state_are_small(one, expected):
    assert is_small([one]) is expected


def test_columns_that_were_read_with_others_are_not_read_again():
    memory = RememberedChanges()
    assert memory.get("change", ROWS.schema, lambda: ROWS) is ROWS
    found = memory.get("change", pa.schema([("b", pa.string())]), pytest.fail)
    assert found.to_pydict() == {"b": ["x", "y"], "_weight": [1, -1]}


def test_columns_that_are_missing_or_of_another_type_are_read():
    memory = RememberedChanges()
    memory.get("change", ROWS.schema, lambda: ROWS)
    for wanted in (pa.schema([("c", pa.int64())]), pa.schema([("a", pa.int32())])):
        other = pa.table({wanted.names[0]: pa.array([5], wanted.types[0]), "_weight": [1]})
        assert memory.get("change", wanted, lambda other=other: other) is other
    assert memory.get("another change", ROWS.schema, lambda: ROWS.slice(1)).num_rows == 1


def test_what_was_not_read_for_longest_is_forgotten_and_what_is_too_large_not_kept():
    memory = RememberedChanges(kept_bytes=2 * ROWS.nbytes)
    reads = []
    for change in ("one", "two", "one", "three", "one", "two"):
        memory.get(change, ROWS.schema, lambda change=change: reads.append(change) or ROWS)
    assert reads == ["one", "two", "three", "two"]
    large = pa.concat_tables([ROWS] * 3).combine_chunks()
    for _ in range(2):
        memory.get("large", ROWS.schema, lambda: reads.append("large") or large)
    assert reads[4:] == ["large", "large"]


def test_a_read_that_fails_is_tried_again():
    memory = RememberedChanges()
    with pytest.raises(ZeroDivisionError):
        memory.get("change", ROWS.schema, lambda: 1 / 0)
    assert memory.get("change", ROWS.schema, lambda: ROWS) is ROWS
