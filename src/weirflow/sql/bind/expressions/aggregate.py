"""Binding of aggregates: arguments, FILTER, DISTINCT, WITHIN GROUP and IGNORE NULLS, with all sugar gone."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from functools import reduce
from typing import TYPE_CHECKING, NamedTuple

from sqlglot import exp

from weirflow.errors import NotIncremental, Reason, SqlPosition, SqlTypeError
from weirflow.sql.expr import AggregateCall, Call, Expr, Literal, SortKey
from weirflow.sql.functions.aggregates.regression import VALUE_DISTINCT, in_other_words
from weirflow.sql.functions.aggregates.signatures import has_mode
from weirflow.sql.functions.aggregates.sketches import USUAL_ERROR, distinct_estimate, is_count_min
from weirflow.sql.functions.aggregates.undetermined import undetermined
from weirflow.sql.functions.lookup import aggregate
from weirflow.sql.functions.operators import OPERATORS
from weirflow.sql.types import BIGINT, BOOLEAN, DOUBLE, INT, NULL, is_integral, type_name

if TYPE_CHECKING:
    from weirflow.sql.bind.expressions.binder import ExpressionBinder
    from weirflow.sql.bind.expressions.call import WrappedCall
    from weirflow.sql.functions.rules import Arguments

    Keys = tuple[SortKey, ...]
_FIRSTS = frozenset({"first", "last", "any_value"})
_ONE, _TRUE, _FALSE = Literal(1, INT), Literal(value=True, type=BOOLEAN), Literal(value=False, type=BOOLEAN)
_MOST_OF_PERCENTILE = 3
_NEVER_DISTINCT = frozenset({"mode", "percentile_cont", "percentile_disc"})


def is_aggregate(name: str) -> bool:
    """Whether a user calls an aggregate by this name."""
    return aggregate(name) is not None or name in _SPELLED or name == "count_if"


def bind_aggregate(binder: ExpressionBinder, wrapped: WrappedCall) -> AggregateCall:
    """An aggregate over a group."""
    return aggregate_call(binder.without_placeholders("an aggregate's argument or FILTER"), wrapped)


def aggregate_call(inside: ExpressionBinder, wrapped: WrappedCall, *, ordered: bool = False) -> AggregateCall:
    """An aggregate whose parts ``inside`` binds; ``ordered`` if its rows come in an order by themselves."""
    name, position = wrapped.name, inside.position(wrapped.call)
    condition = None if wrapped.condition is None else _truth(inside.bind(wrapped.condition), position)
    trees = wrapped.arguments
    if name == "count" and not wrapped.is_distinct and counts_every_row(trees):
        return AggregateCall("count", (), BIGINT, filter=condition, position=position)
    arguments = tuple(inside.bind(tree) for tree in trees)
    if name == "count" and not arguments:
        raise SqlTypeError("count() takes at least one argument.", hint="count(*) counts rows", position=position)
    if name == "count_if":
        return _count_if(wrapped, arguments, condition, position)
    keys = tuple(inside.sort_key(tree) for tree in wrapped.within)
    if keys and name not in _SPELLED:
        raise SqlTypeError(f"{name}() has no WITHIN GROUP.", position=position)
    if wrapped.is_distinct and name in _NEVER_DISTINCT:
        raise SqlTypeError(f"{name}() does not take DISTINCT.", position=position)
    spelled = _SPELLED.get(name, _as_it_is)(name, arguments, keys, position)
    function = aggregate(spelled.function)
    assert function is not None, "the caller found it"
    arguments, ignores_nulls = spelled.arguments, wrapped.ignore_nulls
    if function.name in _FIRSTS and len(arguments) == 2:  # noqa: PLR2004 - value, ignoreNulls
        flag = arguments[1]
        ignores_nulls = ignores_nulls or (isinstance(flag, Literal) and flag.value is True)
        arguments = arguments[:1]
    typed, kind = function.bind(arguments, position)
    if function.name == "listagg":
        _check_list(typed, keys, position, distinct=wrapped.is_distinct, ordered=ordered)
    if wrapped.is_distinct and function.name in VALUE_DISTINCT:
        raise _unproven(f"{name}(DISTINCT ...)", position)
    present = OPERATORS["is_not_null"](typed[:1], position) if ignores_nulls else None
    condition = _all(condition, spelled.condition, present)
    meant, typed = in_other_words(function.name, typed)
    return AggregateCall(meant, typed, kind, wrapped.is_distinct, condition, spelled.order, position)


def _count_if(
    wrapped: WrappedCall, arguments: Arguments, condition: Expr | None, position: SqlPosition | None
) -> AggregateCall:
    if wrapped.is_distinct or len(arguments) != 1:
        raise SqlTypeError("count_if() takes one condition.", position=position)
    met = _all(condition, _truth(arguments[0], position))
    return AggregateCall("count", (), BIGINT, filter=met, position=position)


def counts_every_row(arguments: list[exp.Expr]) -> bool:
    """Whether ``count(arguments)`` is ``count(*)`` or ``count(1)``: every row counts, whatever is in it."""
    if len(arguments) != 1:
        return False
    star = isinstance(arguments[0], exp.Star) and not any(arguments[0].args.values())
    return star or isinstance(arguments[0], exp.Literal | exp.Boolean)


class _Spelled(NamedTuple):
    """The function that a call means, by its canonical name, and what it is called with."""

    function: str
    arguments: Arguments
    order: tuple[SortKey, ...] = ()
    condition: Expr | None = None
    """Which rows count."""


def _as_it_is(name: str, arguments: Arguments, keys: Keys, position: SqlPosition | None) -> _Spelled:
    del keys
    if name == "percentile" and len(arguments) > _MOST_OF_PERCENTILE:
        raise SqlTypeError("percentile() takes a value, a share and a frequency.", position=position)
    return _Spelled(name, arguments)


def _median(name: str, arguments: Arguments, keys: Keys, position: SqlPosition | None) -> _Spelled:
    if keys or len(arguments) != 1:
        raise SqlTypeError(f"{name}() takes one argument.", position=position)
    return _Spelled("percentile", (*arguments, Literal(0.5, DOUBLE)))


def _percentile(name: str, arguments: Arguments, keys: Keys, position: SqlPosition | None) -> _Spelled:
    """``percentile_cont`` and ``percentile_disc``: the share is given, the values are what is ordered by."""
    if len(keys) != 1 or len(arguments) != 1:
        raise SqlTypeError(f"{name}() takes a fraction and WITHIN GROUP (ORDER BY one column).", position=position)
    (share,), (key,) = arguments, keys
    if isinstance(share, Literal) and isinstance(share.value, int | float | Decimal):
        share = Literal(float(share.value), DOUBLE)
    backwards = (_ONE, _TRUE) if key.descending else ()
    return _Spelled("percentile" if name == "percentile_cont" else name, (key.expr, share, *backwards))


def _mode(name: str, arguments: Arguments, keys: Keys, position: SqlPosition | None) -> _Spelled:
    """The value, and whether of those that are there equally often the largest is meant."""
    if len(keys) == 1 and not arguments:
        value, largest = keys[0].expr, keys[0].descending
    elif keys or not 1 <= len(arguments) <= 2:  # noqa: PLR2004 - value, deterministic
        raise SqlTypeError("mode() takes a value and a flag, or WITHIN GROUP (ORDER BY one column).", position=position)
    else:
        flag = arguments[1] if len(arguments) > 1 else _FALSE
        if not (isinstance(flag, Literal) and isinstance(flag.value, bool)):
            raise _unproven("mode() with a flag that is no literal", position)
        if not flag.value:
            raise undetermined(name, position)
        value, largest = arguments[0], False
    if not has_mode(value.type):
        raise _unproven(f"mode() of {type_name(value.type)}", position)
    return _Spelled(name, (value, Literal(largest, BOOLEAN)))


def _listed(name: str, arguments: Arguments, keys: Keys, position: SqlPosition | None) -> _Spelled:
    """The text and its delimiter, NULL if none is given."""
    delimiter: Expr = arguments[1] if len(arguments) > 1 else Literal(None, NULL)
    if not isinstance(delimiter, Literal):
        raise _unproven(f"{name}() with a delimiter that is no literal", position)
    return _Spelled("listagg", (*arguments[:1], delimiter, *arguments[2:]), keys)


def _estimate(name: str, arguments: Arguments, keys: Keys, position: SqlPosition | None) -> _Spelled:
    """``approx_count_distinct``, from the hashes of values."""
    if keys or not 1 <= len(arguments) <= 2:  # noqa: PLR2004 - value, relative error
        raise SqlTypeError(f"{name}() takes a value and an error.", position=position)
    found = distinct_estimate(arguments[0], arguments[1] if len(arguments) > 1 else USUAL_ERROR)
    if found is None:
        raise _unproven(f"{name}() with this error", position)
    return _Spelled(name, found[0], condition=found[1])


def _sketch(name: str, arguments: Arguments, keys: Keys, position: SqlPosition | None) -> _Spelled:
    """``count_min_sketch``, whose size and seed are constants."""
    if keys or len(arguments) != 4:  # noqa: PLR2004 - value, relative error, confidence, seed
        raise SqlTypeError(f"{name}() takes a value, an error, a confidence and a seed.", position=position)
    if [one.type for one in arguments[1:]] != [DOUBLE, DOUBLE, INT]:
        raise SqlTypeError(f"{name}() takes a double, a double and an int after the value.", position=position)
    if not is_integral(arguments[0].type) or not is_count_min(*arguments[1:]):
        raise _unproven(f"{name}() of anything but integers, with constants", position)
    return _Spelled(name, arguments)


_SPELLED: dict[str, Callable[[str, Arguments, Keys, SqlPosition | None], _Spelled]] = {
    "median": _median,
    "percentile_cont": _percentile,
    "percentile_disc": _percentile,
    "mode": _mode,
    "approx_count_distinct": _estimate,
    "count_min_sketch": _sketch,
    "listagg": _listed,
    "string_agg": _listed,
}
"""Aggregates that are called otherwise than the function they are."""


def _check_list(
    typed: Arguments, order: tuple[SortKey, ...], position: SqlPosition | None, *, distinct: bool, ordered: bool
) -> None:
    value, delimiter = typed
    if not order and not ordered:
        raise undetermined("listagg", position)
    if not isinstance(delimiter, Literal) or (delimiter.value is not None and delimiter.type != value.type):
        raise _unproven(f"listagg() with a delimiter that is no {type_name(value.type)}", position)
    if distinct and [key.expr for key in order] != [value]:
        raise SqlTypeError("listagg(DISTINCT ...) is ordered by what it lists.", position=position)


def _unproven(what: str, position: SqlPosition | None) -> NotIncremental:
    return NotIncremental(
        f"{what} is not proven equal to Spark's.", reason=Reason.FUNCTION_NOT_PROVEN, position=position
    )


def _truth(expr: Expr, position: SqlPosition | None) -> Expr:
    checked = OPERATORS["not"]((expr,), position)
    assert isinstance(checked, Call)
    return checked.arguments[0]


def _all(*conditions: Expr | None) -> Expr | None:
    given = [one for one in conditions if one is not None]
    return reduce(lambda first, second: OPERATORS["and"]((first, second), None), given) if given else None
