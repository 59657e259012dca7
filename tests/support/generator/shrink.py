"""Makes a failing case smaller while it fails: fewer views, ticks, rows and clauses."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

import sqlglot
from sqlglot import exp
from support.generator.text import Sql

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from support.generator.case import Case, View

    Fails = Callable[[Case], bool]

_CLAUSES = ("where", "having", "limit", "offset", "joins", "laterals")


def shrink(case: Case, fails: Fails, *, tries: int = 400) -> Case:
    """A smaller case for which ``fails`` still holds; what cannot be run does not fail."""
    shrunk = True
    while shrunk and tries > 0:
        shrunk = False
        for smaller in _smaller(case):
            tries -= 1
            if fails(smaller):
                case, shrunk = smaller, True
                break
            if tries <= 0:
                break
    return case


def _smaller(case: Case) -> Iterator[Case]:
    """Cases with one thing less, the largest things first."""
    for place, view in enumerate(case.views):
        others = case.views[:place] + case.views[place + 1 :]
        if others and not any(reads(other, view.name) for other in others):
            yield replace(case, views=others)
    for place in range(len(case.ticks)):
        yield replace(case, ticks=case.ticks[:place] + case.ticks[place + 1 :])
    for name in case.sources:
        if not any(reads(view, name) for view in case.views):
            yield replace(case, sources={other: schema for other, schema in case.sources.items() if other != name})
    for place, view in enumerate(case.views):
        for simpler in _fewer_calls(view) if view.calls else _fewer_clauses(view):
            yield replace(case, views=(*case.views[:place], simpler, *case.views[place + 1 :]))
    for place, tick in enumerate(case.ticks):
        for name, changes in tick.items():
            for at in range(len(changes)):
                fewer = {**tick, name: changes[:at] + changes[at + 1 :]}
                yield replace(case, ticks=(*case.ticks[:place], fewer, *case.ticks[place + 1 :]))


def reads(view: View, name: str) -> bool:
    """Whether a view may read a relation."""
    return re.search(rf"\b{name}\b", view.text.spark) is not None


def _fewer_calls(view: View) -> Iterator[View]:
    """The frame without one of the calls behind the first."""
    for step in range(1, len(view.calls)):
        calls = view.calls[:step] + view.calls[step + 1 :]
        yield replace(view, text=Sql("".join(calls), view.text.duck), calls=calls)


def _fewer_clauses(view: View) -> Iterator[View]:
    """The query without one clause or argument, in both dialects at once."""
    text = view.text
    for step in range(_steps(text.spark)):
        spark = _without(text.spark, "spark", step)
        duck = _without(text.duck, "duckdb", step) if isinstance(text.duck, str) else text.duck
        if spark is not None and duck is not None:
            yield replace(view, text=Sql(spark, duck))


def _steps(text: str) -> int:
    return len(_places(sqlglot.parse_one(text, dialect="spark")))


def _without(text: str, dialect: str, step: int) -> str | None:
    """The query without the clause of a number; None if the dialects do not have the same clauses."""
    tree = sqlglot.parse_one(text, dialect=dialect)
    places = _places(tree)
    if step >= len(places):
        return None
    query, clause = places[step]
    value = query.args[clause]
    query.set(clause, value[:-1] if isinstance(value, list) else None)
    return str(tree.sql(dialect=dialect))


def _places(tree: exp.Expr) -> list[tuple[exp.Expr, str]]:
    return [(query, clause) for query in tree.find_all(exp.Query) for clause in _CLAUSES if query.args.get(clause)]
