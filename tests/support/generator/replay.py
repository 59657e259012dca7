"""The ticks of a case, one after the other: the loop that every comparison shares."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from support.generator.deltas import Tables
from support.maintained import Maintained

from weirflow.errors import DataError, NotIncremental

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    import pyarrow as pa
    from support.generator.case import Case
    from support.generator.values import Row

START = -1


@dataclass(frozen=True)
class Mismatch:
    """Where a view is not what it should be."""

    tick: int
    view: str
    against: str
    detail: str

    def __str__(self) -> str:
        return f"after tick {self.tick} {self.view} differs from {self.against}: {self.detail}"


@dataclass
class Tally:
    """What a run of cases went through, so that it can be seen to have looked at something."""

    cases: int = 0
    ticks: int = 0
    failed_ticks: int = 0
    by_duckdb: int = 0
    unanswered: int = 0
    by_scratch: int = 0
    filled: int = 0
    refusals: Counter[str] = field(default_factory=Counter)

    def __str__(self) -> str:
        return (
            f"{self.cases} cases ({self.refusals.total()} refused), "
            f"{self.ticks} ticks ({self.failed_ticks} with data errors), "
            f"{self.by_duckdb} comparisons with DuckDB, {self.unanswered} that the other engine could not answer, "
            f"{self.by_scratch} with a circuit from scratch, {self.filled} views that were not empty"
        )


class MaintainedViews(Protocol):
    """Views that ticks change."""

    @property
    def views(self) -> Mapping[str, Counter[Row]]:
        """Their rows."""

    @property
    def schemas(self) -> Mapping[str, pa.Schema]:
        """Their columns."""

    def tick(self, changes: Mapping[str, Sequence[tuple[Row, int]]]) -> object:
        """Apply weighted rows to sources."""

    def discard(self) -> None:
        """Forget a tick that has raised."""


def maintained_views(case: Case) -> MaintainedViews:
    """The views of a case in a circuit, as the binder reads them."""
    return Maintained(case.sources, {view.name: view.text.spark for view in case.views})


@dataclass(frozen=True)
class Ticked:
    """What is there after a tick; one that failed with a data error has been discarded."""

    number: int
    """Counted from 0; `START` are the views over empty tables, which come here only if they fail."""
    maintained: MaintainedViews | None
    tables: Tables
    """The sources as the views stand for them: without a tick that failed."""
    error: DataError | None = None
    attempted: Tables | None = None
    """The sources that a failed tick would have made."""


def replay(
    case: Case, tally: Tally, open_views: Callable[[Case], MaintainedViews] = maintained_views
) -> Iterator[Ticked]:
    """Run a case tick by tick; nothing if its views are refused, the start alone if that fails."""
    tally.cases += 1
    tables = Tables(list(case.sources))
    try:
        maintained = open_views(case)
    except NotIncremental as error:
        tally.refusals[error.message] += 1
        return
    except DataError as error:
        tally.failed_ticks += 1
        yield Ticked(START, None, tables, error, tables)
        return
    for number, tick in enumerate(case.ticks):
        tally.ticks += 1
        possible, after = tables.after(tick)
        try:
            maintained.tick(possible)
        except DataError as error:
            maintained.discard()
            tally.failed_ticks += 1
            yield Ticked(number, maintained, tables, error, after)
        else:
            tables = after
            yield Ticked(number, maintained, tables)
