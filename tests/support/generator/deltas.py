"""Random delta sequences: bulk loads, single rows, updates, churn within a tick, retractions of everything."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import random
    from collections.abc import Callable, Mapping, Sequence

    from support.generator.values import Row, Source

Changes = tuple[tuple["Row", int], ...]
Tick = dict[str, Changes]
"""Weighted rows for each source that changes."""


class Tables:
    """The rows of all sources, told apart by all their bits: 0.0 and -0.0 are different rows."""

    def __init__(self, names: Sequence[str]) -> None:
        self.rows: dict[str, list[Row]] = {name: [] for name in names}

    def after(self, tick: Mapping[str, Changes]) -> tuple[Tick, Tables]:
        """What of a tick can happen, and the tables behind it; a row that is not there is not retracted."""
        result = Tables(list(self.rows))
        possible: Tick = {}
        for name, rows in self.rows.items():
            left = list(rows)
            changes: list[tuple[Row, int]] = []
            for row, weight in sorted(tick.get(name, ()), key=lambda change: change[1] < 0):
                if weight > 0:
                    left += [row] * weight
                    changes.append((row, weight))
                    continue
                there = [place for place, other in enumerate(left) if repr(other) == repr(row)]
                taken = there[:-weight]
                for place in reversed(taken):
                    del left[place]
                if taken:
                    changes.append((row, -len(taken)))
            result.rows[name] = left
            if changes:
                possible[name] = tuple(changes)
        return possible, result


def random_ticks(dice: random.Random, sources: Sequence[Source]) -> tuple[Tick, ...]:
    """Two to four ticks; the first mostly loads the tables."""
    tables = Tables([source.name for source in sources])
    ticks = []
    for number in range(dice.choice((2, 3, 3, 4))):
        tick: Tick = {}
        for source in sources:
            make = _load if number == 0 and dice.random() < 0.85 else dice.choice(MODES)
            changes = make(dice, source, tables.rows[source.name])
            if changes:
                tick[source.name] = tuple(changes)
        possible, tables = tables.after(tick)
        ticks.append(possible)
    return tuple(ticks)


def _load(dice: random.Random, source: Source, rows: Sequence[Row]) -> list[tuple[Row, int]]:
    """Many new rows, some of them twice."""
    del rows
    return [(source.row(dice), dice.choice((1, 1, 1, 1, 2))) for _ in range(dice.choice((0, 2, 5, 8, 12)))]


def _one(dice: random.Random, source: Source, rows: Sequence[Row]) -> list[tuple[Row, int]]:
    """A new row, or another of one that is there."""
    return [(dice.choice(rows) if rows and dice.random() < 0.3 else source.row(dice), 1)]


def _retract(dice: random.Random, source: Source, rows: Sequence[Row]) -> list[tuple[Row, int]]:
    """Some rows less."""
    del source
    return [(row, -1) for row in dice.sample(rows, dice.randint(0, min(len(rows), 4)))]


def _update(dice: random.Random, source: Source, rows: Sequence[Row]) -> list[tuple[Row, int]]:
    """One column of some rows changes."""
    changes = []
    for row in dice.sample(rows, dice.randint(0, min(len(rows), 3))):
        place = dice.randrange(len(row))
        changes += [(row, -1), ((*row[:place], source.row(dice)[place], *row[place + 1 :]), 1)]
    return changes


def _churn(dice: random.Random, source: Source, rows: Sequence[Row]) -> list[tuple[Row, int]]:
    """Rows that come and go in one tick, among others that stay or go."""
    passing = source.row(dice)
    changes = [(passing, 1), (source.row(dice), 1), (passing, -1), *_retract(dice, source, rows)]
    dice.shuffle(changes)
    return changes


def _clear(dice: random.Random, source: Source, rows: Sequence[Row]) -> list[tuple[Row, int]]:
    """No row stays."""
    del dice, source
    return [(row, -1) for row in rows]


def _nothing(dice: random.Random, source: Source, rows: Sequence[Row]) -> list[tuple[Row, int]]:
    del dice, source, rows
    return []


MODES: tuple[Callable[[random.Random, Source, Sequence[Row]], list[tuple[Row, int]]], ...] = (
    _load,
    _one,
    _one,
    _retract,
    _retract,
    _update,
    _update,
    _churn,
    _clear,
    _nothing,
)
