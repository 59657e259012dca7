"""``weirflow explain``: how Spark would run a query, without running it."""

import json
from typing import TYPE_CHECKING, Annotated, Any

import typer

from weirflow.cli.failures import reported
from weirflow.cli.options import QueryOptions, ReportOptions, SessionOptions
from weirflow.cli.output import Stdout
from weirflow.cli.running import opened
from weirflow.cli.tables import check_tables, parse_tables, register_tables
from weirflow.sql.statements.kinds import refuse_commands
from weirflow.types import ExplainMode

if TYPE_CHECKING:
    from weirflow.session import Session
    from weirflow.spark.frames.plan_text import PlanNode


def explain(
    *,
    query: QueryOptions,
    mode: Annotated[
        ExplainMode,
        typer.Option("--mode", help="Show the logical plans, the physical plan, or the stages that it consists of."),
    ] = ExplainMode.PHYSICAL,
    report: ReportOptions,
    session: SessionOptions,
) -> None:
    r"""Show how Spark would run a query, without running it.

    [bold]Examples[/bold]

      weirflow explain "SELECT count(*) FROM range(1000)"

      weirflow explain --mode stages -t orders=orders.csv -t people=people.parquet \
        "SELECT name, sum(amount) FROM orders JOIN people USING (id) GROUP BY name"
    """
    with reported(report) as statement:
        statement.sql = query.text()
        refuse_commands(statement.sql)  # before Spark is started
        params, tables = query.params(), parse_tables(query.table)
        with opened(session) as command:
            check_tables(command.session, tables)

            def work() -> dict[str, Any]:
                register_tables(command.session, tables)
                return _explained(command.session, statement.sql, params, mode)

            explained = command.run(statement.sql, work)
        text = json.dumps(explained, ensure_ascii=False) if report.json else explained["plan"]
        stdout = Stdout()
        stdout.write(f"{text}\n")
        stdout.flush()


def _explained(session: "Session", sql: str, params: dict[str, Any] | None, mode: ExplainMode) -> dict[str, Any]:
    if mode is not ExplainMode.STAGES:
        return {"mode": mode, "plan": session.explain(sql, mode, params)}
    stages = session.stages(sql, params)
    from weirflow.spark.frames.stages import render  # noqa: PLC0415 - imports pyspark, which is loaded by now

    described = [
        {
            "number": stage.number,
            "partitions": stage.partitions,
            "kind": stage.kind,
            "children": stage.children,
            "operators": _operators(stage.root),
        }
        for stage in stages
    ]
    return {"mode": mode, "plan": render(stages), "stages": described}


def _operators(node: "PlanNode") -> list[str]:
    """The stage's operators, each before what it reads."""
    return [node.text, *(text for child in node.children for text in _operators(child))]
