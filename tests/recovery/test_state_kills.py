"""A process that is killed while it writes keyed state loses no batch that was acknowledged, and shows none by half."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from support.generator.campaign import seeds

from weirflow.checkpoint import open_checkpoint_storage
from weirflow.checkpoint.keyed_state.checkpoints import KeyedStateCheckpoints
from weirflow.state import KeyedStateStore, KeyGroupRange, RocksDbStateBackend, StateDescriptor

ALL = KeyGroupRange(0, 128)
KEYS = 50
BATCH = StateDescriptor("batch", int, int)
LOG = StateDescriptor("log", int, list[int])
OTHER = StateDescriptor("other", str, int)


def open_stores(backend):
    one, other = KeyedStateStore(backend, "one"), KeyedStateStore(backend, "two")
    return one, one.value(BATCH), one.list(LOG), other, other.value(OTHER)


def write_batches(path, storage, every):
    """What the child does, until it is killed."""
    backend = RocksDbStateBackend(path, fsync=0)
    checkpoints = KeyedStateCheckpoints(open_checkpoint_storage(storage))
    one, batch, log, other, beside = open_stores(backend)
    done = batch.get_many([0])[0] or 0
    while True:
        done += 1
        batch.set_many(range(KEYS), [done] * KEYS)
        one.set_key(done % 3)
        log.add(done)
        one.flush()
        beside.set_many(["last"], [done])
        other.flush()
        say(done)
        if every and done % every == 0:
            checkpoints.save({ALL: backend}, epoch=done)
            say(-done)


def say(number):
    sys.stdout.write(f"{number}\n")
    sys.stdout.flush()


def live_and_die(path, storage, every, after):
    """Kill a child when it has said so many lines; the last batch and the last checkpoint that it acknowledged."""
    child = subprocess.Popen(
        [sys.executable, __file__, str(path), str(storage), str(every)],
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parent.parent)},
    )
    said = []
    with child:
        for line in child.stdout:
            said.append(int(line))
            if len(said) == after:
                os.kill(child.pid, signal.SIGKILL)
    assert child.returncode == -signal.SIGKILL
    return max(said), -min([*said, 0])


def check(backend, *, at_least):
    _, batch, log, _, beside = stores = open_stores(backend)
    (done,) = set(batch.get_many(range(KEYS)))
    assert done >= at_least
    logged = []
    for key in range(3):
        stores[0].set_key(key)
        logged += log.get()
    assert sorted(logged) == list(range(1, done + 1))
    assert done - 1 <= beside.get_many(["last"])[0] <= done
    return done


@pytest.mark.parametrize("after", [1, 7, 40])
def test_a_kill_loses_nothing_acknowledged(tmp_path, after):
    done = 0
    for life in range(3):
        said, _ = live_and_die(tmp_path / "state", tmp_path / "storage", 0, after + life)
        assert said > done
        backend = RocksDbStateBackend(tmp_path / "state")
        done = check(backend, at_least=said)
        backend.close()


@pytest.mark.parametrize("after", [4, 9, 25])
def test_a_checkpoint_that_was_acknowledged_restores_whatever_was_killed(tmp_path, after):
    for life in range(2):
        _, saved = live_and_die(tmp_path / "state", tmp_path / "storage", 1 + life, after)
        checkpoints = KeyedStateCheckpoints(open_checkpoint_storage(tmp_path / "storage"))
        assert saved in checkpoints.epochs()
        for epoch in checkpoints.epochs():
            assert check(checkpoints.restore(ALL, epoch=epoch), at_least=epoch) == epoch
        backend = RocksDbStateBackend(tmp_path / "state")
        reached = check(backend, at_least=saved)
        if reached not in checkpoints.epochs():  # the child may have saved just that, and was killed before saying so
            checkpoints.save({ALL: backend}, epoch=reached)
        backend.close()
        assert sorted(path.name for path in tmp_path.iterdir()) == ["state", "storage"]


@pytest.mark.campaign
@pytest.mark.parametrize("seed", seeds(100))
def test_kill_after_kill(tmp_path, seed):
    for life in range(3):
        said, _ = live_and_die(tmp_path / "state", tmp_path / "storage", seed % 4, 1 + (seed * 7 + life * 13) % 60)
        backend = RocksDbStateBackend(tmp_path / "state")
        check(backend, at_least=said)
        backend.close()


if __name__ == "__main__":
    write_batches(sys.argv[1], sys.argv[2], int(sys.argv[3]))
