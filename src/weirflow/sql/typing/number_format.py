"""``NumberFormat``: the formats of ``to_number`` and ``to_char``, such as ``S$999,999.00``."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from weirflow.sql.types import MAX_PRECISION, decimal

if TYPE_CHECKING:
    import pyarrow as pa

_FORMAT = re.compile(r"(MI|S)?(\$)?((?:[09]+(?:[,G][09]+)*)?)([.D]?)([09]*)(PR|MI|S)?")
_SEPARATOR = re.compile("[,G]")


@dataclass(frozen=True)
class NumberFormat:
    """What is before and behind the point.

    Attributes:
        before: the sign in front: S (either), MI (a minus) or nothing.
        dollar: whether a dollar sign comes next.
        groups: of digits between separators: how many, and whether there must be as many.
        point: whether there is a point.
        places: the digits behind it.
        behind: the sign at the end; PR is for angle brackets around what is negative.
    """

    before: str
    dollar: bool
    groups: tuple[tuple[int, bool], ...]
    point: bool
    places: int
    behind: str

    @property
    def digits(self) -> int:
        """How many digits there are in front of the point."""
        return sum(count for count, _ in self.groups)

    @property
    def type(self) -> pa.DataType:
        """That of the numbers it describes."""
        return decimal(self.digits + self.places, self.places)


def number_format(text: str) -> NumberFormat | None:
    """The format that a text is; None if it is none, or has more digits than a decimal.

    >>> number_format("s9,990.99").digits
    4
    """
    found = _FORMAT.fullmatch(text.upper()) if text.isascii() else None
    if found is None or (found[1] is not None and found[1] == found[6]):
        return None
    groups = tuple((len(one), one[0] == "0") for one in _SEPARATOR.split(found[3]) if one)
    made = NumberFormat(found[1] or "", bool(found[2]), groups, bool(found[4]), len(found[5]), found[6] or "")
    return made if 0 < made.digits + made.places <= MAX_PRECISION else None
