"""Which names a query can see, and what they stand for."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from weirflow.errors import AmbiguousColumn, ColumnNotFound, SqlPosition, did_you_mean
from weirflow.sql.expr import Column, Expr, OuterColumn
from weirflow.sql.functions.collections import struct_field
from weirflow.sql.traverse import rewrite, shift

if TYPE_CHECKING:
    from weirflow.sql.plan import Field, Plan


@dataclass(frozen=True)
class Name:
    """One name in scope: an expression over the columns of the FROM clause's plan."""

    name: str
    expr: Expr
    relation: str | None = None
    in_star: bool = True
    """Whether ``*`` lists it."""
    bare: bool = True
    """Whether it is found without its relation."""


@dataclass(frozen=True)
class Scope:
    """The names of one query, and those of the queries around it."""

    names: tuple[Name, ...] = ()
    around: Scope | None = None
    fold: Callable[[str], str] = str.casefold
    """What is equal for names that are the same."""

    def find(self, path: tuple[str, ...], position: SqlPosition | None = None) -> Expr | None:
        """What ``path`` (relation, column, struct fields...) stands for here or further out; None if nothing."""
        scope: Scope | None = self
        depth = 0
        while scope is not None:
            found = scope.find_here(path, position)
            if found is not None:
                return _seen_from(found, depth)
            scope, depth = scope.around, depth + 1
        return None

    def find_here(self, path: tuple[str, ...], position: SqlPosition | None = None) -> Expr | None:
        """As ``find``, in this query only; ``AmbiguousColumn`` when several names fit."""
        fold = self.fold
        folded = tuple(fold(part) for part in path)
        if len(path) > 1:
            qualified = [
                name
                for name in self.names
                if name.relation is not None and (fold(name.relation), fold(name.name)) == folded[:2]
            ]
            if qualified:
                return self._fields_of(_only(qualified, ".".join(path[:2]), position), path[2:], position)
        bare = [name for name in self.names if name.bare and fold(name.name) == folded[0]]
        if not bare:
            return None
        return self._fields_of(_only(bare, path[0], position), path[1:], position)

    def _fields_of(self, expr: Expr, path: tuple[str, ...], position: SqlPosition | None) -> Expr:
        for part in path:
            expr = struct_field(expr, part, position, self.fold)
        return expr

    def star(self, relation: str | None = None) -> tuple[Name, ...] | None:
        """What ``*`` or ``relation.*`` lists, first what ``*`` does not; None if there is no such relation."""
        if relation is None:
            return tuple(name for name in self.names if name.in_star)
        folded = self.fold(relation)
        of_relation = [name for name in self.names if name.relation and self.fold(name.relation) == folded]
        return tuple(sorted(of_relation, key=lambda name: name.in_star)) or None

    def not_found(
        self, path: tuple[str, ...], position: SqlPosition | None, extra: Iterable[str] = ()
    ) -> ColumnNotFound:
        """The error for a path that stands for nothing, with the nearest names."""
        near = [name.name for name in self.names] + list(extra)
        near += [f"{name.relation}.{name.name}" for name in self.names if name.relation]
        text = ".".join(path)
        listed = ", ".join(dict.fromkeys(name.name for name in self.names if name.in_star))
        hint = did_you_mean(text, near) or (f"in scope are {listed}" if listed else "no columns are in scope here")
        return ColumnNotFound(f"No column {text!r} is in scope.", hint=hint, position=position)


@dataclass(frozen=True)
class FromItem:
    """A plan and the names by which its columns are seen."""

    plan: Plan
    scope: Scope


def scope_of(
    fields: tuple[Field, ...], relation: str | None, around: Scope | None, fold: Callable[[str], str]
) -> Scope:
    """The scope of a relation's own columns."""
    names = (Name(field.name, Column(index, field.name, field.type), relation) for index, field in enumerate(fields))
    return Scope(tuple(names), around, fold)


def beside(left: Scope, right: Scope, width: int) -> Scope:
    """The scope of a join: the right side's columns come ``width`` places later."""
    moved = tuple(replace(name, expr=shift(name.expr, width)) for name in right.names)
    return replace(left, names=left.names + moved)


def _only(found: list[Name], text: str, position: SqlPosition | None) -> Expr:
    if len({name.expr for name in found}) == 1:
        return found[0].expr
    options = ", ".join(f"{name.relation}.{name.name}" if name.relation else name.name for name in found)
    raise AmbiguousColumn(
        f"{text!r} could be any of {len(found)} columns.", hint=f"say which: {options}", position=position
    )


def _seen_from(expr: Expr, depth: int) -> Expr:
    if depth == 0:
        return expr
    return rewrite(
        expr, lambda part: OuterColumn(part.index, part.name, part.type, depth) if isinstance(part, Column) else None
    )
