"""Patterns of dates and times, as far as what Spark makes of them is proven: their parts, in order."""

from __future__ import annotations

import re
from typing import NamedTuple

_TOKEN = re.compile(r"([A-Za-z])\1*|'((?:[^']|'')*)'|([^A-Za-z'])", re.DOTALL)
_MOST = {
    **dict.fromkeys("y", 6),
    **dict.fromkeys("MLEQq", 4),
    **dict.fromkeys("dHhkKms", 2),
    **dict.fromkeys("D", 3),
    **dict.fromkeys("S", 9),
    **dict.fromkeys("a", 1),
    **dict.fromkeys("O", 4),
    **dict.fromkeys("XxZ", 5),
}
"""How often a letter may be there."""
_LOCALIZED = frozenset({1, 4})
"""How often an O may be there."""
_RESERVED = frozenset("{}#")


class Part(NamedTuple):
    """A letter and how often it is there; a text, which has no letter; or one of ``[]`` around what may be missing."""

    letter: str
    times: int
    text: str


def parts_of(pattern: str) -> list[Part] | None:
    """The parts of a pattern; None if it has any that is not known here.

    >>> [part.letter * part.times or part.text for part in parts_of("yyyy-MM")]
    ['yyyy', '-', 'MM']
    """
    found: list[Part] = []
    at, depth = 0, 0
    while at < len(pattern):
        token = _TOKEN.match(pattern, at)
        if token is None:  # a quote that is not closed
            return None
        at = token.end()
        written, letter, quoted, other = token[0], token[1], token[2], token[3]
        if letter is not None:
            if len(written) > _MOST.get(letter, 0) or (letter == "O" and len(written) not in _LOCALIZED):
                return None
            found.append(Part(letter, len(written), ""))
        elif quoted is not None:
            found.append(Part("", 0, quoted.replace("''", "'") if quoted else "'"))
        elif other in _RESERVED:
            return None
        elif other in "[]":
            depth += 1 if other == "[" else -1
            if depth < 0:
                return None
            found.append(Part(other, 1, ""))
        else:
            found.append(Part("", 0, other))
    return None if depth else found
