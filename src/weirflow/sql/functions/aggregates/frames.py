"""Aggregate calls over the frames of a window, where there is no FILTER and no order of their own."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from weirflow.sql.expr import Literal
from weirflow.sql.functions.conditionals import case
from weirflow.sql.types import INT

if TYPE_CHECKING:
    from weirflow.sql.expr import AggregateCall

_ONE, _NONE = Literal(1, INT), Literal(None, INT)


def over_frame(call: AggregateCall) -> AggregateCall | None:
    """The call with what it means over a frame, which ``count_if`` says with a FILTER; None if it has no such form."""
    if call.function == "count" and call.filter is not None and not call.arguments:
        counted = case(((call.filter, _ONE),), _NONE, call.position)
        call = replace(call, filter=None, arguments=(counted,))
    return None if call.filter is not None or call.order_by or call.distinct else call
