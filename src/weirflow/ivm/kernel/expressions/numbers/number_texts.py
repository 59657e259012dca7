"""``to_number`` and ``to_char``: numbers in texts of a constant format."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING

import pyarrow as pa

from weirflow.ivm.kernel.expressions.failures import failure, shown
from weirflow.ivm.kernel.expressions.strings.texts import constants, first_only, one_by_one
from weirflow.sql.typing.number_format import NumberFormat, number_format

if TYPE_CHECKING:
    from collections.abc import Sequence

    from weirflow.ivm.kernel.expressions.signature import Builder, CallSignature, Kernel

_NOT_SPACES = frozenset("\x85\xa0\u2007\u202f")
"""What Python takes for spaces, and Java does not."""
_SIGNS = {"S": "+-", "MI": "-", "": "", "PR": ""}


def to_number(signature: CallSignature) -> Kernel | None:
    """``to_number(text, format)``: what does not fit is an error, or NULL if the function's name says so."""
    form = _format(signature)
    if form is None or signature.types[0] != pa.string() or not form.groups:
        return None
    tolerant, position = signature.function.startswith("try_"), signature.position

    def number(text: str) -> Decimal | None:
        found = _read(text, form)
        if found is None and not tolerant:
            message = f"{shown(text)!r} is not a number of this format."
            raise failure("INVALID_FORMAT.MISMATCH_INPUT", message, position)
        return found

    return first_only(one_by_one(number, signature.result))


def _format(signature: CallSignature) -> NumberFormat | None:
    known = constants(signature, 1)
    return None if known is None else number_format(known[0])


class _Reading:
    """A text, and how far it has been read."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0

    def at_end(self) -> bool:
        return self._at == len(self._text)

    def take(self, characters: str) -> str:
        """The next character, if it is one of these; else nothing."""
        found = self._text[self._at : self._at + 1]
        if not found or found not in characters:
            return ""
        self._at += 1
        return found

    def groups(self) -> list[str]:
        """The digits between separators that come next, from right to left; spaces do not count."""
        found = [""]
        while not self.at_end():
            character = self._text[self._at]
            if character == ",":
                found.append("")
            elif character.isdecimal():
                found[-1] += character
            elif not character.isspace() or character in _NOT_SPACES:
                break
            self._at += 1
        return found[::-1]


def _read(text: str, form: NumberFormat) -> Decimal | None:
    reading = _Reading(text)
    opened = form.behind == "PR" and bool(reading.take("<"))
    negative = reading.take(_SIGNS[form.before]) == "-"
    if form.dollar and not reading.at_end() and not reading.take("$"):
        return None
    groups = reading.groups()
    if not _fits(groups, form.groups):
        return None
    whole, fraction = "".join(groups[::-1]), ""
    reached = form.point and bool(reading.take("."))
    if form.places:
        rest = reading.groups()
        if not _fits(rest, ((form.places, False),)):
            return None
        whole, fraction = (whole, rest[0]) if reached else (whole + rest[0], "")
    negative ^= reading.take(_SIGNS[form.behind]) == "-"
    closed = form.behind == "PR" and bool(reading.take(">"))
    if not reading.at_end() or opened != closed or not whole + fraction:
        return None
    size = int((whole + fraction.ljust(form.places, "0")) or "0")
    return Decimal(-size if negative != closed else size).scaleb(-form.places)


def _fits(groups: list[str], wanted: Sequence[tuple[int, bool]]) -> bool:
    if len(groups) > len(wanted):
        return False
    sizes = [len(group) for group in groups] + [0] * (len(wanted) - len(groups))
    return all(
        size == count if exact else size <= count for size, (count, exact) in zip(sizes, reversed(wanted), strict=True)
    )


def to_char(signature: CallSignature) -> Kernel | None:
    """``to_char(number, format)``: number signs for one that has more digits."""
    form = _format(signature)
    if form is None or not pa.types.is_decimal(signature.types[0]):
        return None
    return first_only(one_by_one(lambda number: _written(number, form), pa.string()))


def _written(number: Decimal, form: NumberFormat) -> str:
    whole, _, fraction = format(abs(number), "f").partition(".")
    whole, fraction = whole.lstrip("0"), fraction.rstrip("0")
    if len(whole) > form.digits or len(fraction) > form.places:
        whole, fraction = "#" * form.digits, "#" * form.places
    negative = number < 0
    text = "<" if form.behind == "PR" and negative else ""
    text = _signed(text, form.before, negative=negative) + "$" * form.dollar
    text = _grouped(text, whole.rjust(form.digits), form)
    if form.point:
        text = (text[:-1] + "0" if text.endswith(" ") else text) + "." + fraction.ljust(form.places, "0")
    if form.behind == "PR":
        text = _without_point(text)
        text = _before_spaces(text, ">") if negative else text + "  "
    else:
        text = _signed(text, form.behind, negative=negative)
    text = _without_point(text)
    return "0" if text in ("", "+", "-") else text


def _grouped(text: str, whole: str, form: NumberFormat) -> str:
    """With the digits in front of the point, which are spaces or zeros where the number has none."""
    at = 0
    for number, (count, exact) in enumerate(form.groups):
        if number:
            text = text + "," if text[-1:].isdecimal() else _space(text)
        for digit in whole[at : at + count]:
            text = text + digit if digit != " " else text + "0" if exact else _space(text)
        at += count
    return text


def _signed(text: str, sign: str, *, negative: bool) -> str:
    if sign == "S":
        return _before_spaces(_without_point(text), "-" if negative else "+")
    if sign == "MI":
        return _before_spaces(_without_point(text), "-") if negative else text + " "
    return text


def _before_spaces(text: str, sign: str) -> str:
    """With a sign at the end, but in front of the spaces there."""
    kept = text.rstrip(" ")
    return kept + sign + text[len(kept) :]


def _space(text: str) -> str:
    """With a space at the end, but in front of the signs there."""
    kept = text.rstrip("+-<")
    return f"{kept} {text[len(kept) :]}"


def _without_point(text: str) -> str:
    """With a space for a point that no digit follows."""
    at = text.find(".")
    return text if at < 0 or text[at + 1 : at + 2] not in ("", " ") else f"{text[:at]} {text[at + 1 :]}"


FUNCTIONS: dict[str, Builder] = {"to_number": to_number, "try_to_number": to_number, "to_char": to_char}
