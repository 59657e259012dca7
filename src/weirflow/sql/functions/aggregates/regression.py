"""Regressions that are other aggregates of the pairs without a NULL, as Spark itself writes them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from weirflow.sql.expr import Literal
from weirflow.sql.functions.conditionals import case
from weirflow.sql.functions.operators import OPERATORS

if TYPE_CHECKING:
    from weirflow.sql.expr import Expr
    from weirflow.sql.functions.rules import Arguments

_Meaning = Callable[["Arguments"], tuple[str, "Arguments"]]


def in_other_words(function: str, arguments: Arguments) -> tuple[str, Arguments]:
    """The aggregate that a regression is of, and its arguments; any other aggregate is itself.

    >>> from weirflow.sql.expr import Column
    >>> from weirflow.sql.types import DOUBLE
    >>> in_other_words("regr_count", (Column(0, "y", DOUBLE), Column(1, "x", DOUBLE)))[0]
    'count'
    """
    meaning = _MEANINGS.get(function)
    return (function, arguments) if meaning is None else meaning(arguments)


def _of(function: str, place: int) -> _Meaning:
    """An aggregate of the values at a place of the pairs."""

    def meaning(arguments: Arguments) -> tuple[str, Arguments]:
        left, right = (OPERATORS["is_not_null"]((one,), None) for one in arguments)
        value = arguments[place]
        nothing: Expr = Literal(None, value.type)
        return function, (case(((OPERATORS["and"]((left, right), None), value),), nothing, None),)

    return meaning


_MEANINGS: dict[str, _Meaning] = {
    "regr_count": lambda arguments: ("count", arguments),
    "regr_avgx": _of("avg", 1),
    "regr_avgy": _of("avg", 0),
    "regr_sxx": _of("squared_deviations", 1),
    "regr_syy": _of("squared_deviations", 0),
}
VALUE_DISTINCT = frozenset({"regr_avgx", "regr_avgy", "regr_sxx", "regr_syy"})
"""Those whose DISTINCT is of values, not of pairs."""
