"""Stream to flow to files: whenever the process is killed, the files are those of a run that never died."""

import random
import sys
import time
from collections import Counter
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from support import stream_shop
from support.processes import ChildProcess

from weirflow import IncrementalFlow

FILES = 8
# Between the tick and Spark's note of it, and between the write of a sink and its note.
KILLS = [("feed.after_tick", 2), ("sink.after_write", 2)]
# Before the tick and before a write, when there is less to lose.
MORE_KILLS = [("sink.before_file", 6), ("feed.before_tick", 1)]


@pytest.fixture
def folder(tmp_path, own_spark):
    own_spark()  # there is room for one Spark
    stream_shop.land(tmp_path / "inbox", FILES)
    return tmp_path


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    out = tmp_path_factory.mktemp("undisturbed")
    with IncrementalFlow("shop") as flow:
        stream_shop.declare(flow, out)
        for number in range(FILES):
            flow.tick("orders", stream_shop.rows(number))
    return sunk(out)


def sunk(out):
    return {name: Counter(map(str, pq.read_table(out / name).to_pylist())) for name in stream_shop.VIEWS}


def life(folder, *arguments):
    script = Path(stream_shop.__file__)
    return ChildProcess(
        [sys.executable, script, folder, *arguments], name="shop", env={"PYTHONPATH": str(script.parent.parent)}
    )


def finish(folder):
    with life(folder) as child:
        assert child.wait(120.0) == 0, child.log


@pytest.mark.parametrize("kills", [KILLS, pytest.param([*KILLS, *MORE_KILLS], marks=pytest.mark.campaign)], ids=len)
def test_kills_at_the_worst_moments_lose_and_double_nothing(folder, undisturbed, kills):
    for point, nth in kills:
        with life(folder, point, str(nth)) as child:
            assert child.wait(120.0) == -9, f"{point} was not reached: {child.log}"
    finish(folder)
    assert sunk(folder / "out") == undisturbed


@pytest.mark.campaign
@pytest.mark.parametrize("seed", range(20))
def test_kills_at_any_moment_lose_and_double_nothing(folder, undisturbed, seed):
    chosen = random.Random(seed)
    for _ in range(4):
        with life(folder) as child:
            child.wait_until(lambda child=child: "epoch" in child.log or child.returncode == 0, 120.0, "ticking")
            time.sleep(chosen.uniform(0, 1))
            child.kill()
    finish(folder)
    assert sunk(folder / "out") == undisturbed
