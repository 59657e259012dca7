"""What ``Flow.explain`` prints."""

from __future__ import annotations

from typing import TYPE_CHECKING

from weirflow.sql.clock.reading import follows_clock
from weirflow.sql.foreign import PYTHON, SPARK, foreign_calls
from weirflow.sql.foreign import shown as shown_call
from weirflow.sql.settings import USUAL
from weirflow.stack import grows

if TYPE_CHECKING:
    from collections.abc import Mapping

    from weirflow.ivm.compiler.program import Program
    from weirflow.ivm.compiler.view import View
    from weirflow.sql.plan import Plan

_WHERE = {SPARK: "Spark on the delta", PYTHON: "this process' Python"}


def explain_view(program: Program, name: str, view: View | None = None) -> str:
    """A relation's mode and why, what of it Spark or Python evaluates, then its operators.

    What a view's SQL is read with is there if it is not what is usual. Each operator is below what reads it, with the
    state it keeps.
    An operator that several read is shown in full where it first comes up and by its number afterwards.
    """
    relation = program.relations[name]
    lines = [f"{name}: {mode_of(relation.kind)}"]
    if relation.refusal is not None:
        lines.append(f"  why: {relation.refusal.reason}: {relation.refusal.message}")
    lines += clock_lines(relation.plan)
    lines += [f"  {line}" for line in settings_lines(view)]
    if relation.plan is not None:
        lines += [
            f"  evaluated by {_WHERE[call.function]}: {shown_call(call)}" for call in foreign_calls(relation.plan)
        ]
    shown: set[int] = set()
    readers = [relation.node] if relation.store is None else [relation.store.node]

    @grows
    def show(number: int, depth: int) -> None:
        node = program.circuit.nodes[number]
        kept = "".join(f", {state.row_count:,} rows in {state.nbytes:,} bytes" for state in node.operator.states)
        again = " (see above)" if number in shown else node.operator.note + kept
        lines.append(f"{'  ' * depth}#{number} {node.label}{again}")
        if number not in shown:
            shown.add(number)
            for one in node.inputs:
                show(one, depth + 1)

    for number in readers:
        show(number, 1)
    return "\n".join(lines)


def clock_lines(plan: Plan | None) -> list[str]:
    """What there is to say, for people, of a view that follows the clock."""
    follows = plan is not None and follows_clock(plan)
    return ["  follows the clock: rows enter and leave it as time passes"] if follows else []


def settings_lines(view: View | None) -> list[str]:
    """What a view's SQL is read with, for people, if it is not what is usual."""
    return [] if view is None or view.read_with == USUAL else [f"read with: {view.read_with}"]


def waiting_lines(waiting: Mapping[str, str]) -> list[str]:
    """What there is to say of views that cannot be computed yet, given why."""
    return [f"{name}: waiting\n  why: {why}" for name, why in waiting.items()]


def mode_of(kind: str) -> str:
    """How a source or view of a kind is maintained, for people; see ``RelationInfo``."""
    return "diff-based: recomputed by Spark and compared" if kind == "diff" else kind
