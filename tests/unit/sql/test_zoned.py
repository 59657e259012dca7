"""Plans by the clocks of a zone: what they are in UTC, as text, and that no function is forgotten."""

import pytest

from weirflow.errors import ConfigError
from weirflow.sql.bind.query import bind_query
from weirflow.sql.expr import Literal
from weirflow.sql.functions.lookup import SCALARS
from weirflow.sql.functions.rules import FunctionSignature
from weirflow.sql.plan import Field, Project, Window
from weirflow.sql.settings import SqlSettings
from weirflow.sql.stored import decode_plan, encode_plan
from weirflow.sql.traverse import nodes
from weirflow.sql.types import INT, TIMESTAMP
from weirflow.sql.typing.coercion import implicit
from weirflow.sql.zoned import is_fixed, plan_there, tzinfo_of, zone_name

CATALOG = {"t": (Field("at", TIMESTAMP), Field("a", INT))}
NEW_YORK = SqlSettings("America/New_York")
FRAME = "SELECT COUNT(*) OVER (ORDER BY at RANGE BETWEEN INTERVAL '{}' HOUR PRECEDING AND CURRENT ROW) AS n FROM t"
LOOKS_AT_CLOCKS = {"hour", "minute", "second", "date_trunc", "timestampadd", "timestampdiff"}
LOOKS_AT_NONE = {"unix_seconds", "unix_millis", "unix_micros"}


def takes_timestamps(rule):
    if not isinstance(rule, FunctionSignature):
        return False
    moment = Literal(None, TIMESTAMP)
    return any(implicit(moment, one) is moment for one in rule.parameters if getattr(one, "name", "") != "any type")


def test_each_function_of_timestamps_is_known_to_look_at_a_clock_or_not():
    found = {name for name, rule in SCALARS.items() if takes_timestamps(rule)}
    assert found == LOOKS_AT_CLOCKS | LOOKS_AT_NONE


@pytest.mark.parametrize("name", sorted(LOOKS_AT_CLOCKS))
def test_what_looks_at_clocks_is_another_expression_in_a_zone(name):
    arguments = {"date_trunc": "'day', at", "timestampadd": "DAY, 1, at", "timestampdiff": "DAY, at, at"}
    sql = f"SELECT {name}({arguments.get(name, 'at')}) AS x FROM t"
    assert bind_query(sql, CATALOG) != bind_query(sql, CATALOG, settings=NEW_YORK)


def test_what_looks_at_none_is_the_same_anywhere():
    sql = "SELECT unix_micros(at) AS x, at > TIMESTAMP'2024-01-01 00:00:00Z' AS y, a + 1 AS z FROM t GROUP BY ALL"
    assert bind_query(sql, CATALOG) == bind_query(sql, CATALOG, settings=NEW_YORK)
    plan = bind_query(sql, CATALOG)
    assert plan_there(plan, "UTC") is plan


@pytest.mark.parametrize(("hours", "zone"), [(23, None), (24, "America/New_York")])
def test_frames_of_days_have_their_zone_also_as_text(hours, zone):
    plan = bind_query(FRAME.format(hours), CATALOG, settings=NEW_YORK)
    (window,) = (node for node in nodes(plan) if isinstance(node, Window))
    assert window.calls[0].frame.clocks == zone
    assert decode_plan(encode_plan(plan)) == plan
    assert ('"America/New_York"' in encode_plan(plan)) == (zone is not None)


def test_a_part_that_is_in_two_places_is_changed_once():
    sql = "WITH c AS (SELECT hour(at) AS h FROM t) SELECT * FROM c UNION ALL SELECT * FROM c"
    plan = bind_query(sql, CATALOG, settings=NEW_YORK)
    parts = [node for node in nodes(plan) if isinstance(node, Project) and node.fields[0].name == "h"]
    assert len({id(node) for node in parts if node.input.fields == CATALOG["t"]}) == 1


@pytest.mark.parametrize("zone", ["UTC", "Etc/UTC", "GMT", "Z", "+00:00"])
def test_utc_has_one_name(zone):
    assert zone_name(zone) == "UTC"
    assert is_fixed(zone)


def test_zones_are_regions_or_offsets():
    assert tzinfo_of("+05:30").utcoffset(None).total_seconds() == 19_800
    assert tzinfo_of("GMT-3").utcoffset(None).total_seconds() == -10_800
    assert not is_fixed("Asia/Kolkata")
    with pytest.raises(ConfigError, match="does not know the time zone 'Mars/Olympus'"):
        tzinfo_of("Mars/Olympus")
