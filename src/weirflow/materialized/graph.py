"""Materialized views that read others: each is refreshed behind those that it reads."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from weirflow.errors import ConfigError, QueryError
from weirflow.materialized.opened import OpenedView, find_view
from weirflow.materialized.sources import tables_read

if TYPE_CHECKING:
    from weirflow.flows.host import FlowSession


@dataclass(frozen=True)
class ViewGraph:
    """Some views, and which of them read which.

    Attributes:
        views: each behind those that it reads.
        reads: for each, by the quoted names of their tables, those of the views that it reads.
    """

    views: tuple[OpenedView, ...]
    reads: Mapping[str, tuple[str, ...]]


def view_graph(session: FlowSession, views: Sequence[OpenedView], *, follow: bool) -> ViewGraph:
    """How views read each other.

    Args:
        session: whose Spark is asked.
        views: which ones.
        follow: whether views that they read, also by way of others, are among them, too.
    """
    main = session.spark
    known: dict[str, OpenedView | None] = {view.table: view for view in views}
    found: dict[str, OpenedView] = {}
    reads: dict[str, tuple[str, ...]] = {}
    ahead = list(reversed(views))
    while ahead:
        one = ahead.pop()
        if one.table in found:
            continue
        found[one.table] = one

        def look(view: OpenedView = one) -> list[OpenedView]:
            return _read_by(main, view, known)

        try:
            below = session.operations.run(f"look at the sources of {one.name}", look)
        except QueryError:  # its refresh says what is wrong with it
            below = []
        reads[one.table] = tuple(each.table for each in below)
        if follow:
            ahead += below
    return ViewGraph(tuple(found[table] for table in in_reading_order(reads)), reads)


def in_reading_order(reads: Mapping[str, Sequence[str]]) -> list[str]:
    """The names, each behind those that it reads; what is read and is no key is left out.

    >>> in_reading_order({"c": ["b", "a"], "b": ["a"], "a": ["orders"]})
    ['a', 'b', 'c']

    Raises:
        ConfigError: some read each other.
    """
    done: dict[str, bool] = {}

    def visit(name: str) -> Iterator[str]:
        if done.get(name):
            return
        if name in done:
            raise ConfigError(
                f"The materialized view {name} reads itself.", hint="create one of them without the other"
            )
        done[name] = False
        for one in reads[name]:
            if one in reads:
                yield from visit(one)
        done[name] = True
        yield name

    return [one for name in reads for one in visit(name)]


def _read_by(native: object, view: OpenedView, known: dict[str, OpenedView | None]) -> list[OpenedView]:
    tables = tables_read(native, view.definition)
    known.update({table: find_view(native, table) for table in tables if table not in known})
    below = [known[table] for table in tables]
    return [each for each in below if each is not None]
