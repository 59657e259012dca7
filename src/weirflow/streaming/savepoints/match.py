"""Whether a query can go on from the savepoint of another; what does not fit is refused by name."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import zip_longest
from typing import TYPE_CHECKING

from weirflow.errors import StateMismatch
from weirflow.types import OutputMode

if TYPE_CHECKING:
    from weirflow.spark.streaming.savepoint import StateColumn, StateOperator
    from weirflow.streaming.savepoints.named import SavedQuery

_HINT = "keep sources, keys and aggregates as they were; begin a new query for other ones"


def require_match(name: str, saved: SavedQuery, wanted: SavedQuery) -> None:
    """Raise ``StateMismatch`` for the first difference that state or positions would not survive.

    Sink, trigger, name and everything that keeps no state may be others.

    Args:
        name: the name of the savepoint.
        saved: what the query of the savepoint was.
        wanted: what the new query is.
    """
    for difference in _differences(saved, wanted):
        raise StateMismatch(f"The query cannot continue from the savepoint {name!r}: {difference}.", hint=_HINT)


def _differences(saved: SavedQuery, wanted: SavedQuery) -> Iterator[str]:
    for number, (before, now) in enumerate(zip_longest(saved.sources, wanted.sources)):
        if before != now:
            yield f"source {number} was {before or 'not there'} and is {now or 'not there'}"
    for number, (old, new) in enumerate(zip_longest(saved.operators, wanted.operators)):
        if old is None or new is None:
            yield f"operator {number} was {old.name if old else 'not there'} and is {new.name if new else 'not there'}"
        else:
            yield from _of_operator(f"operator {number} ({old.name})", old, new)
    if saved.operators and wanted.mode == OutputMode.COMPLETE != saved.mode:
        yield f"its output mode was {saved.mode}, whose state lacks the groups that complete is to write"


def _of_operator(where: str, old: StateOperator, new: StateOperator) -> Iterator[str]:
    if old.name != new.name:
        yield f"{where} is {new.name} now"
    yield from _of_columns(f"the key of {where}", old.keys, new.keys)
    yield from _of_columns(f"the values of {where}", old.values, new.values)


def _of_columns(where: str, old: Sequence[StateColumn], new: Sequence[StateColumn]) -> Iterator[str]:
    names, wanted = [one.name for one in old], [one.name for one in new]
    if gone := [name for name in names if name not in wanted]:
        yield f"{where} had {gone[0]!r}, which is gone"
    if added := [name for name in wanted if name not in names]:
        yield f"{where} did not have {added[0]!r}"
    if names != wanted:
        yield f"{where} were in the order {', '.join(names)}"
    for before, now in zip(old, new, strict=False):
        if before.type != now.type:
            yield f"{where} had {before.name!r} as {before.type}, which is {now.type} now"
        if before.made_by != now.made_by:
            yield f"{where} had {before.name!r} with windows of another size, slide or offset"
