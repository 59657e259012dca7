"""All query texts that the tests have, each with sources and ticks: what reads SQL can be tried on all of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from support import binder_catalogue, query_grid, sql_catalogue, time_corpus, tpch, view_corpus
from support.expression_catalogue import FAMILIES
from support.expression_data import SCHEMA, edge_table
from support.generator.case import make_case
from support.tpch_data import TpchData
from support.two_readings import Texts

from weirflow.sql.typing.type_syntax import parse_ddl

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from support.two_readings import Row, Tick

_TICKS = 3
_MOST = 8


def catalogues() -> Iterator[Texts]:
    """Texts that are written by hand."""
    ticks = there_and_back({name: _hashable(rows) for name, rows in binder_catalogue.ROWS.items()})
    yield Texts(binder_catalogue.SOURCES, _numbered([text for _, text in binder_catalogue.texts()]), ticks)
    yield Texts(view_corpus.SOURCES, view_corpus.VIEWS, _changes(view_corpus.RandomTables(3)), chained=True)
    yield Texts(time_corpus.SOURCES, time_corpus.VIEWS, _changes(time_corpus.RandomEvents(4)))
    constructs = _numbered([one.sql for one in sql_catalogue.CONSTRUCTS if one.outcome != sql_catalogue.FOLLOWED])
    yield Texts(sql_catalogue.SOURCES, constructs, _changes(sql_catalogue.CatalogueTables(5)))
    world = TpchData(seed=8)
    sources = {name: parse_ddl(ddl) for name, ddl in tpch.SCHEMAS.items()}
    ticks = [world.base(orders=40), world.refresh(inserted=4, deleted=4)]
    yield Texts(sources, {f"q{number}": sql for number, sql in tpch.QUERIES.items()}, ticks)


def grid() -> Texts:
    """Those of the grid."""
    return Texts(query_grid.SOURCES, _numbered(list(query_grid.queries())), there_and_back(query_grid.ROWS))


def expressions() -> Texts:
    """Each expression of the catalogue, over rows full of edge cases, each of which comes in a tick of its own."""
    texts = [f"SELECT {case.sql} AS x FROM e" for family in FAMILIES.values() for case in family()]
    rows = _hashable([tuple(row.values()) for row in edge_table(12, seed=5).to_pylist()])
    return Texts({"e": SCHEMA}, _numbered(texts), [{"e": [(row, 1)]} for row in rows])


def random_texts(seeds: range) -> Iterator[Texts]:
    """Those that the generator writes."""
    for seed in seeds:
        case = make_case(seed)
        yield Texts(case.sources, {view.name: view.text.spark for view in case.views}, case.ticks, chained=True)


def _numbered(texts: list[str]) -> dict[str, str]:
    return {f"v{number}": text for number, text in enumerate(dict.fromkeys(texts))}


def _changes(tables: view_corpus.RandomTables) -> list[Tick]:
    return [tables.changes(most=_MOST) for _ in range(_TICKS)]


def there_and_back(rows: Mapping[str, Sequence[Row]]) -> list[Tick]:
    """Ticks in which all rows come, every second goes, and one of those comes back."""
    return [
        {name: [(row, 1) for row in some] for name, some in rows.items()},
        {name: [(row, -1) for row in some[::2]] for name, some in rows.items()},
        {name: [(some[0], 1), (some[1], -1)] for name, some in rows.items()},
    ]


def _hashable(rows: Sequence[Row]) -> list[Row]:
    return [tuple(_frozen(value) for value in row) for row in rows]


def _frozen(value: Any) -> Any:
    if isinstance(value, dict):
        return tuple(_frozen(one) for one in value.values())
    return tuple(_frozen(one) for one in value) if isinstance(value, list) else value
