"""What deltas do to rows that a key identifies."""

import pytest

from weirflow import DeltaBatch
from weirflow.errors import ConfigError, DataError
from weirflow.flows.sinks.keyed_changes import key_columns, keyed_changes, summed
from weirflow.flows.sinks.table import merge_rows


def row(name, total):
    return {"name": name, "total": total}


def found(delta, key=("name",)):
    changes = keyed_changes(delta, key)
    return [sorted(map(str, rows.to_pylist())) for rows in (changes.new, changes.changed, changes.gone)]


def test_keys_are_new_changed_or_gone():
    delta = DeltaBatch.from_updates([row("ann", 1), row("bob", 2)], [row("ann", 3), row(None, 4)])
    assert found(delta) == [[str(row(None, 4))], [str(row("ann", 3))], [str(row("bob", 2))]]


def test_what_comes_and_goes_is_nothing():
    there, back = DeltaBatch.from_inserts([row("ann", 1)]), DeltaBatch.from_deletes([row("ann", 1)])
    assert found(summed([(1, there), (2, back)])) == [[], [], []]
    updated = DeltaBatch.from_updates([row("ann", 1)], [row("ann", 2)])
    assert found(summed([(1, there), (2, updated)])) == [[str(row("ann", 2))], [], []]


def test_zeros_of_either_sign_are_one_key():
    delta = DeltaBatch.from_updates([row(-0.0, 1)], [row(0.0, 2)])
    assert found(delta) == [[], [str(row(0.0, 2))], []]


def test_two_rows_of_a_key_are_an_error():
    with pytest.raises(DataError, match=r"several rows for the key \{'name': 'ann'\}"):
        found(DeltaBatch.from_inserts([row("ann", 1), row("ann", 2)]))
    assert found(DeltaBatch.from_inserts([row("ann", 1), row("ann", 2)]), ("name", "total"))[1:] == [[], []]


def test_rows_to_merge_are_marked_and_in_one_chunk():
    merged = merge_rows(DeltaBatch.from_deletes([row("bob", 2)]), ["name"])
    assert merged.to_pylist() == [{**row("bob", 2), "_deleted": True}]
    assert [column.num_chunks for column in merged.columns] == [1, 1, 1]
    assert merge_rows(DeltaBatch.from_inserts([row("ann", 1)]).consolidate(), ["name"]).num_rows == 1


def test_a_key_is_of_columns_that_are_there():
    schema = DeltaBatch.from_inserts([row("ann", 1)]).schema
    assert key_columns("name", schema) == key_columns(["name", "name"], schema) == ("name",)
    for key, message in (([], "at least one"), ("nam", "no column 'nam'")):
        with pytest.raises(ConfigError, match=message):
            key_columns(key, schema)
