"""What every part of the binder shares: the text, the catalogue, the settings, the CTEs in reach."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from weirflow.sql.limits import check_node
from weirflow.sql.zoned import tzinfo_of

if TYPE_CHECKING:
    from datetime import tzinfo

    from sqlglot import exp

    from weirflow.errors import SqlPosition
    from weirflow.sql.bind.scope import Scope
    from weirflow.sql.plan import Field, Plan
    from weirflow.sql.settings import SqlSettings
    from weirflow.sql.syntax.positions import TextPositions

Catalog = Mapping[str, "tuple[Field, ...]"]
"""The columns of each source and view by name."""


@dataclass(frozen=True)
class BindContext:
    """One query's surroundings; CTEs are added on the way down."""

    positions: TextPositions
    catalog: Catalog
    settings: SqlSettings
    bind_query: Callable[[exp.Expr, BindContext, Scope | None], Plan]
    """Binds a query inside this one; given here so that no module needs the one above it."""
    ctes: Mapping[str, Plan] = field(default_factory=dict)
    _ordered: dict[int, Plan] = field(default_factory=dict)
    """The plans of queries whose rows come in an order, by identity; a plan does not say so, for a view has none."""

    def remember_order(self, plan: Plan) -> None:
        """Keep in mind that the rows of a query come in an order."""
        self._ordered[id(plan)] = plan

    def is_ordered(self, plan: Plan) -> bool:
        """Whether its rows come in an order, which a LIMIT above would go by."""
        return id(plan) in self._ordered

    @property
    def fold(self) -> Callable[[str], str]:
        """What is equal for names that are the same."""
        return str if self.settings.case_sensitive else str.casefold

    @property
    def zone(self) -> tzinfo:
        """The clocks by which times in the text are read."""
        return tzinfo_of(self.settings.time_zone)

    def position(self, node: exp.Expr | None) -> SqlPosition | None:
        """Where ``node`` is in the text."""
        return self.positions.of(node)

    def with_cte(self, name: str, plan: Plan) -> BindContext:
        """This context with one more CTE in reach; ``SqlTooComplex`` if it has grown too large to be used."""
        check_node(plan)
        return replace(self, ctes={**self.ctes, self.fold(name): plan})

    def table(self, name: str) -> tuple[str, tuple[Field, ...]] | None:
        """The catalogue's own spelling and columns of a source or view, or None."""
        if name in self.catalog:
            return name, self.catalog[name]
        wanted = self.fold(name)
        return next(((known, self.catalog[known]) for known in self.catalog if self.fold(known) == wanted), None)
