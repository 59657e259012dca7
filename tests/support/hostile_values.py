"""Values that no argument, or only some, may be given, each under a name that says what it is."""

from __future__ import annotations

import math
from datetime import timedelta
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


def hostile_values(folder: Path, letters: int = 1_000_000) -> dict[str, Any]:
    """All of them. ``folder`` is an empty folder of the test's own; a file is made in it."""
    file = folder / "a file"
    file.write_text("not a folder")
    return {
        "None": None,
        "True": True,
        "-1": -1,
        "0": 0,
        "a large int": 10**9,
        "an int of 400 digits": 10**400,
        "an int of 5,000 digits": 10**5_000,
        "1.5": 1.5,
        "-0.5": -0.5,
        "nan": math.nan,
        "inf": math.inf,
        "1e300": 1e300,
        "empty text": "",
        "blanks": "  ",
        "a word": "zzz",
        "a digit": "9",
        "a million letters": "x" * letters,
        "bytes": b"zzz",
        "NUL": "a\0b",
        "a lone surrogate": "a\ud800b",
        "an empty list": [],
        "a list of ints": [1, 2],
        "an empty dict": {},
        "a dict of ints": {1: 2},
        "nested garbage": [[{"a": object()}], {None: ...}],
        "an object": object(),
        "a generator": (number for number in ()),
        "a class": _Nothing,
        "a function without arguments": _nothing,
        "a negative time": timedelta(seconds=-1),
        "an async function": _later,
        "a generator function": _one_by_one,
        "a path below a file": file / "below",
        "a path that is no text": _Nowhere(),
        "a path with a lone surrogate": folder / "a\ud800b",
        "a path of a long name": folder / ("x" * 300),
        "a file": file,
    }


def _nothing() -> None:
    """Takes nothing."""


async def _later(*_: object) -> None:
    """Does nothing when it is called."""


def _one_by_one(*_: object) -> Iterator[int]:
    """Does nothing when it is called."""
    yield 1


class _Nowhere:
    """Says that it is a path."""

    def __fspath__(self) -> str:
        raise LookupError("nobody knows")


class _Nothing:
    """Is made of nothing."""
