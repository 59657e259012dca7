"""Clocks of time zones, compared with Python's own."""

import datetime as dt
from zoneinfo import ZoneInfo

import numpy as np
import pytest

from weirflow import IncrementalFlow
from weirflow.errors import UnsupportedError
from weirflow.ivm.kernel.expressions.times.clocks import clock_of

ZONES = [
    "America/New_York",
    "Asia/Kolkata",
    "Australia/Lord_Howe",  # by half an hour
    "Africa/Casablanca",  # listed, not by a rule
    "America/Sao_Paulo",  # at midnight
    "Pacific/Apia",  # a day that was left out
    "Europe/Dublin",
]
EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
SECOND = 1_000_000


def micros(moment):
    return (moment - EPOCH) // dt.timedelta(microseconds=1)


def wall(moment):
    return micros(moment.replace(tzinfo=dt.UTC))


@pytest.mark.parametrize("zone", ZONES)
def test_clocks_show_what_they_show_in_python(zone):
    clock, info = clock_of(zone), ZoneInfo(zone)
    chosen = np.random.default_rng(1).integers(-5_000_000_000, 30_000_000_000, 3_000) * SECOND + 123_456
    near = clock.changes[np.abs(clock.changes) < 4_000_000_000 * SECOND]
    moments = np.concatenate([chosen, near, near - 1, near + 1])
    expected = [wall((EPOCH + dt.timedelta(microseconds=int(one))).astimezone(info)) for one in moments]
    assert clock.local(moments).tolist() == expected
    assert (clock.local(clock.moment(clock.local(moments))) == clock.local(moments)).all()


@pytest.mark.parametrize("zone", ZONES)
def test_rules_go_on_for_ever(zone):
    clock = clock_of(zone)
    century = np.arange(0, 100 * 366) * 86_400 * SECOND
    cycle = 146_097 * 86_400 * SECOND
    late = micros(dt.datetime(2450, 1, 1, tzinfo=dt.UTC)) + century
    for times in (1, 2, 5):
        assert (clock.offset_at(late + times * cycle) == clock.offset_at(late)).all()


def test_a_time_that_is_left_out_is_read_as_if_the_clock_had_not_been_touched():
    clock = clock_of("America/New_York")
    shown = np.array([wall(dt.datetime(2024, 3, 10, 2, 30)), wall(dt.datetime(2024, 3, 10, 3, 30))])  # noqa: DTZ001
    assert clock.moment(shown).tolist() == [micros(dt.datetime(2024, 3, 10, 7, 30, tzinfo=dt.UTC))] * 2


def test_a_time_that_is_shown_twice_is_the_first():
    clock = clock_of("America/New_York")
    shown = np.array([wall(dt.datetime(2024, 11, 3, 1, 30))])  # noqa: DTZ001
    assert clock.moment(shown).tolist() == [micros(dt.datetime(2024, 11, 3, 5, 30, tzinfo=dt.UTC))]


def test_a_day_whose_midnight_is_left_out_begins_later():
    clock = clock_of("America/Sao_Paulo")
    midnight = np.array([wall(dt.datetime(2018, 11, 4))])  # noqa: DTZ001
    assert clock.day_start(midnight).tolist() == [micros(dt.datetime(2018, 11, 4, 3, tzinfo=dt.UTC))]


@pytest.mark.parametrize(("zone", "hours"), [("UTC", 0), ("+05:30", 5.5), ("-08:00", -8), ("GMT+2", 2), ("Z", 0)])
def test_offsets_are_zones_whose_clocks_are_never_changed(zone, hours):
    assert clock_of(zone).local(np.array([0])).tolist() == [hours * 3600 * SECOND]


SHORT = [("EST", "-05:00"), ("PST", "America/Los_Angeles"), ("IST", "Asia/Kolkata")]


@pytest.mark.parametrize(("short", "zone"), SHORT)
def test_short_names_are_those_of_java(short, zone):
    moments = np.arange(-40_000, 40_000, 37) * 86_400 * SECOND
    assert clock_of(short).local(moments).tolist() == clock_of(zone).local(moments).tolist()
    with IncrementalFlow(time_zone=short) as flow:
        flow.register_source("t", "text STRING")
        flow.register_view("v", "SELECT CAST(text AS TIMESTAMP) AS at FROM t")
        flow.tick("t", [{"text": "2024-07-01 10:00:00"}])
        shown = np.array([wall(dt.datetime(2024, 7, 1, 10))])  # noqa: DTZ001
        assert [micros(row["at"]) for row in flow.snapshot("v").to_pylist()] == clock_of(zone).moment(shown).tolist()


@pytest.mark.parametrize("zone", [*ZONES, "UTC", "-18:00"])
def test_one_time_is_read_as_many_are_and_further_away(zone):
    clock = clock_of(zone)
    months = np.arange(-3_000, 3_000, 11) * 30 * 86_400 * SECOND
    near = np.concatenate([clock.read, clock.read - 1, clock.read + 1, months])
    assert [clock.moment_at(one) for one in near.tolist()] == clock.moment(near).tolist()
    assert 2**63 - clock.moment_at(2**63) == int(clock.offset_at(np.array([2**63 - 1]))[0])
    assert -(2**64) - clock.moment_at(-(2**64)) == int(clock.offsets[0])


NO_ZONES = ["Nowhere/Land", "../etc/passwd", "", "ROC", "localtime", "posixrules", "posix/UTC", "+130"]


@pytest.mark.parametrize("zone", NO_ZONES)
def test_a_zone_that_nobody_knows_is_refused(zone):
    with pytest.raises(UnsupportedError, match="time zone"):
        clock_of(zone)
