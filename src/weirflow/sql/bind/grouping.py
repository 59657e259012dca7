"""GROUP BY: expressions, ordinals, aliases, ALL, and grouping sets of every spelling."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations, product
from math import prod
from typing import TYPE_CHECKING

import pyarrow as pa
from sqlglot import exp

from weirflow.errors import SqlPosition, SqlSyntaxError, SqlTypeError
from weirflow.sql.bind.expressions.placeholders import PlaceholderKind, has_placeholder
from weirflow.sql.bind.ordinal import ordinal
from weirflow.sql.bind.same_value import canonical
from weirflow.sql.bind.star import is_all
from weirflow.sql.expr import Call, Expr
from weirflow.sql.limits import check_grouping_sets

if TYPE_CHECKING:
    from weirflow.sql.bind.expressions.binder import ExpressionBinder
    from weirflow.sql.plan import Field

Sets = list[tuple[Expr, ...]]
_SPECIAL = (exp.Rollup, exp.Cube, exp.GroupingSets)
_SUFFIXES = ("rollup", "cube", "grouping_sets")


@dataclass(frozen=True)
class Grouping:
    """The keys of a GROUP BY and, when it has several, its grouping sets as indexes into them."""

    keys: tuple[Expr, ...] = ()
    sets: tuple[tuple[int, ...], ...] | None = None
    is_grouped: bool = False
    """Whether there is a GROUP BY at all."""

    @cached_property
    def _places(self) -> dict[Expr, int]:
        return {canonical(key): place for place, key in reversed(list(enumerate(self.keys)))}

    def place(self, expr: Expr) -> int | None:
        """Which key ``expr`` is, if it is one to Spark; of equal ones the first."""
        if not isinstance(expr, Call):
            return self._places.get(expr)
        return self._places.get(canonical(expr)) if self._has_calls else None

    @cached_property
    def _has_calls(self) -> bool:
        return any(isinstance(key, Call) for key in self.keys)


def bind_group(binder: ExpressionBinder, group: exp.Group | None, fields: list[Field], items: list[Expr]) -> Grouping:
    """The grouping of a query whose SELECT list is bound already, for its ordinals and aliases."""
    if group is None:
        return Grouping()
    keyed = _KeyBinder(binder, fields, items)
    if is_all(group.expressions) and not keyed.sees("all"):
        assert binder.placeholders is not None, "GROUP BY is bound behind a SELECT list"
        plain = dict.fromkeys(item for item in items if not binder.placeholders.has_aggregate(item))
        return Grouping(tuple(keyed.checked(one, binder.position(group)) for one in plain), None, is_grouped=True)
    factors = [_sets(keyed, node) for node in group.expressions]
    suffix = next((node for part in _SUFFIXES for node in group.args.get(part) or ()), None)
    listed = [factor[0] for factor in factors]
    if suffix is not None:
        if any(isinstance(node, _SPECIAL) for node in (*group.expressions, *suffix.expressions)):
            raise SqlSyntaxError(
                "What follows the keys of GROUP BY applies to all of them, so they must be plain.",
                position=binder.position(group),
            )
        factors = [_suffixed(keyed, suffix, listed)]
    check_grouping_sets(prod(len(factor) for factor in factors))
    every = [key for one in listed for key in one] if suffix is not None else []
    keys = _distinct([*every, *(key for factor in factors for one in factor for key in one)])
    if suffix is None and not any(isinstance(node, _SPECIAL) for node in group.expressions):
        return Grouping(keys, None, is_grouped=True)
    grouping = Grouping(keys)
    combined = ({grouping.place(key) for part in choice for key in part} for choice in product(*factors))
    sets = tuple(tuple(sorted(place for place in one if place is not None)) for one in combined)
    return Grouping(keys, sets, is_grouped=True)


def _distinct(keys: list[Expr]) -> tuple[Expr, ...]:
    """The keys without those that are the same to Spark as one before them."""
    first: dict[Expr, Expr] = {}
    for key in keys:
        first.setdefault(canonical(key), key)
    return tuple(first.values())


def _suffixed(keyed: _KeyBinder, suffix: exp.Expr, listed: list[tuple[Expr, ...]]) -> Sets:
    """``GROUP BY a, b`` followed by WITH ROLLUP, WITH CUBE or GROUPING SETS (...)."""
    if isinstance(suffix, exp.Rollup):
        return _rollup(listed)
    return _cube(listed) if isinstance(suffix, exp.Cube) else _sets(keyed, suffix)


@dataclass(frozen=True)
class _KeyBinder:
    binder: ExpressionBinder
    fields: list[Field]
    items: list[Expr]

    def key(self, node: exp.Expr) -> Expr:
        position = self.binder.position(node)
        place = ordinal(node)
        if place is not None:
            if not 1 <= place <= len(self.items):
                raise SqlTypeError(f"GROUP BY {place}: there are {len(self.items)} output columns.", position=position)
            return self.checked(self.items[place - 1], position)
        return self.checked(self._seeing.bind(node), position)

    def sees(self, name: str) -> bool:
        return self._seeing.sees(name)

    @property
    def _seeing(self) -> ExpressionBinder:
        scope = self.binder.scope
        return replace(self.binder, lookups=(scope.find_here, self._alias, scope.find))

    def _alias(self, path: tuple[str, ...], _: SqlPosition | None) -> Expr | None:
        if len(path) > 1:
            return None
        found = [
            item
            for field, item in zip(self.fields, self.items, strict=True)
            if self.binder.scope.fold(field.name) == self.binder.scope.fold(path[0])
        ]
        return found[0] if found else None

    def checked(self, key: Expr, position: SqlPosition | None) -> Expr:
        if has_placeholder(key, PlaceholderKind.AGGREGATE) or has_placeholder(key, PlaceholderKind.WINDOW):
            raise SqlTypeError("GROUP BY cannot use aggregates or window functions.", position=position)
        if pa.types.is_map(key.type):
            raise SqlTypeError("Maps cannot be grouped.", position=position)
        return key


def _sets(keyed: _KeyBinder, node: exp.Expr) -> Sets:
    """The grouping sets one item of a GROUP BY stands for; a plain key is one set of itself."""
    if isinstance(node, exp.Rollup):
        return _rollup([_group(keyed, part) for part in node.expressions])
    if isinstance(node, exp.Cube):
        return _cube([_group(keyed, part) for part in node.expressions])
    if isinstance(node, exp.GroupingSets):
        return [
            one
            for part in node.expressions
            for one in (_sets(keyed, part) if isinstance(part, _SPECIAL) else [_group(keyed, part)])
        ]
    if isinstance(node, exp.Tuple) and not node.expressions:
        raise SqlSyntaxError("GROUP BY () has no key.", position=keyed.binder.position(node))
    return [(keyed.key(node),)]


def _group(keyed: _KeyBinder, node: exp.Expr) -> tuple[Expr, ...]:
    """``(a, b)``, ``(a)``, ``()`` or ``a``."""
    if isinstance(node, exp.Tuple):
        return tuple(keyed.key(part) for part in node.expressions)
    return (keyed.key(node.unnest()),)


def _rollup(groups: list[tuple[Expr, ...]]) -> Sets:
    return [tuple(key for group in groups[:size] for key in group) for size in range(len(groups), -1, -1)]


def _cube(groups: list[tuple[Expr, ...]]) -> Sets:
    check_grouping_sets(2 ** len(groups))
    return [
        tuple(key for group in chosen for key in group)
        for size in range(len(groups), -1, -1)
        for chosen in combinations(groups, size)
    ]
