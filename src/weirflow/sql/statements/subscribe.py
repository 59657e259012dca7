"""``SUBSCRIBE TO view``: the grammar of following the changes of a view."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from weirflow.sql.statements.changes import read_relation_name
from weirflow.sql.statements.cursor import Cursor
from weirflow.sql.statements.lexer import Lexer

if TYPE_CHECKING:
    from weirflow.sql.statements.relation_name import RelationName

_OPTIONS = ("snapshot", "progress", "upsert")


@dataclass(frozen=True)
class Subscribe:
    """``SUBSCRIBE TO``.

    Attributes:
        name: the view.
        as_of: the epoch that it begins with; None for the one that it is at.
        snapshot: whether all rows of that epoch come first.
        progress: whether epochs that change nothing are told, too.
        upsert: the columns of the key by which rows replace each other; none for all changes with their weights.
    """

    name: RelationName
    as_of: int | None = None
    snapshot: bool = True
    progress: bool = False
    upsert: tuple[str, ...] = ()


def read_subscribe(sql: str) -> Subscribe:
    """The statement that ``sql`` is, which begins with SUBSCRIBE.

    >>> read_subscribe("SUBSCRIBE TO shop.totals AS OF 7 WITH (SNAPSHOT = false)")
    Subscribe(name=RelationName(flow='shop', name='totals'), as_of=7, snapshot=False, progress=False, upsert=())

    Raises:
        SqlSyntaxError: it does not go on as one.
    """
    first = next(iter(Lexer(sql)))
    cursor = Cursor(sql, first.start + len(first.text))
    cursor.expect("TO")
    name = read_relation_name(cursor)
    as_of = _epoch(cursor) if cursor.accept("AS", "OF") else None
    found = _options(cursor)
    cursor.expect_end()
    return Subscribe(
        name,
        as_of,
        snapshot=bool(found.get("snapshot", True)),
        progress=bool(found.get("progress", False)),
        upsert=found.get("upsert", ()),  # type: ignore[arg-type]  # what _options reads for it
    )


def _epoch(cursor: Cursor) -> int:
    place = cursor.here()
    value = cursor.value()
    if isinstance(value, str | bool):
        cursor.fail("The epoch is a whole number", position=place)
    return value


def _options(cursor: Cursor) -> dict[str, bool | tuple[str, ...]]:
    found: dict[str, bool | tuple[str, ...]] = {}
    if not cursor.accept("WITH"):
        return found
    cursor.expect("(")
    while True:
        place = cursor.here()
        name = cursor.name().lower()
        if name not in _OPTIONS:
            cursor.fail(f"No option is called {name!r}; there are {', '.join(_OPTIONS)}", position=place)
        if name in found:
            cursor.fail(f"The option {name!r} is given twice", position=place)
        cursor.expect("=")
        place = cursor.here()
        if name == "upsert":
            found[name] = cursor.listed_names() if cursor.sees("(") else (cursor.name(),)
        else:
            value = cursor.value()
            if not isinstance(value, bool):
                cursor.fail(f"The option {name!r} is true or false", position=place)
            found[name] = value
        if not cursor.accept(","):
            break
    cursor.expect(")")
    return found
