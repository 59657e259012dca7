"""A case: sources, views over them and over each other, and the ticks that change them."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from support.generator.deltas import random_ticks
from support.generator.dice import Dice
from support.generator.frames import Frames
from support.generator.grammar import GRAMMAR
from support.generator.queries import Queries
from support.generator.relations import Relation
from support.generator.text import Differs, Sql
from support.generator.values import MOMENTS, POOLS, random_sources

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
    calls: tuple[str, ...] = ()
    """Of a view that is made of a frame: the calls of PySpark's that make it; its text is all of them."""


@dataclass(frozen=True)
class Case:
    """What one seed stands for."""

    seed: int
    sources: Mapping[str, pa.Schema]
    views: tuple[View, ...]
    ticks: tuple[Tick, ...]
    settings: Mapping[str, str] = field(default_factory=dict)
    """Of the Spark session that reads its views."""

    def __str__(self) -> str:
        """All that is needed to run the case again, as Python."""
        schemas = ",\n".join(
            f"    {name!r}: parse_ddl({', '.join(f'{field.name} {type_name(field.type)}' for field in schema)!r})"
            for name, schema in self.sources.items()
        )
        views = ",\n".join(f"    {view.name!r}: {view.text.spark!r}" for view in self.views)
        ticks = "\n".join(f"views.tick({tick!r})" for tick in self.ticks)
        settings = "".join(f"# {name} = {value}\n" for name, value in self.settings.items())
        return f"# seed {self.seed}\n{settings}views = Maintained({{\n{schemas}\n}}, {{\n{views}\n}})\n{ticks}"


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


ZONES = ("UTC", "America/New_York", "Asia/Kolkata")
ZONE = "spark.sql.session.timeZone"
ANSI = "spark.sql.ansi.enabled"
SETTINGS = tuple({ZONE: zone, ANSI: ansi} for ansi in ("true", "false") for zone in ZONES)


def make_session_case(seed: int) -> Case:
    """The case of a seed for a Session: the settings take turns, and a third of the views are frames."""
    settings = SETTINGS[seed % len(SETTINGS)]
    dice = Dice(f"session {seed}")
    if settings[ANSI] == "false":
        dice.risk = 1.0
    sources = random_sources(dice, (*POOLS, *MOMENTS))
    relations = [
        Relation(Sql(source.name, source.name), tuple((name, pool.kind) for name, pool in source.columns), _ROWS)
        for source in sources
    ]
    views: list[View] = []
    for number in range(dice.choices((1, 2, 3, 4), (40, 35, 15, 10))[0]):
        name = f"v{number}"
        if dice.random() < 1 / 3:
            frame = Frames(dice, tuple(relations)).frame()
            views.append(
                View(name, Sql(frame.text, Differs.FRAME), tuple(kind for _, kind in frame.columns), frame.calls)
            )
            columns, size = frame.columns, frame.size
        else:
            query = Queries(dice, tuple(relations), GRAMMAR).query()
            views.append(View(name, query.text, query.kinds))
            columns, size = query.columns, query.size
        relations += [Relation(Sql(name, name), columns, size)] * 2
    return Case(
        seed, {source.name: source.schema for source in sources}, tuple(views), random_ticks(dice, sources), settings
    )
