"""What views read: the names in their plans or SQL, and the order that follows from them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from graphlib import CycleError, TopologicalSorter
from typing import TYPE_CHECKING

from sqlglot import exp

from weirflow.errors import ConfigError, QueryError
from weirflow.sql.stored import outline
from weirflow.sql.syntax.parse import parse_query

if TYPE_CHECKING:
    from weirflow.ivm.compiler.view import View


def in_order(views: Mapping[str, View]) -> Sequence[str]:
    """The names of the views, each behind those it reads."""
    known = {name.casefold(): name for name in views}
    found = {name: [known[table] for table in _others(name, view) if table in known] for name, view in views.items()}
    try:
        return list(TopologicalSorter(found).static_order())
    except CycleError as error:
        circle = " reads ".join(reversed(error.args[1]))
        raise ConfigError(f"Views read each other in a circle: {circle}.", hint="let one read something else") from None


def readers_of(name: str, views: Mapping[str, View]) -> list[str]:
    """The views that read a source or view directly."""
    return [one for one, view in views.items() if one != name and name.casefold() in reads(view)]


def with_readers(name: str, views: Mapping[str, View]) -> set[str]:
    """A view and all that read it, directly or not."""
    return _reached(name, lambda one: readers_of(one, views))


def with_read(name: str, views: Mapping[str, View]) -> set[str]:
    """A view and all views that it reads, directly or not."""
    known = {one.casefold(): one for one in views}
    return _reached(name, lambda one: [known[table] for table in reads(views[one]) if table in known])


def _reached(name: str, following: Callable[[str], Iterable[str]]) -> set[str]:
    found: set[str] = set()
    ahead = [name]
    while ahead:
        one = ahead.pop()
        if one not in found:
            found.add(one)
            ahead += following(one)
    return found


def _others(name: str, view: View) -> frozenset[str]:
    """``reads``, without the view's own name where that is the name of a CTE in it, as recursive views often have."""
    found, ctes = names_of(view)
    return found - ({name.casefold()} & ctes)


def tables(sql: str) -> frozenset[str]:
    """All names that the query may read, in lower case; names of its own CTEs do no harm."""
    return names_in(sql)[0]


def reads(view: View) -> frozenset[str]:
    """All names that a view may read, in lower case; names of its own CTEs do no harm."""
    return names_of(view)[0]


def missing(view: View, known: Iterable[str]) -> frozenset[str]:
    """The names that a view reads, in lower case, and that are neither known nor names of its own CTEs."""
    found, ctes = names_of(view)
    return found - ctes - {name.casefold() for name in known}


def names_of(view: View) -> tuple[frozenset[str], frozenset[str]]:
    """As ``names_in``, for a view: one with a plan reads what that scans, whatever is in its text."""
    known = None if view.plan is None else outline(view.plan).reads
    return names_in(view.sql) if known is None else (known, frozenset())


def is_readable(sql: str) -> bool:
    """Whether one can tell what the query reads."""
    try:
        names_in(sql)
    except QueryError:
        return False
    return True


@lru_cache(maxsize=16_384)
def names_in(sql: str) -> tuple[frozenset[str], frozenset[str]]:
    """The names that the query may read and those of its CTEs, in lower case."""
    query = parse_query(sql, keep=True)
    found = frozenset(table.name.casefold() for table in query.find_all(exp.Table))
    return found, frozenset(cte.alias.casefold() for cte in query.find_all(exp.CTE))
