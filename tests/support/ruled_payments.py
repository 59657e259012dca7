"""A function with a broadcast input, state, timers and side outputs; random batches, and what it should give."""

from __future__ import annotations

import random
from collections import Counter
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from weirflow.process import ProcessFunction, ProcessRunner
from weirflow.state import StateDescriptor

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

START = datetime(2026, 1, 1, tzinfo=UTC)
PAYMENTS = pa.schema({"account": pa.string(), "at": pa.timestamp("us", "UTC"), "amount": pa.int64()})
RULES = pa.schema({"rule": pa.string(), "most": pa.int64()})
KEY = "account"
EVENT_TIME = "at"
_SECOND = 1000

Rows = list[dict[str, Any]]
Batch = tuple[Rows, Rows]
"""Payments, and the rules that are broadcast."""


def ruled_payments() -> ProcessFunction:
    """The function; made here so that Spark's workers, which cannot import this module, get it by value."""

    class RuledPayments(ProcessFunction):
        output = "account STRING, amount BIGINT, rules STRING, seen BIGINT, at BIGINT, watermark BIGINT"
        side_outputs = {  # noqa: RUF012 - as users write it
            "quiet": "account STRING, at BIGINT, rules STRING, first STRING",
            "late": "account STRING, at TIMESTAMP, amount BIGINT",
        }

        def open(self, ctx: Any) -> None:
            self.rules = ctx.broadcast(StateDescriptor("rules", None, dict[str, int]))
            self.history = ctx.broadcast(StateDescriptor("history", None, dict[int, str]))
            self.seen = ctx.value(StateDescriptor("seen", str, int))

        def on_broadcast(self, ctx: Any, row: Any) -> None:
            # What is stored depends on the order, on what was stored before, and on the time.
            told = f"{row['rule']} {row['most']} {ctx.watermark}"
            self.history.put(len(list(self.history.keys())) % 4, told)
            if row["most"] is None:
                self.rules.remove(row["rule"])
            elif row["rule"] == "none":
                self.rules.clear()
            else:
                self.rules.put(row["rule"], self.rules.get(row["rule"], 0) * 3 + row["most"])

        def on_element(self, ctx: Any, key: str, row: Any) -> None:
            self.seen.set(self.seen.get(0) + 1)
            told = {"account": key, "amount": row["amount"], "rules": self._rules(), "seen": self.seen.get()}
            ctx.emit({**told, "at": ctx.timestamp, "watermark": ctx.watermark})
            # The second one is for the past, so that it fires at once.
            ctx.timers.register(ctx.timestamp + 3 * _SECOND)
            ctx.timers.register(ctx.timestamp - 60 * _SECOND)

        def on_timer(self, ctx: Any, key: str, ts: int, kind: str) -> None:  # noqa: ARG002 - the contract
            first = next(iter(self.rules.keys()), None)
            ctx.side("quiet", {"account": key, "at": ts, "rules": self._rules(), "first": first})

        def _rules(self) -> str:
            some = dict(self.rules.items("b", "d"))
            return f"{dict(self.rules.items())} {some} {self.history.get(0)} {'a' in self.rules}"

    return RuledPayments()


def random_batches(seed: int, batches: int = 5, rows: int = 12, accounts: int = 6) -> list[Batch]:
    """Batches of payments that mostly advance, and rules; the last payment is far behind all, so that timers fire."""
    choice = random.Random(seed)
    made, now = [], 100
    for number in range(batches):
        payments: Rows = []
        for _ in range(0 if number == 2 else rows):
            now += choice.choice([0, 0, 1, 2])
            at = START + timedelta(seconds=now - choice.choice([0, 0, 0, 1, 9]))
            payments.append({"account": f"a{choice.randrange(accounts)}", "at": at, "amount": choice.randrange(9)})
        rules = [
            {"rule": choice.choice(["a", "b", "c", "d", "none"]), "most": choice.choice([None, 1, 2, 3, 4])}
            for _ in range(choice.choice([0, 1, 4, 7]) if number != 2 else 3)
        ]
        made.append((payments, rules))
    end = {"account": "last", "at": START + timedelta(hours=1), "amount": 1}
    return [*made, ([end], [{"rule": "e", "most": 5}]), ([], [{"rule": "f", "most": 6}])]


def embedded(function: ProcessFunction, batches: Iterable[Batch], **options: Any) -> list[dict[str, Rows]]:
    """What each output gets of each batch, without the end of the input."""
    found = []
    with ProcessRunner(function, key=KEY, event_time=EVENT_TIME, **options) as runner:
        for payments, rules in batches:
            result = runner.run(payments, broadcast=rules)
            sides = {tag: table.to_pylist() for tag, table in result.sides.items()}
            found.append({"output": result.rows.to_pylist(), **sides})
    return found


def together(batches: Sequence[dict[str, Rows]]) -> dict[str, Rows]:
    """What each output gets of all batches."""
    found: dict[str, Rows] = {}
    for batch in batches:
        for tag, rows in batch.items():
            found.setdefault(tag, []).extend(rows)
    return found


def multisets(found: dict[str, Rows]) -> dict[str, Counter[str]]:
    """The rows of each output as they can be compared: without an order, and without zones."""
    return {
        tag: Counter(repr({name: _plain(one) for name, one in row.items()}) for row in rows)
        for tag, rows in found.items()
    }


def _plain(value: Any) -> Any:
    return value.timestamp() if isinstance(value, datetime) else value
