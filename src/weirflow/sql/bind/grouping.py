"""GROUP BY: expressions, ordinals, aliases, ALL, and grouping sets of every spelling."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations, product
from math import prod
from typing import TYPE_CHECKING

import pyarrow as pa
from sqlglot import exp

from weirflow.errors import SqlPosition, SqlTypeError
from weirflow.sql.bind.expressions.placeholders import PlaceholderKind, has_placeholder
from weirflow.sql.expr import Expr
from weirflow.sql.limits import check_grouping_sets

if TYPE_CHECKING:
    from weirflow.sql.bind.expressions.binder import ExpressionBinder
    from weirflow.sql.plan import Field

Sets = list[tuple[Expr, ...]]


@dataclass(frozen=True)
class Grouping:
    """The keys of a GROUP BY and, when it has several, its grouping sets as indexes into them."""

    keys: tuple[Expr, ...] = ()
    sets: tuple[tuple[int, ...], ...] | None = None
    is_grouped: bool = False
    """Whether there is a GROUP BY at all."""

    @cached_property
    def places(self) -> dict[Expr, int]:
        """Where each key is; of equal ones the first."""
        return {key: place for place, key in reversed(list(enumerate(self.keys)))}


def bind_group(binder: ExpressionBinder, group: exp.Group | None, fields: list[Field], items: list[Expr]) -> Grouping:
    """The grouping of a query whose SELECT list is bound already, for its ordinals and aliases."""
    if group is None:
        return Grouping()
    if group.args.get("all"):
        keys = tuple(dict.fromkeys(item for item in items if not has_placeholder(item, PlaceholderKind.AGGREGATE)))
        return Grouping(keys, None, is_grouped=True)
    keyed = _KeyBinder(binder, fields, items)
    factors = [_sets(keyed, node) for node in group.expressions]
    for part in ("rollup", "cube", "grouping_sets"):
        for node in group.args.get(part) or ():
            if node.expressions:
                factors.append(_sets(keyed, node))
            else:  # GROUP BY a, b WITH ROLLUP applies to all keys before it
                listed = [single[0][0] for single in factors]
                factors = [
                    _rollup([(key,) for key in listed]) if part == "rollup" else _cube([(key,) for key in listed])
                ]
    check_grouping_sets(prod(len(factor) for factor in factors))
    combined = [tuple(dict.fromkeys(key for part in choice for key in part)) for choice in product(*factors)]
    keys = tuple(dict.fromkeys(key for factor in factors for one in factor for key in one))
    if all(len(factor) == 1 for factor in factors) and not _has_sets(group):
        return Grouping(keys, None, is_grouped=True)
    place = {key: at for at, key in enumerate(keys)}
    sets = tuple(tuple(sorted(place[key] for key in one)) for one in combined)
    return Grouping(keys, sets, is_grouped=True)


@dataclass(frozen=True)
class _KeyBinder:
    binder: ExpressionBinder
    fields: list[Field]
    items: list[Expr]

    def key(self, node: exp.Expr) -> Expr:
        position = self.binder.position(node)
        if isinstance(node, exp.Literal) and not node.is_string and node.name.isdigit():
            place = int(node.name)
            if not 1 <= place <= len(self.items):
                raise SqlTypeError(f"GROUP BY {place}: there are {len(self.items)} output columns.", position=position)
            return self._checked(self.items[place - 1], position)
        scope = self.binder.scope
        lookups = (scope.find_here, self._alias, scope.find)
        return self._checked(replace(self.binder, lookups=lookups).bind(node), position)

    def _alias(self, path: tuple[str, ...], _: SqlPosition | None) -> Expr | None:
        if len(path) > 1:
            return None
        found = [
            item
            for field, item in zip(self.fields, self.items, strict=True)
            if field.name.casefold() == path[0].casefold()
        ]
        return found[0] if found else None

    def _checked(self, key: Expr, position: SqlPosition | None) -> Expr:
        if has_placeholder(key, PlaceholderKind.AGGREGATE) or has_placeholder(key, PlaceholderKind.WINDOW):
            raise SqlTypeError("GROUP BY cannot use aggregates or window functions.", position=position)
        if pa.types.is_map(key.type):
            raise SqlTypeError("Maps cannot be grouped.", position=position)
        return key


def _has_sets(group: exp.Group) -> bool:
    special = (exp.Rollup, exp.Cube, exp.GroupingSets)
    return any(group.args.get(part) for part in ("rollup", "cube", "grouping_sets")) or any(
        isinstance(node, special) for node in group.expressions
    )


def _sets(keyed: _KeyBinder, node: exp.Expr) -> Sets:
    """The grouping sets one item of a GROUP BY stands for; a plain key is one set of itself."""
    if isinstance(node, exp.Rollup):
        return _rollup([_group(keyed, part) for part in node.expressions])
    if isinstance(node, exp.Cube):
        return _cube([_group(keyed, part) for part in node.expressions])
    if isinstance(node, exp.GroupingSets):
        nested = (exp.Rollup, exp.Cube, exp.GroupingSets)
        return [
            one
            for part in node.expressions
            for one in (_sets(keyed, part) if isinstance(part, nested) else [_group(keyed, part)])
        ]
    if isinstance(node, exp.Tuple):
        return [_group(keyed, node)]
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
