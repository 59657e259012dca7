"""Runs many seeds, shows how far it is, and makes what fails small."""

from __future__ import annotations

import os
import sys
import time
from typing import TYPE_CHECKING, Protocol

from support.generator.case import make_case
from support.generator.shrink import shrink

if TYPE_CHECKING:
    from collections.abc import Callable

    import pytest
    from support.generator.case import Case
    from support.generator.replay import Mismatch, Tally

SEEDS = "CAMPAIGN_SEEDS"
"""The environment variable with the seeds to run, as ``first:last``, the last one excluded."""
_MOST_FAILURES = 5
_SHOWN_EVERY = 500


class Checker(Protocol):
    """What compares a case with something else."""

    tally: Tally

    def check(self, case: Case) -> Mismatch | None:
        """The first mismatch, or None."""


def seeds(count: int) -> range:
    """The seeds from 0 to ``count``, or those of ``CAMPAIGN_SEEDS``."""
    first, _, last = os.environ.get(SEEDS, f"0:{count}").partition(":")
    return range(int(first), int(last))


def shown(capsys: pytest.CaptureFixture[str]) -> Callable[[str], None]:
    """Prints a line at once, whatever pytest captures."""

    def show(line: str) -> None:
        with capsys.disabled():
            sys.stdout.write(f"{line}\n")
            sys.stdout.flush()

    return show


def failures(
    checker: Checker,
    chosen: range,
    show: Callable[[str], None] | None = None,
    make: Callable[[int], Case] = make_case,
) -> list[str]:
    """Every seed whose views are not what they should be, made small, up to a handful."""
    found: list[str] = []
    start = time.monotonic()
    for done, seed in enumerate(chosen, 1):
        report = _report(checker, make(seed))
        if report is not None:
            found.append(report)
            if show is not None:
                show(report)
        if show is not None and done % _SHOWN_EVERY == 0:
            speed = done / (time.monotonic() - start)
            show(f"up to seed {seed}: {speed:.1f} cases/s, {len(found)} failures; {checker.tally}")
        if len(found) == _MOST_FAILURES:
            break
    return found


def _report(checker: Checker, case: Case) -> str | None:
    try:
        mismatch = checker.check(case)
    except Exception as error:  # noqa: BLE001 - whatever it is, the seed says how to see it again
        return f"seed {case.seed} raises {type(error).__name__}: {error}\n{case}"
    if mismatch is None:
        return None
    small = shrink(case, lambda smaller: _fails_alike(checker, smaller, mismatch))
    return f"seed {case.seed}: {mismatch}\n--- made small: {checker.check(small)}\n{small}"


def _fails_alike(checker: Checker, case: Case, mismatch: Mismatch) -> bool:
    """Whether a smaller case fails against the same reference; one that cannot be run any more does not."""
    try:
        found = checker.check(case)
    except Exception:  # noqa: BLE001 - either engine may refuse what is left of the SQL
        return False
    return found is not None and found.against == mismatch.against
