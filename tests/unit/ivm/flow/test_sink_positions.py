"""How far a function is, as a durable flow remembers it: damage is noticed, old files are read."""

import json

import pytest
from support.sunk_shop import declare, order, written

from weirflow.errors import StorageError
from weirflow.ivm.flow import IncrementalFlow


def shop(path):
    return declare(IncrementalFlow("shop", path=path))


def told(into):
    return lambda epoch, _: into.append(epoch)


def orders_until(path, epochs):
    """A flow of so many ticks whose function was told of all of them."""
    seen = []
    with shop(path) as flow:
        flow.sink("totals", told(seen), name="told")
        for amount in range(1, epochs + 1):
            order(flow, amount)
    return path / "sinks" / "told.json"


def test_a_position_whose_digit_changed_is_not_believed(tmp_path):
    file = orders_until(tmp_path, 41)
    with shop(tmp_path) as flow:
        for amount in range(10):
            order(flow, amount)
    file.write_bytes(file.read_bytes().replace(b"41", b"49"))
    with shop(tmp_path) as flow, pytest.raises(StorageError, match=r"told\.json cannot be used") as error:
        flow.sink("totals", told([]), name="told")
    assert "resync=True" in error.value.hint


def test_a_damaged_position_is_replaced_by_resync(tmp_path):
    file = orders_until(tmp_path, 3)
    file.write_bytes(b"")
    seen = []
    with shop(tmp_path) as flow:
        flow.sink("totals", told(seen), name="told", resync=True)
        order(flow, 10)
    assert seen == [3, 4]
    with shop(tmp_path) as flow:
        flow.sink("totals", told(seen), name="told")
        order(flow, 10)
    assert seen == [3, 4, 5]


def test_no_byte_of_a_position_can_change_unnoticed(tmp_path):
    file = orders_until(tmp_path, 12)
    whole = file.read_bytes()
    with shop(tmp_path) as flow:
        for at in range(len(whole)):
            for damaged in (whole[:at], whole[at + 1 :], whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :]):
                file.write_bytes(damaged)
                with pytest.raises(StorageError, match="told"):
                    flow.sink("totals", told([]), name="told")
        file.write_bytes(whole)
        assert flow.sink("totals", told([]), name="told").position == 12


def test_a_position_of_an_earlier_version_is_read_and_sealed_by_the_next_write(tmp_path):
    file = orders_until(tmp_path, 2)
    owner = json.loads(file.read_bytes().partition(b"\n")[2])["owner"]
    file.write_bytes(json.dumps({"owner": owner, "epoch": 2}).encode())
    seen = []
    with shop(tmp_path) as flow:
        flow.sink("totals", told(seen), name="told")
        order(flow, 10)
    assert seen == [3]
    assert len(file.read_bytes().partition(b"\n")[0]) == 64


@pytest.mark.parametrize("damage", [lambda _: b"", lambda data: data[: len(data) // 2], lambda data: data[:-4]])
def test_a_damaged_parquet_file_is_named_and_replaced_by_resync(tmp_path, damage):
    with shop(tmp_path / "flow") as flow:
        flow.sink("totals", tmp_path / "out")
        order(flow, 5)
        order(flow, 7)
    last = max((tmp_path / "out").glob("*.parquet"))
    last.write_bytes(damage(last.read_bytes()))
    with shop(tmp_path / "flow") as flow:
        with pytest.raises(StorageError, match=last.name) as error:
            flow.sink("totals", tmp_path / "out")
        assert "resync=True" in error.value.hint
        flow.sink("totals", tmp_path / "out", resync=True)
    assert written(tmp_path / "out") == [("ann", 12, 1, 2)]
