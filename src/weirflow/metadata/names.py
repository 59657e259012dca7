"""What may be a name, a time to live, and a JSON value; anything else is refused before the database is asked."""

from __future__ import annotations

import json
import math
from typing import Any

from weirflow.errors import ConfigError

LONGEST_NAME = 255


def require_name(what: str, name: str) -> None:
    """Refuse what is not 1 to 255 printable characters."""
    if not (0 < len(name) <= LONGEST_NAME and name.isprintable()):
        raise ConfigError(f"{what} must be 1 to {LONGEST_NAME} printable characters, not {name[:LONGEST_NAME]!r}.")


def require_seconds(what: str, seconds: float) -> float:
    """A number of seconds above zero, as a float."""
    if not (math.isfinite(seconds) and seconds > 0):
        raise ConfigError(f"{what} must be a number of seconds above 0, not {seconds}.")
    return float(seconds)


def to_json(what: str, value: Any) -> str:
    """A value as JSON text, from which it comes back equal; one that would not is refused."""
    try:
        text = json.dumps(value, allow_nan=False)
    except (TypeError, ValueError, RecursionError):
        text = None
    if text is None or json.loads(text) != value:
        raise ConfigError(
            f"{what} is not JSON.",
            hint="use dicts with text as keys, lists, text, finite numbers, True, False and None",
        )
    return text
