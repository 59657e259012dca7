"""Frames and functions over them, against a walk over the rows of each partition."""

import random
from datetime import UTC, date, datetime, timedelta

import pyarrow as pa
import pytest
from support.compiled_views import compile_views
from support.maintained import Maintained

from weirflow.errors import DataError, NotIncremental, Reason

KEYS = {
    pa.int8(): lambda n: n,
    pa.int32(): lambda n: n * 1000,
    pa.int64(): lambda n: n + 2**62,
    pa.date32(): lambda n: date(1970, 1, 1) + timedelta(days=n),
    pa.timestamp("us", "UTC"): lambda n: datetime(1970, 1, 1, tzinfo=UTC) + timedelta(hours=n),
}
UNITS = {
    pa.int8(): "{}",
    pa.int32(): "{}000",
    pa.int64(): "{}",
    pa.date32(): "INTERVAL '{}' DAY",
    pa.timestamp("us", "UTC"): "INTERVAL {} HOURS",
}
BOUNDS = [None, -4, -1, 0, 2, 3]


def view_of(rows, sql, **columns):
    views = Maintained({"t": pa.schema(list(columns.items()))}, {"view": sql})
    half = len(rows) // 2
    views.tick({"t": [(row, 1) for row in rows[:half]]})
    views.tick({"t": [(row, 1) for row in rows[half:]]})
    return views


def bound(offset, unit, *, start):
    if offset is None:
        return "UNBOUNDED PRECEDING" if start else "UNBOUNDED FOLLOWING"
    if offset == 0:
        return "CURRENT ROW"
    return f"{unit.format(abs(offset))} {'PRECEDING' if offset < 0 else 'FOLLOWING'}"


def in_frame(own, other, start, end, *, descending, nulls_first):
    """Whether a row with the sort key ``other`` is in the frame of one with ``own``."""
    if own is None or other is None:
        if own is None and other is None:
            return True
        other_is_before = (other is None) == nulls_first
        return start is None if other_is_before else end is None
    distance = own - other if descending else other - own
    return (start is None or distance >= start) and (end is None or distance <= end)


@pytest.mark.parametrize("kind", KEYS, ids=str)
@pytest.mark.parametrize("descending", [False, True], ids=["asc", "desc"])
@pytest.mark.parametrize("nulls_first", [False, True], ids=["nulls-last", "nulls-first"])
def test_a_range_frame_holds_the_rows_whose_keys_are_near(kind, descending, nulls_first):
    dice = random.Random(3)
    numbers = [(row, dice.choice("ab"), dice.choice([None] * 4 + [*range(-6, 7)])) for row in range(40)]
    make = KEYS[kind]
    rows = [(row, p, None if n is None else make(n)) for row, p, n in numbers]
    frames = [(start, end) for start in BOUNDS for end in BOUNDS if None in (start, end) or start <= end]
    order = f"PARTITION BY p ORDER BY o {'DESC' if descending else 'ASC'} NULLS {'FIRST' if nulls_first else 'LAST'}"
    calls = [
        f"SUM(id) OVER ({order} RANGE BETWEEN {bound(start, UNITS[kind], start=True)} "
        f"AND {bound(end, UNITS[kind], start=False)}) AS f{number}"
        for number, (start, end) in enumerate(frames)
    ]
    views = view_of(rows, f"SELECT id, {', '.join(calls)} FROM t", id=pa.int64(), p=pa.string(), o=kind)
    expected = set()
    for row, p, n in numbers:
        sums = []
        for start, end in frames:
            held = [
                id_
                for id_, q, m in numbers
                if p == q and in_frame(n, m, start, end, descending=descending, nulls_first=nulls_first)
            ]
            sums.append(sum(held) if held else None)
        expected.add((row, *sums))
    assert set(views.views["view"]) == expected


