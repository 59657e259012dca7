"""Values in errors: short, whatever they are."""

from __future__ import annotations

import reprlib
from typing import Any

_MOST = 60
_LONGEST_KIND = 100
_short = reprlib.Repr()
_short.maxlevel, _short.maxstring, _short.maxlong, _short.maxother = 3, _MOST, _MOST, _MOST


def shown(value: Any) -> str:
    """A value as text of bounded length; its kind, if it cannot be written."""
    try:
        return shortened(_short.repr(value))
    except Exception:  # noqa: BLE001 - whatever a repr raises, the error is about the value
        return kind_of(value)


def shortened(text: str) -> str:
    """A text of bounded length."""
    return text if len(text) <= _MOST else f"{text[: _MOST - 3]}..."


def kind_of(value: Any) -> str:
    """The type of a value, with its article."""
    kind = type(value).__name__[:_LONGEST_KIND]
    return kind if kind == "bytes" else f"{'an' if kind[:1] in tuple('aeiouAEIOU') else 'a'} {kind}"
