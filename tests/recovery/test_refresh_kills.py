"""Refreshes whose process is killed with ``kill -9``, between any two of their steps and at any moment: the view holds
what it names, always."""

import os
import random
import signal
import sys
import time
from collections import Counter
from pathlib import Path

import pytest
from support import refresh_lives
from support.connectors import require_connectors
from support.generator.campaign import seeds, shown
from support.processes import ChildProcess, java_children, wait_gone

from weirflow.failpoints import REFRESH_POINTS


def life(kind, folder, *how):
    script = Path(refresh_lives.__file__)
    paths = [str(script.parent.parent), *filter(None, [os.environ.get("PYTHONPATH")])]
    command = [sys.executable, script, kind, folder, *how]
    return ChildProcess(command, name=kind, env={"PYTHONPATH": os.pathsep.join(paths)})


def ended(kind, folder, *point):
    """How one life ended, and what it said."""
    with life(kind, folder, *point) as child:
        return child.wait(300.0), child.log


@pytest.mark.campaign
@pytest.mark.parametrize("kind", ["iceberg", "delta"])
def test_a_view_that_is_killed_anywhere_holds_what_it_names(kind, tmp_path, own_spark):
    require_connectors(kind)
    own_spark()  # there is room for one Spark
    for point in (REFRESH_POINTS[1], *REFRESH_POINTS):  # the first of them in the first refresh, which is full
        code, log = ended(kind, tmp_path / "session", point)
        assert code == -signal.SIGKILL, log
    code, log = ended(kind, tmp_path / "session")
    assert (code, log.splitlines()[-1]) == (0, "refreshed: incremental None"), log


def kill(child, victim):
    """Kill the whole driver, or one of its two processes: the other has to notice."""
    java = java_children(child.pid)
    if victim == "python":
        os.kill(child.pid, signal.SIGKILL)
        wait_gone({child.pid, *java}, 60.0)
    elif victim == "java":
        for pid in java:
            os.kill(pid, signal.SIGKILL)
        assert child.wait(60.0) != 0, child.log
    else:
        child.kill()


@pytest.mark.campaign
@pytest.mark.parametrize("kind", ["iceberg", "delta"])
def test_a_view_whose_driver_is_killed_at_any_moment_holds_what_it_names(kind, tmp_path, own_spark, capsys):
    require_connectors(kind)
    own_spark()
    show, hit = shown(capsys), Counter()
    for seed in seeds(20):
        chosen = random.Random(seed)
        nth, victim = chosen.randrange(1, 4), chosen.choice(["host", "python", "java"])
        # The first refresh of a process loads most of what there is of classes and modules.
        delay = chosen.random() * (4.0 if nth == 1 else 1.5)
        with life(kind, tmp_path / "session", "on", str(seed)) as child:
            child.wait_until(lambda child=child, nth=nth: _begun(child) >= nth, 300.0, f"refreshing, number {nth}")
            time.sleep(delay)
            lines = child.log.splitlines()
            kill(child, victim)
            last = next(line for line in reversed(lines) if line.startswith("refresh "))
            hit[last.startswith(refresh_lives.BEGINS)] += 1
            show(f"seed {seed}: {victim} was killed {delay:.1f} s behind the beginning of refresh {nth}; {last}")
            assert "AssertionError" not in child.log, child.log
    code, log = ended(kind, tmp_path / "session")
    assert code == 0, log
    assert hit[True] > hit[False], hit


def _begun(child):
    return child.log.count(refresh_lives.BEGINS)
