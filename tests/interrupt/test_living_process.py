"""What can happen to a flow inside a process that lives on: forks, odd tokens, full disks, dead readers."""

from __future__ import annotations

import asyncio
import errno
import os
import stat
import struct
import threading
import traceback
import zlib

import pytest
from support.simulated_disk import SimulatedDisk

from weirflow import DeltaBatch
from weirflow.errors import ConfigError, FlowError, StorageError, WeirflowError
from weirflow.ivm.flow import IncrementalFlow
from weirflow.ivm.operators.aggregate.recompute import RecomputeCall

ORDERS = "customer STRING, amount BIGINT"
TOTALS = "SELECT customer, SUM(amount) AS total FROM orders GROUP BY customer"


def shop(path=None, **options):
    flow = IncrementalFlow("shop", path=path, **options)
    flow.register_source("orders", ORDERS)
    flow.register_view("totals", TOTALS)
    return flow


def order(customer, amount):
    return [{"customer": customer, "amount": amount}]


def totals(flow):
    return {row["customer"]: row["total"] for row in flow.snapshot("totals").to_pylist()}


def in_child(action):
    """Run something in a forked child; returns what it raised, as text."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            try:
                action()
                said = "nothing was raised"
            except BaseException as error:  # noqa: BLE001 - the parent wants to know
                said = f"{type(error).__name__}: {error}"
            os.write(write, said.encode())
        except BaseException:  # noqa: BLE001 - no test goes on in the child
            traceback.print_exc()
        finally:
            os._exit(0)
    os.close(write)
    with os.fdopen(read, "rb") as pipe:
        said = pipe.read().decode()
    os.waitpid(child, 0)
    return said


# One writer


@pytest.mark.parametrize("what", ["tick", "register_view", "checkpoint", "drop"])
def test_a_forked_child_cannot_change_its_parents_flow(tmp_path, what):
    flow = shop(tmp_path / "flow")
    flow.tick("orders", order("ann", 5))
    actions = {
        "tick": lambda: flow.tick("orders", order("child", 1)),
        "register_view": lambda: flow.register_view("more", "SELECT * FROM orders"),
        "checkpoint": flow.checkpoint,
        "drop": lambda: flow.drop("totals"),
    }
    assert in_child(actions[what]).startswith("FlowError")
    flow.tick("orders", order("ann", 2))
    flow.close()
    with shop(tmp_path / "flow") as again:
        assert totals(again) == {"ann": 7}


def test_closing_lets_go_of_the_folder_while_a_forked_child_lives(tmp_path):
    flow = shop(tmp_path / "flow")
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(write)
        os.read(read, 1)  # until the parent is done
        os._exit(0)
    os.close(read)
    try:
        flow.close()
        shop(tmp_path / "flow").close()
    finally:
        os.close(write)
        os.waitpid(child, 0)


def test_an_open_that_fails_lets_go_of_the_folder(tmp_path):
    shop(tmp_path / "flow").close()
    identity = tmp_path / "flow" / "identity"
    kept = identity.read_bytes()
    identity.chmod(0o600)
    identity.write_bytes(b"nonsense")
    with pytest.raises(StorageError):
        shop(tmp_path / "flow")
    identity.write_bytes(kept)
    shop(tmp_path / "flow").close()


def test_files_of_a_flow_are_for_its_owner_alone(tmp_path):
    before = os.umask(0)
    try:
        with shop(tmp_path / "flow") as flow:
            flow.tick("orders", order("ann", 5))
            assert stat.S_IMODE((tmp_path / "flow").stat().st_mode) == 0o700
            files = [*(tmp_path / "flow").glob("log/*"), tmp_path / "flow" / "lock"]
            assert {stat.S_IMODE(path.stat().st_mode) for path in files} == {0o600}
    finally:
        os.umask(before)


# What is acknowledged can be opened


@pytest.mark.parametrize("token", [b"x", ("a", 1), 7, 1.5, "\ud800", object(), True], ids=repr)
def test_a_token_that_is_no_text_is_refused_before_anything_happens(tmp_path, token):
    with shop(tmp_path / "flow") as flow:
        with pytest.raises(WeirflowError):
            flow.tick("orders", order("ann", 5), token=token)
        assert not flow.pending
        flow.tick("orders", order("ann", 1), token="fine")
    with shop(tmp_path / "flow") as again:
        assert totals(again) == {"ann": 1}


@pytest.mark.parametrize("sql", ["SELECT '\ud800' AS x FROM orders"], ids=repr)
def test_a_view_that_cannot_be_written_down_is_refused(tmp_path, sql):
    with shop(tmp_path / "flow") as flow:
        with pytest.raises(WeirflowError):
            flow.register_view("odd", sql)
        assert flow.views == ("totals",)
    shop(tmp_path / "flow").close()


def test_a_full_disk_at_the_very_first_record_leaves_a_flow_that_works(tmp_path):
    for failing in range(1, 60):
        folder = tmp_path / str(failing)
        folder.mkdir()
        disk = SimulatedDisk(folder)
        with disk.mounted():
            flow = IncrementalFlow("shop", path=folder / "flow")
            disk.fail(failing, errno.ENOSPC)
            try:
                flow.register_source("orders", ORDERS)
            except StorageError as error:
                if "open it again" in str(error.hint):
                    flow.close()
                    flow = IncrementalFlow("shop", path=folder / "flow")
            else:
                flow.close()
                break
            disk.fail(None)
            flow.register_source("orders", ORDERS)
            flow.register_view("totals", TOTALS)
            for amount in (1, 2):
                flow.tick("orders", order("ann", amount))
            flow.close()
        with shop(folder / "flow") as again:
            assert totals(again) == {"ann": 3}
    else:
        pytest.fail("every call failed")
    assert failing > 3


def test_a_torn_end_that_was_never_synced_is_cut_off(tmp_path):
    path = tmp_path / "flow"
    flow = shop(path, fsync=10)
    flow.checkpoint()
    for amount in range(1, 6):
        flow.tick("orders", order("ann", amount))
    image = {one.relative_to(path): one.read_bytes() for one in path.rglob("*") if one.is_file()}
    flow.close()
    (log,) = [
        name for name in image if name.match("log/*.log") and name == max(n for n in image if n.match("log/*.log"))
    ]
    for lost in range(1, len(image[log]) - 36, 7):
        copy = tmp_path / f"copy{lost}"
        for name, data in image.items():
            (copy / name).parent.mkdir(parents=True, exist_ok=True)
            (copy / name).write_bytes(data[:-lost] if name == log else data)
        with shop(copy) as again:
            kept = again.epoch
            assert totals(again) == ({"ann": sum(range(1, kept + 1))} if kept else {})
            again.tick("orders", order("ann", 100))
        with shop(copy) as again:
            assert totals(again) == {"ann": sum(range(1, kept + 1)) + 100}


def test_a_log_with_a_tail_of_the_first_format_is_read(tmp_path):
    with shop(tmp_path / "flow") as flow:
        flow.tick("orders", order("ann", 5))
    tail = tmp_path / "flow" / "log" / "tail"
    magic, identity, number, _ = struct.unpack("<8s16sQI", tail.read_bytes())
    assert magic == b"WFTAIL2\n"
    body = struct.pack("<16sQ", identity, number)
    tail.write_bytes(body + struct.pack("<I", zlib.crc32(body)))
    with shop(tmp_path / "flow") as again:
        assert totals(again) == {"ann": 5}
        again.tick("orders", order("ann", 1))
    with shop(tmp_path / "flow") as again:
        assert totals(again) == {"ann": 6}


def test_a_sync_that_failed_is_final_until_the_flow_is_opened_again(tmp_path, monkeypatch):
    flow = shop(tmp_path / "flow")
    flow.tick("orders", order("ann", 1))
    real = os.fdatasync

    def fail(file):
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(os, "fdatasync", fail)
    with pytest.raises(StorageError, match="could not be synced"):
        flow.tick("orders", order("ann", 2))
    monkeypatch.setattr(os, "fdatasync", real)
    for attempt in (flow.retry, lambda: (flow.discard(), flow.tick("orders", order("ann", 4)))):
        with pytest.raises(StorageError, match="not known"):
            attempt()
    assert totals(flow) == {"ann": 1}
    flow.close()
    with shop(tmp_path / "flow") as again:
        assert totals(again) in ({"ann": 1}, {"ann": 3})
        before = totals(again)["ann"]
        again.tick("orders", order("ann", 8))
        assert totals(again) == {"ann": before + 8}


# A tick that is committed never raises for what follows it


def test_whatever_an_automatic_checkpoint_raises_the_tick_has_happened(tmp_path, monkeypatch, caplog):
    flow = shop(tmp_path / "flow", checkpoint_every=1)

    def fail(*_, **__):
        raise RuntimeError("out of order")

    monkeypatch.setattr(type(flow._backend._store), "checkpoint", fail)
    assert flow.tick("orders", order("ann", 1)).epoch == 1
    assert "out of order" in caplog.text
    flow.close()


def test_a_reader_in_a_dead_event_loop_keeps_nobody_from_the_epoch(caplog):
    flow = shop()
    dead, alive = flow.watch_output("totals"), flow.watch_output("totals")
    called = []
    flow.on_delta("totals", lambda epoch, _: called.append(epoch))
    loop = asyncio.new_event_loop()
    task = loop.create_task(dead.__anext__())
    loop.run_until_complete(asyncio.sleep(0))
    loop.close()
    flow.tick("orders", order("ann", 1))
    assert not flow.pending
    assert called == [1]
    assert alive.get(timeout=0)[0] == 1
    assert "event loop" in caplog.text
    task._log_destroy_pending = False  # its loop is gone, and that is what this is about


def test_a_tick_that_waits_for_a_reader_holds_up_neither_snapshots_nor_closing(monkeypatch):
    flow = shop()
    flow.watch_output("totals", capacity=1, policy="block")
    flow.tick("orders", order("ann", 1))
    raised = []

    def tick():
        try:
            flow.tick("orders", order("ann", 2))
        except FlowError as error:
            raised.append(error)

    waiting = threading.Event()
    real = type(flow._backend._outputs).await_room

    def await_room(outputs, changed):
        waiting.set()
        real(outputs, changed)

    monkeypatch.setattr(type(flow._backend._outputs), "await_room", await_room)
    thread = threading.Thread(target=tick)
    thread.start()
    assert waiting.wait(20)
    assert totals(flow) == {"ann": 1}
    flow.close()
    thread.join(20)
    assert not thread.is_alive()
    assert "closed" in raised[0].message


# What a failed tick leaves


@pytest.mark.parametrize("error", [KeyboardInterrupt, MemoryError])
def test_far_doubles_of_a_tick_that_failed_are_not_in_the_next(error, monkeypatch):
    flow = IncrementalFlow()
    flow.register_source("numbers", "k BIGINT, x DOUBLE")
    flow.register_view("sums", "SELECT k, SUM(x) AS s, SIZE(COLLECT_LIST(x)) AS n FROM numbers GROUP BY k")
    flow.tick("numbers", [{"k": 1, "x": 1.0}])

    def fail(*_):
        raise error

    with monkeypatch.context() as patched:
        patched.setattr(RecomputeCall, "step", fail)
        with pytest.raises(error):
            flow.tick("numbers", [{"k": 1, "x": 1e300}])
    flow.discard()
    flow.tick("numbers", [{"k": 1, "x": 2.0}])
    assert flow.snapshot("sums").to_pylist() == [{"k": 1, "s": 3.0, "n": 2}]


# What the above must not cost: none of these was ever broken


def test_a_child_that_closes_its_copy_leaves_the_flow_to_its_parent(tmp_path):
    flow = shop(tmp_path / "flow", fsync=0)
    flow.tick("orders", order("ann", 5))
    assert in_child(flow.close) == "nothing was raised"
    with pytest.raises(FlowError, match="open in another"):
        shop(tmp_path / "flow")
    flow.tick("orders", order("ann", 2))
    flow.close()
    with shop(tmp_path / "flow") as again:
        assert totals(again) == {"ann": 7}


def test_a_flow_in_memory_is_each_processs_own():
    flow = shop()
    flow.tick("orders", order("ann", 5))
    assert in_child(lambda: flow.tick("orders", order("child", 1))) == "nothing was raised"
    assert totals(flow) == {"ann": 5}


def test_a_discarded_tick_whose_record_was_torn_by_a_full_disk_does_not_come_back(tmp_path, monkeypatch):
    flow = shop(tmp_path / "flow")
    flow.tick("orders", order("ann", 1))
    real = os.write

    def half(file, data):
        if len(data) > 10:
            return real(file, bytes(data)[: len(data) // 2])
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "write", half)
    with pytest.raises(StorageError, match="No space"):
        flow.tick("orders", order("ann", 2))
    monkeypatch.setattr(os, "write", real)
    flow.discard()
    flow.tick("orders", order("ann", 4))
    flow.close()
    with shop(tmp_path / "flow") as again:
        assert totals(again) == {"ann": 5}


def test_a_delta_may_be_given_again_after_it_was_refused(tmp_path):
    with shop(tmp_path / "flow") as flow:
        with pytest.raises(ConfigError):
            flow.tick("orders", [{"customer": "ann", "price": 1}])
        flow.tick("orders", DeltaBatch.from_inserts(order("ann", 1)))
        assert totals(flow) == {"ann": 1}
