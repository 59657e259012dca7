"""Keyed state under random operations, checkpoints, restores and crashes equals plain dicts.

`CAMPAIGN_SEEDS=first:last` chooses the seeds, to go on with a run or to split it between processes.
"""

import time

import pytest
from support.generator.campaign import seeds, shown
from support.state_model import BACKENDS, KINDS, TTLS, mismatch

from weirflow.state.backends.ttl import TtlStateBackend
from weirflow.state.buffer import WriteBuffer

COMBINATIONS = len(KINDS) * len(BACKENDS) * len(TTLS)


def failures(chosen, show=None):
    found = []
    start = time.monotonic()
    for done, seed in enumerate(chosen, 1):
        report = mismatch(seed)
        if report is not None:
            found.append(report)
        if show is not None and (report is not None or done % 1000 == 0):
            show(report or f"up to seed {seed}: {done / (time.monotonic() - start):.1f} cases/s, {len(found)} failures")
        if len(found) == 5:
            break
    return found


def test_random_operations():
    """Every kind of state in every backend with every time to live, four times."""
    assert failures(seeds(4 * COMBINATIONS)) == []


@pytest.mark.campaign
def test_many_random_operations(capsys):
    assert failures(seeds(20_000), shown(capsys)) == []


@pytest.mark.parametrize(
    ("where", "name", "broken"),
    [
        (TtlStateBackend, "expired", lambda *_: False),
        (WriteBuffer, "discard", lambda _: None),
        (WriteBuffer, "flush", lambda self: self.discard()),
    ],
)
def test_what_is_wrong_is_found(monkeypatch, where, name, broken):
    monkeypatch.setattr(where, name, broken)
    assert failures(range(COMBINATIONS))
