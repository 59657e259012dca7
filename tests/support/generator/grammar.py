"""The forms of queries and how often each is taken: where one more is added."""

from __future__ import annotations

from support.generator.queries import (
    Grammar,
    distinct,
    exploded,
    first_rows,
    grouped,
    grouping_sets,
    plain,
    set_operation,
    windowed,
    with_cte,
)
from support.generator.recursive import recursive
from support.generator.time_windows import in_sessions, in_time_windows

GRAMMAR = Grammar(
    shapes=(
        (plain, 30),
        (distinct, 8),
        (grouped, 34),
        (grouping_sets, 8),
        (windowed, 14),
        (exploded, 4),
        (in_time_windows, 8),
        (in_sessions, 7),
    ),
    around=(
        (0.12, set_operation),
        (0.12, first_rows),
        (0.08, with_cte),
        (0.07, recursive),
    ),
)
