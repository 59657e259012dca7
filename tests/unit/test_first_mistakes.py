"""What newcomers get wrong is answered by what they meant; and what a hint says to write can be written."""

import re

import pytest

from weirflow import IncrementalFlow, Session
from weirflow.cli.checks import Verdict, machine_checks
from weirflow.config import Settings
from weirflow.errors import ConfigError, FlowError, SqlSyntaxError, TableNotFound, WeirflowError
from weirflow.flows.local import SessionFlow
from weirflow.flows.registry import require_options
from weirflow.flows.sharded import PartitionedIncrementalFlow
from weirflow.process import ProcessFunction, ProcessRunner
from weirflow.sql.type_names import FORMS, INSTEAD
from weirflow.sql.typing.type_syntax import parse_type_name
from weirflow.state import StateDescriptor

NO_TYPES = {
    "x TIME": "use TIMESTAMP_NTZ with a date, a number of seconds, or STRING",
    "x VARIANT": "use STRING with from_json or get_json_object in views, or columns of their own",
    "x INTT": "did you mean 'INT' or 'BIGINT'?",
    "x ARRAY": "write ARRAY<INT>: the type of its elements",
    "x MAP<INT>": "write MAP<STRING, INT>: a type for keys and one for values",
    "x BYTES": "use BINARY",
    "x VECTOR(3)": "use ARRAY<FLOAT>",
    "x INTERVAL": "write INTERVAL YEAR TO MONTH, or INTERVAL DAY TO SECOND",
    "x STRUCT<a: INTT>": "did you mean 'INT' or 'BIGINT'?",
}


@pytest.mark.parametrize("columns", NO_TYPES)
def test_a_type_that_is_none_says_what_is_meant(columns):
    with IncrementalFlow() as flow, pytest.raises(SqlSyntaxError) as refused:
        flow.register_source("t", columns)
    assert refused.value.hint == NO_TYPES[columns]


@pytest.mark.parametrize("hint", sorted({*INSTEAD.values(), *FORMS.values()}))
def test_a_type_that_a_hint_says_to_write_can_be_written(hint):
    named = re.findall(r"\b[A-Z][A-Z_]+(?:<[^>]*>|\([\d, ]+\)| YEAR TO MONTH| DAY TO SECOND)?", hint)
    for one in named:
        if one not in ("WKB", "WKT"):
            parse_type_name("STRUCT<a: INT>" if one == "STRUCT" else one)


def test_a_view_over_a_name_that_is_nearly_one_says_so():
    with IncrementalFlow() as flow:
        flow.register_source("orders", "id BIGINT")
        flow.register_view("v", "SELECT id FROM oders")
        with pytest.raises(FlowError) as refused:
            flow.snapshot("v")
    assert refused.value.hint.startswith("did you mean 'orders'?")


def test_relations_of_the_flow_itself_are_not_proposed():
    with IncrementalFlow(clock="manual") as flow:
        flow.register_source("t", "at TIMESTAMP")
        flow.register_view("v", "SELECT * FROM t WHERE at > now() - INTERVAL 1 HOUR")
        with pytest.raises(TableNotFound) as refused:
            flow.sql("SELECT * FROM zzzzzz")
    assert "the clock" not in refused.value.hint


@pytest.mark.parametrize(
    ("kind", "option", "hint"),
    [
        (SessionFlow, "partions", "did you mean 'partitions'?"),
        (SessionFlow, "lease_seconds", "flows in shards have it"),
        (SessionFlow, "fsynk", "did you mean 'fsync'?"),
        (PartitionedIncrementalFlow, "spread_polcy", "did you mean 'spread_policy'?"),
        (PartitionedIncrementalFlow, "fsync", "flows in this process have it"),
    ],
)
def test_an_option_that_flows_do_not_have_is_refused_with_the_nearest(kind, option, hint):
    with pytest.raises(ConfigError) as refused:
        require_options("shop", kind, [option])
    assert refused.value.hint == hint


@pytest.mark.parametrize("kind", [SessionFlow, PartitionedIncrementalFlow])
def test_options_that_flows_have_are_taken(kind):
    require_options("shop", kind, ["clock", "clock_every", "history", "path", "registry"])


@pytest.mark.parametrize(
    ("settings", "hint"),
    [
        ({"placement": "embeded"}, "did you mean 'embedded'?"),
        ({"durability_profile": "dev-locl"}, "did you mean 'dev-local'?"),
        ({"corse": 2}, "did you mean 'cores'?"),
    ],
)
def test_settings_say_what_is_meant(settings, hint):
    with pytest.raises(ConfigError) as refused:
        Session(**settings)
    assert refused.value.hint == hint


def test_a_slot_of_another_value_type_is_refused_when_it_is_declared(tmp_path):
    def function(kind):
        class Last(ProcessFunction):
            output = "user STRING"

            def open(self, ctx):
                self.last = ctx.value(StateDescriptor("last", key=str, value=kind))

            def on_element(self, ctx, key, row):  # noqa: ARG002 - a function's signature
                self.last.set(kind(1))

        return Last()

    with ProcessRunner(function(int), key="user", backend=str(tmp_path)) as runner:
        runner.run([{"user": "ann"}])
    with pytest.raises(WeirflowError, match="holds values of type int, and is declared with str"):
        ProcessRunner(function(str), key="user", backend=str(tmp_path))
    with ProcessRunner(function(int), key="user", backend=str(tmp_path)) as runner:
        runner.run([{"user": "ann"}])


def test_doctor_looks_at_the_ports_and_folders_of_a_server(monkeypatch, tmp_path):
    monkeypatch.setenv("WEIRFLOW_SERVER_SPOOL", str(tmp_path / "spool"))
    monkeypatch.setenv("WEIRFLOW_SERVER_HTTP", "127.0.0.1:0")
    monkeypatch.setenv("WEIRFLOW_SERVER_FLIGHT", "192.0.2.1:8815")  # no address of this machine
    found = {check.name: check for check in machine_checks(Settings())}
    assert found["Server's HTTP"].verdict is Verdict.OK
    assert found["Server's Flight"].verdict is Verdict.OPTIONAL
    assert "--flight" in found["Server's Flight"].advice
    assert found["Server's spool"].verdict is Verdict.OK
