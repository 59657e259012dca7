"""Random regular expressions and LIKE patterns over random texts give what Spark, that is Java, gives."""

# ruff: noqa: E501 - tables of values read better in long lines
from __future__ import annotations

import random
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from support.expression_catalogue import sql_text
from support.exprs import BOOLEAN, INT, STRING, array_of, call, lit

from weirflow.ivm.kernel.expressions import compile_expression
from weirflow.ivm.kernel.expressions.registry import UnknownFunction
from weirflow.ivm.kernel.expressions.strings import regex
from weirflow.sql.expr import Column

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from weirflow import Session
    from weirflow.sql.expr import Expr

S, P = Column(0, "s", STRING), Column(1, "p", STRING)
LETTERS = ["a", "b", "A", "1", "é", "\u212a", "😀", " ", "&"]
LINE_ENDS = ["\n", "\r", "\r\n", "\u0085", "\u2028", "\u2029"]
ATOMS = ["a", "b", "A", "1", "é", "😀", ".", "\\d", "\\W", "\\s", "\\S", "[ab]", "[^a]", "[^\\d\\s]", "\\r", "\\n", "[\\r\\n]", "[a-é]", "\\.", "[^&]", "[a&1]", "[&-a]"]  # fmt: skip
QUANTIFIERS = ["*", "+", "?", "*?", "+?", "??", "{2}", "{1,2}", "{2,}", "{1,3}?"]
PER_QUERY = 60


@pytest.fixture
def spark(session: Session) -> SparkSession:
    return session.spark


def test_some_expressions(spark: SparkSession) -> None:
    assert compared(spark, random.Random(1), expressions=25, texts=80) == []


def test_some_expressions_one_text_after_the_other(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(regex, "_SHORT", -1)
    assert compared(spark, random.Random(2), expressions=15, texts=80) == []


@pytest.mark.campaign
@pytest.mark.parametrize("seed", range(3, 13))
def test_many_expressions(spark: SparkSession, seed: int) -> None:
    assert compared(spark, random.Random(seed), expressions=200, texts=200) == []


def compared(spark: SparkSession, chance: random.Random, *, expressions: int, texts: int) -> list[str]:
    """Where our values differ from Spark's."""
    rows = [some_text(chance) for _ in range(texts)]
    likes = [some_pattern(chance) for _ in range(texts)]
    cases = [("s like p", call("like", BOOLEAN, S, P, lit("\\", STRING)))]
    cases += [
        (f"substring_index(s, {sql_text(part)}, {count})",
         call("substring_index", STRING, S, lit(part, STRING), lit(count, INT)))
        for part in ("a", "aa", "\n") for count in (1, 2, 3, -1, -2, -3)
    ]  # fmt: skip
    cases += [
        (f"s like {sql_text(pattern)}", call("like", BOOLEAN, S, lit(pattern, STRING), lit("\\", STRING)))
        for pattern in likes[:expressions]
    ]
    taken = 0
    while taken < expressions:
        some = _cases(some_expression(chance))
        known = [(sql, expr) for sql, expr in some if _is_known(expr)]
        taken += bool(known)
        cases += known
    columns = [pa.array(rows, STRING), pa.array(likes, STRING)]
    numbered = pa.table([pa.array(range(texts), pa.int64()), *columns], names=["id", "s", "p"])
    frame = spark.createDataFrame(numbered).cache()
    found = []
    for start in range(0, len(cases), PER_QUERY):
        chunk = cases[start : start + PER_QUERY]
        selected = [f"{sql} as c{index}" for index, (sql, _) in enumerate(chunk)]
        theirs = frame.selectExpr("id", *selected).toArrow().sort_by("id")
        for index, (sql, expr) in enumerate(chunk):
            ours = compile_expression(expr)(columns, texts).to_pylist()
            pairs = zip(rows, likes, ours, theirs[f"c{index}"].to_pylist(), strict=True)
            found += [
                f"{sql} of {pair[:2]!r}: ours {pair[2]!r}, Spark's {pair[3]!r}" for pair in pairs if pair[2] != pair[3]
            ]
    frame.unpersist()
    return found


def _cases(expression: str) -> list[tuple[str, Expr]]:
    quoted, constant = sql_text(expression).replace("\r", "\\r"), lit(expression, STRING)
    return [
        (f"s rlike {quoted}", call("rlike", BOOLEAN, S, constant)),
        *(
            (f"regexp_extract(s, {quoted}, {group})", call("regexp_extract", STRING, S, constant, lit(group, INT)))
            for group in (0, 1)
            if group <= expression.count("(") - expression.count("(?:") - expression.startswith("(?i)")
        ),
        (
            f"regexp_replace(s, {quoted}, '<$0>')",
            call("regexp_replace", STRING, S, constant, lit("<$0>", STRING), lit(1, INT)),
        ),
        *(
            (f"split(s, {quoted}, {limit})", call("split", array_of(STRING), S, constant, lit(limit, INT)))
            for limit in (-1, 2)
        ),
    ]


def _is_known(expr: Expr) -> bool:
    try:
        compile_expression(expr)
    except UnknownFunction:
        return False
    return True


def some_text(chance: random.Random) -> str:
    if chance.random() < 0.1:
        return "a" * chance.randrange(9)
    inner = "".join(chance.choice([*LETTERS, "a", "a", *LINE_ENDS]) for _ in range(chance.randrange(7)))
    return inner + chance.choice(["", "", "", *LINE_ENDS, "\r\n"])


def some_pattern(chance: random.Random) -> str:
    return "".join(chance.choice(["%", "_", "a", "b", "é", "😀", "\n", "\\%"]) for _ in range(chance.randrange(7)))


def some_expression(chance: random.Random) -> str:
    front = chance.choice(["", "", "", "(?i)"])
    return front + _alternatives(chance, 2, last=True)


def _alternatives(chance: random.Random, depth: int, *, last: bool) -> str:
    return "|".join(_branch(chance, depth, last=last) for _ in range(chance.choice([1, 1, 2])))


def _branch(chance: random.Random, depth: int, *, last: bool) -> str:
    count = chance.randrange(1, 4)
    pieces = [_piece(chance, depth, last=last and number == count - 1) for number in range(count)]
    start = chance.choice(["", "", "", "^"])
    return start + "".join(pieces) + (chance.choice(["", "$"]) if last else "")


def _piece(chance: random.Random, depth: int, *, last: bool) -> str:
    if depth and chance.random() < 0.3:
        text = chance.choice(["(", "(?:"]) + _alternatives(chance, depth - 1, last=last) + ")"
    else:
        text = chance.choice(ATOMS)
    return text + chance.choice(["", "", *QUANTIFIERS])
