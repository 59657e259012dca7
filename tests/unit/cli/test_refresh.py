"""What ``weirflow refresh`` prints and exits with, whatever became of the views."""

import json
from contextlib import nullcontext
from datetime import UTC, datetime
from types import SimpleNamespace

import pytest
from typer.testing import CliRunner

from weirflow.cli.app import app
from weirflow.errors import SinkConflict
from weirflow.materialized.history import Cost, RefreshRecord
from weirflow.materialized.note import SourceMark
from weirflow.materialized.together import Outcome

DONE = RefreshRecord(
    epoch=2,
    attempt="x",
    finished_at=datetime(2026, 1, 1, tzinfo=UTC),
    mode="incremental",
    code=None,
    why=None,
    version="7",
    sources={"lake.orders": SourceMark("a", "3")},
    source_rows=10,
    rows=4,
    estimate=None,
    cost=Cost(1.5),
)
GOOD = Outcome("lake.base", DONE)
BAD = Outcome("lake.totals", error=SinkConflict("Somebody else has written to it.", hint="refresh it again"))
LEFT_OUT = Outcome("lake.top", behind="lake.totals")


@pytest.fixture
def refreshed(monkeypatch):
    def run(outcomes, *arguments):
        command = SimpleNamespace(run=lambda _text, _work: outcomes, session=None)
        monkeypatch.setattr("weirflow.cli.refresh.opened", lambda _options: nullcontext(command))
        return CliRunner().invoke(app, ["refresh", "--all", *arguments])

    return run


def test_it_exits_with_0_if_all_are_up_to_date(refreshed):
    result = refreshed([GOOD])
    assert result.exit_code == 0
    assert [cell.strip() for cell in result.stdout.splitlines()[3].split("│")[1:-1]] == [
        "lake.base",
        "incremental",
        "4",
        "1.5",
        "",
    ]


def test_it_exits_with_1_if_one_is_not(refreshed):
    result = refreshed([GOOD, BAD, LEFT_OUT], "--json")
    good, bad, left_out = json.loads(result.stdout)["views"]
    assert result.exit_code == 1
    assert (good["refreshed"], good["record"]["sources"]) == (True, {"lake.orders": {"origin": "a", "version": "3"}})
    assert (bad["refreshed"], bad["error"]["code"]) == (False, "SINK_CONFLICT")
    assert (left_out["refreshed"], left_out["behind"]) == (False, "lake.totals")
    table = refreshed([BAD, LEFT_OUT]).stdout
    assert "[SINK_CONFLICT] Somebody else has written to it." in table
    assert "it reads lake.totals" in table
