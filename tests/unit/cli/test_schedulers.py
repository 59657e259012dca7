"""What schedulers run: the cron line of the docs and the DAG of Airflow in the examples, both as they are written."""

import re
import runpy
import shlex
import sys
from contextlib import nullcontext
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import ClassVar

import pytest
from typer.testing import CliRunner

from weirflow.cli.app import app

ROOT = Path(__file__).parents[3]
PAGE = ROOT / "docs" / "materialized-views.md"
DAG_FILE = ROOT / "examples" / "airflow" / "refresh_views.py"


class _Recorded(nullcontext):
    """Stands for a class of Airflow: remembers what it was made with."""

    made: ClassVar[dict[str, dict]] = {}

    def __init__(self, **given):
        super().__init__(self)
        self.made[next(iter(given.values()))] = given


def cron_line():
    return re.search(r"^\*/10 \* \* \* \*  (weirflow .*)$", PAGE.read_text(), re.MULTILINE).group(1)


def airflow_command(monkeypatch):
    for name in ("airflow", "airflow.providers", "airflow.providers.standard", "airflow.providers.standard.operators"):
        monkeypatch.setitem(sys.modules, name, ModuleType(name))
    operators, sdk = ModuleType("bash"), ModuleType("sdk")
    operators.BashOperator = sdk.DAG = _Recorded
    monkeypatch.setitem(sys.modules, "airflow.providers.standard.operators.bash", operators)
    monkeypatch.setitem(sys.modules, "airflow.sdk", sdk)
    runpy.run_path(str(DAG_FILE))
    assert _Recorded.made["refresh_gold"]["max_active_runs"] == 1
    return _Recorded.made["refresh"]["bash_command"]


@pytest.mark.parametrize("scheduler", ["cron", "airflow"])
def test_the_command_of_a_scheduler_refreshes_the_views_of_the_schema(scheduler, monkeypatch):
    line = cron_line() if scheduler == "cron" else airflow_command(monkeypatch)
    program, *arguments = shlex.split(line.split(">>")[0])
    asked = []
    monkeypatch.setattr("weirflow.materialized.opened.views_in", lambda _session, schema: asked.append(schema) or [])
    monkeypatch.setattr("weirflow.materialized.together.refresh_together", lambda *_args, **_options: [])
    command = SimpleNamespace(run=lambda _text, work: work(), session=None)
    packages = []

    def opened(options):
        packages.extend(options.package)
        return nullcontext(command)

    monkeypatch.setattr("weirflow.cli.refresh.opened", opened)
    result = CliRunner().invoke(app, arguments)
    assert (program, result.exit_code, result.stdout) == ("weirflow", 0, '{"views": []}\n')
    assert (asked, packages) == (["lake.gold"], ["iceberg"])
