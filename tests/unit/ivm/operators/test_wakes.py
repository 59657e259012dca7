"""When conditions on the clock change: not later than they do, and not before, on days on which clocks are changed."""

import datetime as dt

import numpy as np
import pyarrow as pa
import pytest
from support.clock_cases import ATOMS

from weirflow.ivm.kernel.expressions.compile import compile_expression
from weirflow.ivm.kernel.expressions.times.clocks import clock_of
from weirflow.ivm.kernel.schedule import BEFORE_ALL, NEVER
from weirflow.ivm.operators.clocked.wakes import Wakes
from weirflow.ivm.operators.truth import true_rows
from weirflow.sql.bind.query import bind_query
from weirflow.sql.clock.conditions import clock_conditions
from weirflow.sql.clock.reading import with_reading
from weirflow.sql.expr import Column
from weirflow.sql.plan import Field
from weirflow.sql.settings import SqlSettings

EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
MINUTE = 60_000_000
DAY = 1440 * MINUTE
COLUMNS = (
    ("at", pa.timestamp("us", "UTC")),
    ("d", pa.date32()),
    ("n", pa.timestamp("us")),
    ("s", pa.int64()),
    ("ttl", pa.int32()),
)
FIELDS = tuple(Field(name, kind) for name, kind in COLUMNS)
MOMENT = pa.timestamp("us", "UTC")
# In each zone the middle of some days on which its clocks were put forward or back, or a month ended.
DAYS = {
    "UTC": ("2025-02-28", "2024-03-30"),
    "America/New_York": ("2025-03-09", "2025-11-02"),
    "America/Havana": ("2025-03-09", "2025-11-02"),
    "Australia/Lord_Howe": ("2025-04-05", "2025-10-04"),
    "Pacific/Apia": ("2011-12-30",),
    "America/St_Johns": ("2010-03-14", "2010-11-07"),
    "+05:30": ("2024-02-29",),
}
CASES = [(zone, day) for zone, days in DAYS.items() for day in days]


def middle_of(zone, day):
    """When the clocks of the zone are changed on that day; if they are not, when it ends."""
    end = (dt.datetime.fromisoformat(f"{day}T00:00:00+00:00") + dt.timedelta(days=1) - EPOCH) // dt.timedelta(
        microseconds=1
    )
    changes = [int(one) for one in clock_of(zone).changes if abs(int(one) - end) < 2 * DAY]
    return changes[0] if changes else end


def predicate(atom, zone):
    plan = bind_query(f"SELECT {atom} AS x FROM t", {"t": FIELDS}, settings=SqlSettings(zone, True, False))
    (expr,) = plan.expressions
    return expr


def columns_near(moments):
    return [
        pa.array(moments).view(MOMENT),
        pa.array((moments // DAY).astype(np.int32)).view(pa.date32()),
        pa.array(moments).view(pa.timestamp("us")),
        pa.array(moments // 1_000_000),
        pa.array((moments // MINUTE % 3).astype(np.int32)),
    ]


def check(atom, zone, day, *, step, readings):
    """Compare with what the condition is at each minute of some days, and around the moment that was found."""
    expr = predicate(atom, zone)
    wakes = Wakes(clock_conditions(expr))
    evaluate = compile_expression(with_reading(expr, Column(len(COLUMNS), "", MOMENT)))
    middle = middle_of(zone, day)
    # Rows that change about then, however far what they are compared with is away.
    shifts = np.array([0, 60, 1440, 1800, -60, -1440, 43_200, -43_200, 44_640, -44_640, 527_040, -525_600]) * MINUTE
    near = np.arange(middle - 150 * MINUTE, middle + 150 * MINUTE, 13 * step * MINUTE)
    moments = (near[:, np.newaxis] - shifts).reshape(-1)
    moments = np.concatenate([moments, moments[::5] + 1, moments[::7] - 1])
    columns, length = columns_near(moments), len(moments)

    def truth(at):
        told = pa.array(np.broadcast_to(at, length).astype(np.int64)).view(MOMENT)
        found = evaluate([*columns, told], length)
        known = found.is_valid().to_numpy(zero_copy_only=False)
        return np.where(known, true_rows(found), 2)

    for reading in readings:
        begin = middle + reading * MINUTE
        found, now = wakes.after(columns, length, begin), truth(begin)
        assert (found > begin).all()
        woken = found != NEVER
        at = np.where(woken, found, begin)
        conditions = clock_conditions(expr)
        # Of several one may change and the whole may not; and a value that is left out is equal at no moment.
        if len(conditions) == 1 and conditions[0].at_equal != conditions[0].above:
            assert (truth(at)[woken] != now[woken]).all(), (atom, zone, day, "looked at too early")
        assert (truth(np.where(woken, at - 1, begin)) == now).all(), (atom, zone, day, "looked at too late")
        for later in range(1, 300, 7 * step):
            instant = begin + later * MINUTE
            asleep = instant < found
            assert (truth(instant)[asleep] == now[asleep]).all(), (atom, zone, day, later, "looked at too late")


def filled(atom):
    return [atom.format(n=n, m=m, unit=unit) for n, m, unit in ((1, 1, "DAY"), (24, 12, "HOUR"), (30, 2, "MONTH"))]


def turning(zone):
    """Conditions that look at the calendar or at clocks of the zone."""
    every = dict.fromkeys(one for atom in ATOMS for one in filled(atom))
    return [one for one in every if any(found.turns for found in clock_conditions(predicate(one, zone)))]


@pytest.mark.parametrize("atom", ATOMS)
def test_conditions_change_when_rows_are_looked_at(atom):
    check(filled(atom)[0], "UTC", "2024-12-31", step=5, readings=(-1500, 17))


@pytest.mark.parametrize(("zone", "day"), CASES)
def test_conditions_turn_when_clocks_do(zone, day):
    for number, atom in enumerate(turning(zone)[:: 8 if zone == "UTC" else 24]):
        check(atom, zone, day, step=3, readings=(-100, -31, 17, 75)[number % 2 :: 2])


@pytest.mark.campaign
@pytest.mark.parametrize(("zone", "day"), CASES)
def test_all_conditions_turn_when_clocks_do(zone, day):
    for atom in turning(zone):
        check(atom, zone, day, step=1, readings=(-2000, -100, -31, 17, 75))


def test_what_is_rounded_before_months_are_added_turns_at_midnight():
    check("date_trunc('HOUR', now()) - INTERVAL 1 MONTH < at", "UTC", "2024-03-30", step=2, readings=(-100,))


def test_without_a_reading_all_rows_wait_for_the_first():
    wakes = Wakes(clock_conditions(predicate("at > now()", "UTC")))
    assert wakes.after(columns_near(np.array([5, 7])), 2, None).tolist() == [BEFORE_ALL] * 2


def test_what_does_not_depend_on_the_row_changes_for_all_rows():
    wakes = Wakes(clock_conditions(predicate("now() > TIMESTAMP'2025-01-01 00:00:00'", "UTC")))
    found = wakes.after(columns_near(np.array([5, 7])), 2, 0)
    assert found.tolist() == [1_735_689_600_000_001] * 2


def test_a_condition_that_cannot_be_computed_ahead_is_looked_at_whenever_the_clock_moves():
    wakes = Wakes(clock_conditions(predicate("at > now() - INTERVAL 1 HOUR AND s / ttl < unix_timestamp()", "UTC")))
    assert wakes.after(columns_near(np.array([0, MINUTE])), 2, 9).tolist() == [10, 10]
