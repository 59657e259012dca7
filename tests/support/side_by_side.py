"""Tests in processes side by side: each begins with its own part, then helps with what the others have not begun.

All are given the same folder (``--beside``): a group of tests is run by whoever creates its file there first.
"""

from __future__ import annotations

import hashlib
from itertools import groupby
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    import pytest

SPARK, OWN, PLAIN = PARTS = ("spark", "own", "plain")
SHARED, NO_SPARK = 0, 4
OTHERS = {"own_spark": 1, "durable_spark": 2, "connector_spark": 3}
Group = tuple[int, str]


def spark_of(item: pytest.Item) -> int:
    """Which Spark a test uses in its process: that of most tests, another by the fixture it asks for, or none."""
    fixtures = getattr(item, "fixturenames", ())
    other = max((OTHERS.get(name, SHARED) for name in fixtures), default=SHARED)
    return other or (SHARED if "shared_session" in fixtures else NO_SPARK)


def part_of(item: pytest.Item) -> str:
    """Tests that share a Spark are one part, so that only one process starts it; those without any are another."""
    return {SHARED: SPARK, NO_SPARK: PLAIN}.get(spark_of(item), OWN)


def run_beside(session: pytest.Session, part: str, folder: Path) -> None:
    """Run what falls to this process, as pytest's own loop would."""
    taken = _taken(session, part, folder)
    item = next(taken, None)
    while item is not None:
        following = next(taken, None)
        item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
        if session.shouldfail:
            raise session.Failed(session.shouldfail)
        if session.shouldstop:
            raise session.Interrupted(session.shouldstop)
        item = following


def _taken(session: pytest.Session, part: str, folder: Path) -> Iterator[pytest.Item]:
    """What other processes begin with is gone through from the end, what needs no other Spark first."""
    groups = [(name, list(items)) for name, items in groupby(session.items, key=_group_of)]
    own = [group for group in groups if part_of(group[1][0]) == part]
    others = [group for group in groups if part_of(group[1][0]) != part]
    for name, items in [*own, *reversed(others)]:
        if _take(folder, name):
            yield from items
        else:
            session.testscollected -= len(items)  # what progress is shown of


def _group_of(item: pytest.Item) -> Group:
    """Tests of one file go together, because they share fixtures."""
    return spark_of(item), str(item.path)


def _take(folder: Path, group: Group) -> bool:
    try:
        (folder / hashlib.sha256(repr(group).encode()).hexdigest()).touch(exist_ok=False)
    except FileExistsError:
        return False
    return True
