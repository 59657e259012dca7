"""Calls that Spark, or a function of a user's, evaluates: what has no counterpart here, over columns that have one.

Such a call is a ``Call`` like any other, so that whatever walks, stores, compares or moves expressions takes it as one:
its first two arguments are constants, Spark's text and the settings it is read with; the rest are what stands for the
placeholders in the text, in their order.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Final, NamedTuple

from weirflow.sql.expr import Call, Column, Expr, Literal, OuterColumn
from weirflow.sql.tree import Tree, inner
from weirflow.sql.types import STRING

if TYPE_CHECKING:
    import pyarrow as pa

    from weirflow.sql.plan import Plan

SPARK: Final = "spark"
"""The function of calls that Spark evaluates."""
PYTHON: Final = "python"
"""The function of calls of one Python function of a user's, which this process runs; Spark could, by the same text."""
FOREIGN: Final = frozenset({SPARK, PYTHON})
MARK: Final = "_wf"
"""How the names of placeholders begin, and no name of a text otherwise."""
_PLACEHOLDER = re.compile(rf"`{MARK}(\d+)`")


class ForeignCall(NamedTuple):
    """What Spark is to evaluate.

    Attributes:
        text: an expression of Spark SQL over placeholders.
        settings: Spark's settings that it has its meaning by, as text.
        arguments: what the placeholders stand for.
    """

    text: str
    settings: str
    arguments: tuple[Expr, ...]


def placeholder(number: int) -> str:
    """The column of a number, as a text has it.

    >>> placeholder(0)
    '`_wf0`'
    """
    return f"`{column_name(number)}`"


def column_name(number: int) -> str:
    """The name of a placeholder's column."""
    return f"{MARK}{number}"


def foreign_call(
    text: str, settings: Mapping[str, str], arguments: Iterable[Expr], kind: pa.DataType, function: str = SPARK
) -> Call:
    """A call that Spark evaluates.

    >>> import pyarrow as pa
    >>> from weirflow.sql.expr import Column
    >>> call = foreign_call("soundex(`_wf0`)", {}, [Column(3, "name", pa.string())], pa.string())
    >>> foreign_parts(call).arguments[0].name
    'name'
    """
    written = json.dumps(dict(sorted(settings.items())), separators=(",", ":"))
    return Call(function, (Literal(text, STRING), Literal(written, STRING), *arguments), kind)


def foreign_parts(call: Call) -> ForeignCall:
    """What a call of ``foreign_call``'s is made of."""
    text, settings, *arguments = call.arguments
    assert isinstance(text, Literal)
    assert isinstance(settings, Literal)
    return ForeignCall(text.value, settings.value, tuple(arguments))


def is_foreign(expr: Expr) -> bool:
    """Whether the expression itself is a call of ``foreign_call``'s."""
    return isinstance(expr, Call) and expr.function in FOREIGN


def placements(text: str) -> int:
    """How many placeholders a text has.

    >>> placements("concat(`_wf0`, `_wf0`)")
    2
    """
    return len(_PLACEHOLDER.findall(text))


def filled(text: str, name: Callable[[int], str]) -> str:
    """The text with what ``name`` gives for the number of each placeholder.

    >>> filled("concat(`_wf0`, `_wf1`)", lambda number: f"c{number}")
    'concat(c0, c1)'
    """
    return _PLACEHOLDER.sub(lambda found: name(int(found[1])), text)


def shown(call: Call) -> str:
    """A call for people: Spark's text, with the names of the columns in it."""
    found = foreign_parts(call)
    return filled(found.text, lambda number: _name(found.arguments[number]))


def _name(argument: Expr) -> str:
    return argument.name if isinstance(argument, Column | OuterColumn) else "…"


def foreign_calls(plan: Plan) -> list[Call]:
    """The calls of a plan and its subqueries that Spark or Python evaluates, each once."""
    found: dict[Call, None] = {}
    known: set[int] = set()
    ahead: list[Tree] = [plan]
    while ahead:
        node = ahead.pop()
        if id(node) in known:
            continue
        known.add(id(node))
        if isinstance(node, Call) and node.function in FOREIGN:
            found[node] = None
        ahead += inner(node)
    return list(found)
