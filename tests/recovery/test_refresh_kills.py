"""Refreshes that are killed with ``kill -9`` between any two of their steps: the view holds what it names, always."""

import os
import signal
import sys
from pathlib import Path

import pytest
from support import refresh_lives
from support.connectors import require_connectors
from support.processes import ChildProcess

from weirflow.failpoints import REFRESH_POINTS


def ended(kind, folder, *point):
    """How one life ended, and what it said."""
    script = Path(refresh_lives.__file__)
    paths = [str(script.parent.parent), *filter(None, [os.environ.get("PYTHONPATH")])]
    command = [sys.executable, script, kind, folder, *point]
    with ChildProcess(command, name=kind, env={"PYTHONPATH": os.pathsep.join(paths)}) as child:
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
