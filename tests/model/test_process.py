"""Timers of process functions under random changes, failures, checkpoints and crashes equal plain sets.

`CAMPAIGN_SEEDS=first:last` chooses the seeds, to go on with a run or to split it between processes.
"""

import pytest
from support.generator.campaign import seeds
from support.timer_model import mismatch

from weirflow.process.timers import InstanceTimers
from weirflow.state.buffer import WriteBuffer
from weirflow.state.kinds.timer import TimerState


def failure(chosen):
    """The first seed that fails, and why."""
    return next((report for report in map(mismatch, chosen) if report is not None), None)


def test_random_timers():
    assert failure(seeds(48)) is None


@pytest.mark.campaign
def test_many_random_timers():
    assert failure(seeds(5_000)) is None


@pytest.mark.parametrize(
    ("where", "name", "broken"),
    [
        (InstanceTimers, "delete", lambda *_: None),
        (InstanceTimers, "take", lambda *_: True),
        (TimerState, "first", lambda _: None),
        (WriteBuffer, "discard", lambda _: None),
    ],
)
def test_what_is_wrong_is_found(monkeypatch, where, name, broken):
    monkeypatch.setattr(where, name, broken)
    assert failure(range(1, 20))
