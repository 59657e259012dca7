"""The refusal of aggregates whose result Spark leaves open: it depends on the order in which it reads the rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from weirflow.errors import NotIncremental, Reason

if TYPE_CHECKING:
    from weirflow.errors import SqlPosition

_ONE_OF_ALL = (
    "gives the value of whichever row Spark reads {}",
    "use max(x), or max_by(x, y) for the x of the largest y",
)
_WHY = {
    "mode": (
        "gives any of the values that are there equally often",
        "mode(x, true) gives the smallest of them, mode() WITHIN GROUP (ORDER BY x DESC) the largest",
    ),
    "listagg": ("lists rows in any order", "say which with WITHIN GROUP (ORDER BY ...)"),
    **{name: (_ONE_OF_ALL[0].format(when), _ONE_OF_ALL[1]) for name, when in (("first", "first"), ("last", "last"))},
    "any_value": (_ONE_OF_ALL[0].format("first"), _ONE_OF_ALL[1]),
}


def undetermined(function: str, position: SqlPosition | None) -> NotIncremental:
    """The refusal, with what to write instead."""
    why, hint = _WHY[function]
    return NotIncremental(
        f"{function}() {why}, so equal rows can give another result.",
        reason=Reason.EXPRESSION_NOT_DETERMINISTIC,
        hint=hint,
        position=position,
    )
