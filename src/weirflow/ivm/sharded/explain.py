"""The stages of a partitioned flow as text."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

from weirflow.ivm.sharded.plan.routes import Exchange, ToAll, ToOne

if TYPE_CHECKING:
    from weirflow.ivm.sharded.plan.spread import Spread
    from weirflow.ivm.sharded.worker.reports import ShardReport


def explain_stages(
    spread: Spread, reports: Sequence[ShardReport], recomputed: Collection[str] = (), only: str | None = None
) -> str:
    """Each stage with its operators; below, the shards of the last job: where they ran, and for how long.

    Views that are ``recomputed`` come into the circuit as sources do. With ``only``, the operators that one relation
    rests on.
    """
    wanted = spread.beneath(only) if only is not None else set(range(len(spread.nodes)))
    lines: list[str] = []
    names: dict[int, list[str]] = {}
    for name, number in spread.relations.items():
        names.setdefault(number, []).append(name)
    for stage in sorted({spread.stages[number] for number in wanted}):
        lines.append(f"stage {stage}")
        for number, node in enumerate(spread.nodes):
            if spread.stages[number] != stage or number not in wanted:
                continue
            reads = f" of {', '.join(f'#{one}' for one in node.inputs)}" if node.inputs else ""
            made = f" -> {', '.join(names[number])}" if number in names else ""
            where = _sent(node.operator) if isinstance(node.operator, Exchange) else str(spread.partitionings[number])
            diff = any(name in recomputed for name in names.get(number, ()))
            label = "recomputed and compared" if diff else node.label
            lines.append(f"  #{number} {label}{reads}, {where}{made}")
        for report in sorted((one for one in reports if one.stage == stage), key=lambda one: one.shard):
            state = "warm" if report.warm else "cold"
            lines.append(
                f"  shard {report.shard} on {report.where}: {report.rows:,} rows kept, {state}, "
                f"load {report.load_ms:.1f} ms, step {report.step_ms:.1f} ms, save {report.save_ms:.1f} ms"
            )
    return "\n".join(lines)


def _sent(exchange: Exchange) -> str:
    if isinstance(exchange.route, ToOne):
        return "to one shard"
    return "to every shard" if isinstance(exchange.route, ToAll) else f"by {len(exchange.route.keys)} keys"
