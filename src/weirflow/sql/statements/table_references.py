"""The tables that a statement names, and where."""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp

from weirflow.sql.statements.relation_name import RelationName
from weirflow.sql.syntax.parse import parse_any


@dataclass(frozen=True)
class TableReference:
    """A table in a statement.

    Attributes:
        parts: its name, from the catalog on.
        start: the offset where the name begins.
        end: the offset behind it.
        aliased: whether the statement gives it another name.
    """

    parts: tuple[str, ...]
    start: int
    end: int
    aliased: bool

    @property
    def relation(self) -> RelationName | None:
        """The source or view that it may be; None if its name has too many parts."""
        return RelationName.of(*self.parts)


def table_references(sql: str) -> list[TableReference]:
    """The tables that are named in ``sql``, without CTEs of its own; none if it cannot be read as SQL.

    >>> [reference.parts for reference in table_references("WITH a AS (SELECT 1) SELECT * FROM a, shop.orders o")]
    [('shop', 'orders')]
    """
    found = []
    for tree in parse_any(sql):
        ctes = {cte.alias.casefold() for cte in tree.find_all(exp.CTE)}
        for table in tree.find_all(exp.Table):
            parts = [part for part in table.parts if isinstance(part, exp.Identifier)]
            known = all(part.meta_get("start") is not None for part in parts)
            if not known or len(parts) < len(table.parts) or (len(parts) == 1 and table.name.casefold() in ctes):
                continue
            names = tuple(part.name for part in parts)
            found.append(
                TableReference(names, parts[0].meta["start"], parts[-1].meta["end"] + 1, aliased=bool(table.alias))
            )
    return found
