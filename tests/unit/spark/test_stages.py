from pathlib import Path

import pytest

from weirflow.errors import UnsupportedError
from weirflow.spark.frames.plan_text import PlanNode, parse_plan
from weirflow.spark.frames.stages import Stage, StageKind, cut, partition_sources, render

PLANS = {path.stem: path for path in (Path(__file__).parent / "plans").glob("*.txt") if ".stages" not in path.name}
"""Printed by Spark 4.1.3 with four shuffle partitions; ``X.stages.txt`` is what ``X.txt`` is cut into."""


@pytest.mark.parametrize("name", sorted(PLANS))
def test_plan_is_cut_into_stages(name):
    assert render(cut(PLANS[name].read_text())) + "\n" == PLANS[name].with_suffix(".stages.txt").read_text()


@pytest.mark.parametrize("name", sorted(PLANS))
def test_stages_are_numbered_before_what_they_read(name):
    stages = cut(PLANS[name].read_text())
    assert [stage.number for stage in stages] == list(range(len(stages)))
    assert all(child > stage.number for stage in stages for child in stage.children)
    assert {child for stage in stages for child in stage.children} == set(range(1, len(stages)))


def test_known_leaf_partitions_fill_the_gaps():
    stages = cut(PLANS["join"].read_text(), leaf_partitions=[2, 3])
    assert [(stage.kind, stage.partitions, stage.children) for stage in stages] == [
        (StageKind.RESULT, 4, (1, 2)),
        (StageKind.SHUFFLE, 2, ()),
        (StageKind.SHUFFLE, 3, ()),
    ]


def test_leaf_partitions_of_another_plan_are_ignored():
    assert cut(PLANS["join"].read_text(), leaf_partitions=[2]) == cut(PLANS["join"].read_text())


def test_adaptive_reads_and_unions_are_asked_for_before_what_they_read():
    root = parse_plan(PLANS["join_final"].read_text())
    assert [node.name for node in partition_sources(root)] == [
        "AQEShuffleRead",
        "Scan",
        "AQEShuffleRead",
        "Scan",
    ]
    assert [stage.partitions for stage in cut(PLANS["join_final"].read_text(), [1, 2, 1, 3])] == [1, 2, 3]


LINED_UP = """\
Union
:- Exchange hashpartitioning(a#1, 4), ENSURE_REQUIREMENTS, [plan_id=1]
:  +- Range (0, 9, step=1, splits=2)
+- Exchange hashpartitioning(b#2, 4), ENSURE_REQUIREMENTS, [plan_id=2]
   +- Range (0, 9, step=1, splits=3)
"""


@pytest.mark.parametrize(("known", "partitions"), [(None, None), (0, 8), (4, 4)])
def test_union_of_inputs_that_may_be_partitioned_alike(known, partitions):
    assert cut(LINED_UP, [known, None, None])[0].partitions == partitions


@pytest.mark.parametrize(
    ("operator", "partitions"),
    [
        ("Coalesce 1", 1),
        ("Coalesce 2", 2),
        ("Coalesce 9", 3),
        ("BroadcastNestedLoopJoin BuildRight, LeftOuter", 3),
        ("BroadcastNestedLoopJoin BuildRight, FullOuter", None),
        ("MapInArrow f(id#1), [id#2], false", 3),
    ],
)
def test_partitions_of_an_operator_over_three(operator, partitions):
    assert cut(f"{operator}\n+- Range (0, 9, step=1, splits=3)")[0].partitions == partitions


def test_joined_inputs_that_disagree_are_unknown():
    ranges = ":- Range (0, 9, step=1, splits=3)\n+- Range (0, 9, step=1, splits=2)"
    assert cut(f"SortMergeJoin [a#1], [b#2], Inner\n{ranges}")[0].partitions is None


@pytest.mark.parametrize("limit", ["TakeOrderedAndProject(limit=5)", "CollectLimit 5"])
def test_limit_over_one_partition_exchanges_nothing(limit):
    text = f"Project [a#1]\n+- {limit}\n   +- Range (0, 9, step=1, splits=%d)"
    assert [stage.partitions for stage in cut(text % 1)] == [1]
    assert [stage.partitions for stage in cut(text % 3)] == [1, 3]


def test_reused_exchange_of_which_only_the_reuse_is_printed():
    (result, read) = cut("ReusedExchange [k#2], Exchange hashpartitioning(k#1, 4), ENSURE_REQUIREMENTS, [plan_id=7]")
    assert result == Stage(0, 4, PlanNode("ExchangeRead: stage=1, hashpartitioning(k, 4)"), (1,), StageKind.RESULT)
    assert (read.partitions, read.root) == (
        None,
        PlanNode("Exchange hashpartitioning(k, 4), ENSURE_REQUIREMENTS"),
    )


@pytest.mark.parametrize("text", ["", "\n\n", "== Physical Plan ==\n\n"])
def test_no_plan_has_no_stages(text):
    assert cut(text) == ()
    assert render(()) == ""


def test_lines_that_fit_nowhere_are_kept():
    assert parse_plan("Project [a\n+- Nonsense]\n+- Range (0)") == PlanNode(
        "Project [a", (PlanNode("Nonsense]"), PlanNode("+- Range (0)"))
    )


@pytest.mark.parametrize(
    "text",
    [
        "AdaptiveSparkPlan isFinalPlan=true\n+- == Final Plan ==",
        "AdaptiveSparkPlan isFinalPlan=true\n+- == Initial Plan ==\n   Range (0)",
        "AdaptiveSparkPlan isFinalPlan=true",
        "Exchange",
        "Exchange hashpartitioning(",
        "java.lang.IllegalStateException: no plan\n\tat org.example.Planner",
        "... 812 more characters",
        "+- +- +-",
    ],
)
def test_broken_text_still_prints(text):
    assert render(cut(text)).startswith("===============Stage 0 (partitions=?)===============\n")


def test_deep_plans_are_cut():
    depth = 400
    text = "\n".join("   " * level + "+- Filter (a#1 > 1)" for level in range(depth))
    assert render(cut(text.removeprefix("+- "))).count("Filter (a > 1)") == depth


def test_plans_too_deep_to_cut_are_refused():
    text = "\n".join("   " * level + "+- Filter (a#1 > 1)" for level in range(1200))
    with pytest.raises(UnsupportedError, match="nested too deeply"):
        cut(text.removeprefix("+- "))
