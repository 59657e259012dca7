"""A case: sources, views over them and over each other, and the ticks that change them."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import TYPE_CHECKING

from support.generator.deltas import random_ticks
from support.generator.grammar import GRAMMAR
from support.generator.queries import Queries
from support.generator.relations import Relation
from support.generator.text import Sql
from support.generator.values import random_sources

from weirflow.sql.types import type_name

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pyarrow as pa
    from support.generator.deltas import Tick
    from support.generator.kinds import Kind

_ROWS = 12
"""About how many rows a source has."""


@dataclass(frozen=True)
class View:
    """A view: its name, its query, and the kinds of its columns."""

    name: str
    text: Sql
    kinds: tuple[Kind, ...]


@dataclass(frozen=True)
class Case:
    """What one seed stands for."""

    seed: int
    sources: Mapping[str, pa.Schema]
    views: tuple[View, ...]
    ticks: tuple[Tick, ...]

    def __str__(self) -> str:
        """All that is needed to run the case again, as Python."""
        schemas = ",\n".join(
            f"    {name!r}: parse_ddl({', '.join(f'{field.name} {type_name(field.type)}' for field in schema)!r})"
            for name, schema in self.sources.items()
        )
        views = ",\n".join(f"    {view.name!r}: {view.text.spark!r}" for view in self.views)
        ticks = "\n".join(f"views.tick({tick!r})" for tick in self.ticks)
        return f"# seed {self.seed}\nviews = Maintained({{\n{schemas}\n}}, {{\n{views}\n}})\n{ticks}"


def make_case(seed: int) -> Case:
    """The case of a seed: always the same."""
    dice = random.Random(seed)
    sources = random_sources(dice)
    relations = [
        Relation(Sql(source.name, source.name), tuple((name, pool.kind) for name, pool in source.columns), _ROWS)
        for source in sources
    ]
    views: list[View] = []
    for number in range(dice.choices((1, 2, 3, 4), (40, 35, 15, 10))[0]):
        query = Queries(dice, tuple(relations), GRAMMAR).query()
        views.append(View(f"v{number}", query.text, query.kinds))
        name = views[-1].name
        # A view that DuckDB cannot compute, nothing can that reads it.
        text = Sql(name, name) if isinstance(query.text.duck, str) else Sql(name, query.text.duck)
        relations += [Relation(text, query.columns, query.size)] * 2
    ticks = random_ticks(dice, sources)
    return Case(seed, {source.name: source.schema for source in sources}, tuple(views), ticks)
