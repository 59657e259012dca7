"""Upper, lower and title case as ICU has it, which Spark asks.

Python's own tables agree for every code point, in every context, but for letters that Unicode got after them; those
are listed here, so that the answer does not depend on the Python that runs.
"""

from __future__ import annotations

_PAIRS = {
    0x19B: 0xA7DC,
    0x264: 0xA7CB,
    0x1C8A: 0x1C89,
    0xA7CD: 0xA7CC,
    0xA7DB: 0xA7DA,
    **{0x10D70 + index: 0x10D50 + index for index in range(22)},
}
_UPPER = _PAIRS
_LOWER = {upper: lower for lower, upper in _PAIRS.items()}


def upper(text: str) -> str:
    """Upper case; ß becomes SS."""
    return text.upper().translate(_UPPER)


def lower(text: str) -> str:
    """Lower case; a capital sigma that ends a word becomes ς."""
    return text.translate(_LOWER).lower()


def initial_capitals(text: str) -> str:
    """Title case for the first letter after each space, lower case for the others."""
    return " ".join(_capitalized(word) if word else word for word in text.split(" "))


def _capitalized(word: str) -> str:
    first = word[0]
    rest = lower(word)[len(lower(first)) :]
    return first.title().translate(_UPPER) + rest
