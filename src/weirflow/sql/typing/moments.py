"""Constant texts that are cast to dates and times: some words stand for moments, which Spark reads when it plans."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime
from typing import TYPE_CHECKING

from weirflow.errors import NotIncremental, Reason
from weirflow.sql.expr import Call, Expr, Literal
from weirflow.sql.types import DATE, STRING, TIMESTAMP, TIMESTAMP_NTZ

if TYPE_CHECKING:
    import pyarrow as pa

    from weirflow.errors import SqlPosition

_EPOCH = {
    DATE: date(1970, 1, 1),
    TIMESTAMP: datetime(1970, 1, 1, tzinfo=UTC),
    TIMESTAMP_NTZ: datetime(1970, 1, 1),  # noqa: DTZ001 - the type without a zone
}
_WORD = re.compile(r"([A-Za-z]+)[ \t]*(.*)", re.DOTALL)
_FLEETING = frozenset({"now", "today", "tomorrow", "yesterday"})
_CLOCK = re.compile(r"T?\d{1,2}:")
_REGION = re.compile(r"\d\s*(?!(?:Z|UTC|GMT|UT)(?:[+-][\d:]+)?$)[A-Za-z][A-Za-z0-9~/._+-]+$")


def moment(text: Expr, kind: pa.DataType, position: SqlPosition | None = None) -> Literal | None:
    """The moment that a constant text is for Spark when it plans a cast to a date or time; None: the cast decides.

    Raises:
        NotIncremental: it stands for another moment tomorrow, or casts read it in another way than Spark.

    >>> moment(Literal(" Epoch ", STRING), DATE).value
    datetime.date(1970, 1, 1)
    """
    if text.type != STRING or kind not in _EPOCH or not _is_constant(text):
        return None
    if not isinstance(text, Literal):
        raise _refused("A text that is put together of constants", Reason.FUNCTION_NOT_PROVEN, position)
    if text.value is None:
        return None
    trimmed: str = text.value.strip()
    found = _WORD.fullmatch(trimmed)
    word, rest = (found[1].casefold(), found[2]) if found else ("", "")
    if word == "epoch" and not rest:
        return Literal(_EPOCH[kind], kind)
    if word in _FLEETING or (kind != DATE and _CLOCK.match(trimmed)):
        raise NotIncremental(
            f"{text.value!r} stands for another moment tomorrow, so a view cannot be kept equal to it.",
            reason=Reason.EXPRESSION_NOT_DETERMINISTIC,
            hint="write the date or timestamp itself",
            position=position,
        )
    if word == "epoch" or (kind != DATE and _REGION.search(trimmed)):
        raise _refused(f"The time zone of {text.value!r}", Reason.FUNCTION_NOT_PROVEN, position)
    return None


def _is_constant(expr: Expr) -> bool:
    return isinstance(expr, Literal) or (isinstance(expr, Call) and all(map(_is_constant, expr.arguments)))


def _refused(what: str, reason: Reason, position: SqlPosition | None) -> NotIncremental:
    return NotIncremental(
        f"{what} is not read as a date or time here.",
        reason=reason,
        hint="write the date or timestamp itself, with an offset such as +02:00",
        position=position,
    )
