"""Every function that Spark lists, each in one view: how a flow maintains it, with a Session and without.

The calls are Spark's own examples, with columns in the place of constants wherever Spark takes columns there, or in the
place of the first one alone, if only then the kernel computes it: formats and the like are constants for it. The table
is written by ``scripts/function_support.py``; tests check that it is true and whole.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from support.spark_engine import spark_engine

from weirflow.errors import WeirflowError
from weirflow.ivm.compiler.program import Program
from weirflow.ivm.compiler.resolve import resolved
from weirflow.ivm.compiler.view import View
from weirflow.spark.frames.arrow import empty_relation
from weirflow.sql.foreign import foreign_calls
from weirflow.sql.typing.type_syntax import parse_ddl

if TYPE_CHECKING:
    from weirflow import Session
    from weirflow.flows.recompute import SparkRecompute

TABLE = Path(__file__).with_name("spark_functions.json")
MOST = 6
COLUMNS = [("f", "STRING"), *((f"s{at}", "STRING") for at in range(MOST)), *((f"i{at}", "INT") for at in range(MOST))]
SOURCES = {"args": parse_ddl(", ".join(f"{name} {kind}" for name, kind in COLUMNS))}
INCREMENTAL, SPARK, RECOMPUTED, REFUSED = "incremental", "Spark on the delta", "recomputed", "refused"
ABSENT = "turned off, or in a package"
"""Of functions whose own examples Spark does not run."""
SHORT_LIST = frozenset({"current_time", "make_interval", "make_ym_interval", "try_make_interval"})
"""What gives columns that no view has: times of day, intervals."""

_TYPED = r"(?:\b(?:DATE|TIMESTAMP|TIMESTAMP_NTZ|TIMESTAMP_LTZ|TIME|INTERVAL|X|R)\s*)"
_CONSTANT = re.compile(rf"{_TYPED}'[^']*'(?:\s+\w+)?|'(?:[^'\\]|\\.)*'|(?<![\w.'])\d+(?![\w.'])", re.IGNORECASE)
_CASTS = "bigint binary boolean date decimal double float int smallint string timestamp tinyint"
_CAST_FROM = {"boolean": "true", "date": "2024-02-29", "timestamp": "2024-02-29 01:02:03"}
_OWN = {
    **{name: (f"SELECT {name}(s0) AS x FROM args", {"s0": _CAST_FROM.get(name, "7")}) for name in _CASTS.split()},
    "!=": ("SELECT i0 != i1 AS x FROM args", {"i0": 1, "i1": 2}),
    "<>": ("SELECT i0 <> i1 AS x FROM args", {"i0": 1, "i1": 2}),
    "||": ("SELECT s0 || s1 AS x FROM args", {"s0": "a", "s1": "b"}),
    "case": ("SELECT CASE WHEN i0 < i1 THEN s0 END AS x FROM args", {"i0": 1, "i1": 2, "s0": "a"}),
}
_GROUPED = {
    "cube": "SELECT f, count(*) AS n FROM args GROUP BY cube(f)",
    "rollup": "SELECT f, count(*) AS n FROM args GROUP BY rollup(f)",
    "grouping": "SELECT f, grouping(f) AS g FROM args GROUP BY cube(f)",
    "grouping_id": "SELECT f, grouping_id() AS g FROM args GROUP BY cube(f)",
}
Entry = dict[str, Any]


def calls_of(native: Any) -> dict[str, list[Entry]]:
    """Examples of each function of a session, as SQL over ``args``, each with the row there that it is for."""
    empty_relation(native, SOURCES["args"]).createOrReplaceTempView("args")
    names = sorted(row[0].rpartition(".")[2] for row in native.sql("SHOW SYSTEM FUNCTIONS").collect())
    return {name: _examples(native, name) for name in names}


def _examples(native: Any, name: str) -> list[Entry]:
    """The first is the one with most columns; of the others, only those that have rows to be about."""
    if name in _GROUPED:
        return [{"sql": _GROUPED[name], "row": {}}]
    if name in _OWN:
        sql, row = _OWN[name]
        return [{"sql": sql, "row": row}]
    described = "\n".join(row[0] for row in native.sql(f"DESCRIBE FUNCTION EXTENDED `{name}`").collect())
    examples = [one.strip() for one in re.findall(r"> (SELECT .*?);\s*$", described, re.DOTALL | re.MULTILINE)]
    found: list[Entry] = []
    for example in examples:
        for sql, row in _variants(" ".join(example.split())):
            if (not found or row or "VALUES" in sql) and _is_accepted(native, sql):
                found.append({"sql": sql, "row": row})
    return found or [{"sql": None, "row": {}}]


def _variants(example: str) -> list[tuple[str, dict[str, Any]]]:
    """The example with columns for all constants, for the first, and for none."""
    if re.search(r"\bFROM\s+(?!'|\w+\(|TIMESTAMP|DATE|INTERVAL)[\w(]", example, re.IGNORECASE) and "VALUES" in example:
        return [(example, {})]
    found = [(_with_columns(example, limit), limit) for limit in (MOST, 1)]
    return [(f"{sql} FROM args", row) for (sql, row), _ in found if row] + [(f"{example} FROM args", {}), (example, {})]


def _with_columns(example: str, limit: int) -> tuple[str, dict[str, Any]]:
    row: dict[str, Any] = {}

    def column(found: re.Match[str]) -> str:
        text = found[0]
        kind = "s" if text.startswith("'") else "i" if text.isdigit() and int(text) < 1 << 31 else None
        place = sum(name.startswith(kind) for name in row) if kind else MOST
        if kind is None or len(row) >= limit or place >= MOST or (kind == "s" and "\\" in text):
            return text
        row[f"{kind}{place}"] = text[1:-1] if kind == "s" else int(text)
        return f"{kind}{place}"

    return _CONSTANT.sub(column, example), row


def _is_accepted(native: Any, sql: str) -> bool:
    try:
        native.sql(sql)
    except (PySparkException, Py4JJavaError):  # some fail within Spark
        return False
    return True


def found_kinds(session: Session, calls: dict[str, list[Entry]]) -> dict[str, Entry]:
    """An example of each function with how flows maintain it: the first that is incremental, or else the first."""
    engine = spark_engine(session)
    return {name: _found_kind(engine, entries) for name, entries in calls.items()}


def _found_kind(engine: SparkRecompute, entries: list[Entry]) -> Entry:
    kinds = ({**entry, **kind_of(engine, entry["sql"])} for entry in entries)
    first = next(kinds)
    best = next((one for one in (first, *kinds) if one["maintained"] == INCREMENTAL), first)
    return {**best, "without": kind_without(best["sql"])}


def kind_of(engine: SparkRecompute, sql: str | None) -> Entry:
    """How a view is maintained, and for what is not incremental the reason."""
    if sql is None:
        return {"maintained": ABSENT}
    program = Program(engine)
    for name, schema in SOURCES.items():
        program.add_source(name, schema)
    try:
        program.add_views(resolved(engine, SOURCES, {"view": View(named(sql))}, {"view"}))
    except WeirflowError as error:
        return {"maintained": REFUSED, "why": str(getattr(error, "reason", error.code))}
    view = program.relations["view"]
    if view.plan is None:
        return {"maintained": RECOMPUTED, "why": str(view.refusal.reason) if view.refusal else ""}
    return {"maintained": SPARK if foreign_calls(view.plan) else INCREMENTAL}


def kind_without(sql: str | None) -> str:
    """How a flow that has no Session maintains a view, or the code that it refuses it with."""
    if sql is None:
        return ABSENT
    program = Program()
    for name, schema in SOURCES.items():
        program.add_source(name, schema)
    try:
        program.add_views({"view": View(named(sql))})
    except WeirflowError as error:
        return str(getattr(error, "reason", error.code))
    return INCREMENTAL


def named(sql: str) -> str:
    """A query whose columns have names that differ, as a view's must."""
    return f"WITH q AS ({sql}) SELECT * FROM q"