@pytest.mark.parametrize(
    ("kind", "values", "frame", "expected"),
    [
        # 127 + 1 is never computed: when its turn comes, all rows are in the frame already.
        (pa.int8(), [126, 127], "1 PRECEDING AND 1 FOLLOWING", [2, 2]),
        (pa.int8(), [125, 127], "1 PRECEDING AND 1 FOLLOWING", "BINARY_ARITHMETIC_OVERFLOW"),
        (pa.int8(), [-128, -127], "1 PRECEDING AND CURRENT ROW", "BINARY_ARITHMETIC_OVERFLOW"),
        (pa.int32(), [2**31 - 2, 2**31 - 1], "1 FOLLOWING AND 2 FOLLOWING", "ARITHMETIC_OVERFLOW"),
        (pa.int64(), [2**63 - 2, 2**63 - 1], "1 FOLLOWING AND UNBOUNDED FOLLOWING", "ARITHMETIC_OVERFLOW"),
        (pa.int64(), [2**63 - 2, 2**63 - 1], "1 PRECEDING AND 1 FOLLOWING", [2, 2]),
        (pa.int64(), [1 - 2**63, 2**63 - 1], "1 PRECEDING AND UNBOUNDED FOLLOWING", [2, 1]),
        (pa.int64(), [-(2**63), 2**63 - 1], "UNBOUNDED PRECEDING AND 1 PRECEDING", "ARITHMETIC_OVERFLOW"),
        (pa.int64(), [None, None], "1 PRECEDING AND 1 FOLLOWING", [2, 2]),
    ],
)
def test_a_bound_that_leaves_its_type_fails_the_tick_where_spark_computes_it(kind, values, frame, expected):
    sql = f"SELECT o, COUNT(*) OVER (ORDER BY o RANGE BETWEEN {frame}) AS n FROM t"
    views = Maintained({"t": pa.schema([("o", kind)])}, {"view": sql})
    delta = {"t": [((value,), 1) for value in values]}
    if isinstance(expected, str):
        with pytest.raises(DataError) as raised:
            views.tick(delta)
        assert raised.value.condition == expected
        assert raised.value.position is not None
    else:
        views.tick(delta)
        assert sorted(views.views["view"].elements(), key=repr) == sorted(zip(values, expected, strict=True), key=repr)


@pytest.mark.parametrize("ignore", [False, True], ids=["respect", "ignore"])
def test_values_of_other_rows_with_and_without_nulls(ignore):
    dice = random.Random(8)
    values = [dice.choice([None, None, 1, 2, 3]) for _ in range(25)]
    nulls = "IGNORE NULLS" if ignore else ""
    rows = "OVER (ORDER BY id ROWS BETWEEN 3 PRECEDING AND 2 FOLLOWING)"
    views = view_of(
        list(enumerate(values)),
        f"""
        SELECT id, FIRST_VALUE(v) {nulls} {rows} AS f, LAST_VALUE(v) {nulls} {rows} AS l,
               NTH_VALUE(v, 3) {nulls} {rows} AS n, LAG(v, 2, -id) {nulls} OVER (ORDER BY id) AS b,
               LEAD(v, 1, -id) {nulls} OVER (ORDER BY id) AS a, LAG(v, 0) {nulls} OVER (ORDER BY id) AS s
        FROM t
        """,
        id=pa.int64(),
        v=pa.int64(),
    )
    counted = [at for at, value in enumerate(values) if value is not None or not ignore]
    expected = set()
    for row in range(len(values)):
        frame = [values[at] for at in counted if row - 3 <= at <= row + 2]
        before = [values[at] for at in counted if at < row]
        after = [values[at] for at in counted if at > row]
        expected.add(
            (
                row,
                frame[0] if frame else None,
                frame[-1] if frame else None,
                frame[2] if len(frame) > 2 else None,
                before[-2] if len(before) > 1 else -row,
                after[0] if after else -row,
                values[row],
            )
        )
    assert set(views.views["view"]) == expected


def test_aggregates_over_frames():
    rows = [(1, "x", 5), (2, None, 7), (3, "y", None), (4, "z", 7), (5, "w", 1)]
    views = view_of(
        rows,
        """
        SELECT id, COUNT(s, v) OVER (ORDER BY id) AS both,
               COLLECT_LIST(v) OVER (ORDER BY id ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) AS list,
               PERCENTILE(v, 0.5) OVER (ORDER BY id) AS middle,
               MAX_BY(s, v) OVER (ORDER BY id DESC ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) AS largest,
               MIN_BY(s, v) OVER (ORDER BY id ROWS BETWEEN 1 FOLLOWING AND 1 FOLLOWING) AS next
        FROM t
        """,
        id=pa.int64(),
        s=pa.string(),
        v=pa.int64(),
    )
    assert sorted(views.views["view"]) == [
        (1, 1, (5,), 5.0, None, None),
        (2, 1, (5, 7), 6.0, None, None),
        (3, 1, (7,), 6.0, "z", "z"),
        (4, 2, (7,), 7.0, "z", "w"),
        (5, 3, (7, 1), 6.0, "w", None),
    ]


@pytest.mark.parametrize("call", ["SUM(v) IGNORE NULLS", "PERCENTILE(v, array(0.1, 0.2))", "MODE(v, v > 0)"])
def test_what_is_not_proven_is_refused_with_its_place(call):
    with pytest.raises(NotIncremental) as raised:
        compile_views(
            {"t": pa.schema([("id", pa.int64()), ("v", pa.int64())])},
            {"view": f"SELECT {call} OVER (ORDER BY id) AS x FROM t"},
        )
    assert raised.value.reason == Reason.FUNCTION_NOT_PROVEN
    assert raised.value.position is not None