def read_table() -> dict[str, Entry]:
    """The entries of all functions, by name."""
    found: dict[str, Entry] = json.loads(TABLE.read_text())
    return found


def dump(entries: dict[str, Entry]) -> str:
    """The table as JSON, a line for each function."""
    lines = [f"{json.dumps(name)}: {json.dumps(entry)}" for name, entry in entries.items()]
    return "{\n" + ",\n".join(lines) + "\n}\n"


def document(entries: dict[str, Entry]) -> str:
    """The page about Spark's functions in views."""
    counts = {kind: sum(one["maintained"] == kind for one in entries.values()) for kind in (INCREMENTAL, SPARK)}
    alone = sum(one["without"] == INCREMENTAL for one in entries.values())
    lines = [
        "# Spark's functions in views",
        "",
        f"This table has all {len(entries)} functions of Spark's `SHOW FUNCTIONS`. It shows how a view with each of",
        "them is kept up to date in mode `auto`, with a Session and without. `make docs-functions` writes this page,",
        "and the tests check it.",
        "",
        f"- **{INCREMENTAL}** ({counts[INCREMENTAL]} with a Session, {alone} without): Weirflow's own engine, the",
        "  kernel, computes it for arguments as in the example: columns, or constants where",
        "  [it accepts no columns](functions-in-views.md#what-depends-on-the-arguments).",
        f"- **{SPARK}** ({counts[SPARK]}): [Spark evaluates it for the rows of the delta](functions-in-views.md).",
        f"- **{RECOMPUTED}**: Spark runs the whole query again at each tick, for the reason that is given.",
        f"- **{REFUSED}**: the result is a column of a type that views do not have.",
        f"- **{ABSENT}**: this Spark does not run its own examples of the function.",
        "- A code such as `FUNCTION_NOT_PROVEN`: the view is refused with this code, because there is no Spark to ask.",
        "",
        "With other arguments, the same function may be maintained in another way. `explain` says how a view is",
        "maintained.",
        "",
        "| function | with a Session | without | example |",
        "|---|---|---|---|",
    ]
    for name, entry in entries.items():
        why = f": {entry['why']}" if entry.get("why") else ""
        example = "" if entry["sql"] is None else f"`{entry['sql']}`"
        without = entry["without"] if entry["without"] in (INCREMENTAL, ABSENT) else f"`{entry['without']}`"
        lines.append(f"| {_cell(f'`{name}`')} | {entry['maintained']}{why} | {without} | {_cell(example)} |")
    return "\n".join(lines) + "\n"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")
