"""Card fraud: a large payment within a minute of a small one, on the same account, is an alert.

Thieves try a stolen card with a small amount first. Run it with ``python examples/fraud.py``.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from weirflow.process import ProcessFunction, Row, run_process
from weirflow.state import StateDescriptor

if TYPE_CHECKING:
    from weirflow.process import ElementContext, OpenContext
    from weirflow.state.descriptors import TimeKind

SMALL, LARGE = 1.0, 500.0
MINUTE = 60_000

BATCHES = [
    [("ann", "12:00:00", 0.5), ("bob", "12:00:05", 700.0), ("ann", "12:00:20", 900.0)],
    [("bob", "12:00:30", 0.2), ("cid", "12:00:40", 0.9), ("bob", "12:01:10", 30.0)],
    [("bob", "12:02:35", 600.0)],
    [("cid", "12:01:00", 999.0), ("cid", "12:03:10", 800.0)],
]


class FraudDetector(ProcessFunction):
    """Remembers the last small payment of each account for a minute."""

    output = "account STRING, amount DOUBLE, seconds_after BIGINT"
    side_outputs = {  # noqa: RUF012 - declared once, never changed
        "harmless": "account STRING, amount DOUBLE",
        "late": "account STRING, at TIMESTAMP, amount DOUBLE",
    }

    def open(self, ctx: OpenContext) -> None:
        """Two values for each account: the small payment's time and amount."""
        self.tried_at = ctx.value(StateDescriptor("tried_at", key=str, value=int))
        self.tried = ctx.value(StateDescriptor("tried", key=str, value=float))

    def on_element(self, ctx: ElementContext, key: str, row: Row) -> None:
        """Alert on a large payment while a small one is remembered, and remember a small one."""
        assert ctx.timestamp is not None, "payments have a time"
        tried_at = self.tried_at.get()
        if tried_at is not None:
            ctx.timers.delete(tried_at + MINUTE)
            self._forget()
            if row["amount"] >= LARGE and ctx.timestamp <= tried_at + MINUTE:
                seconds = (ctx.timestamp - tried_at) // 1000
                ctx.emit({"account": key, "amount": row["amount"], "seconds_after": seconds})
        if row["amount"] <= SMALL:
            self.tried_at.set(ctx.timestamp)
            self.tried.set(row["amount"])
            ctx.timers.register(ctx.timestamp + MINUTE)

    def on_timer(self, ctx: ElementContext, key: str, ts: int, kind: TimeKind) -> None:  # noqa: ARG002 - the contract
        """A minute without another payment: the small one was harmless."""
        ctx.side("harmless", {"account": key, "amount": self.tried.get()})
        self._forget()

    def _forget(self) -> None:
        self.tried_at.clear()
        self.tried.clear()


def payments() -> list[list[dict[str, Any]]]:
    """A day's payments, in the batches in which they arrive."""
    return [
        [{"account": account, "at": _at(clock), "amount": amount} for account, clock, amount in batch]
        for batch in BATCHES
    ]


def _at(clock: str) -> datetime:
    return datetime.fromisoformat(f"2026-11-15T{clock}").replace(tzinfo=UTC)


def main() -> None:
    """Print what each batch puts out."""
    for number, result in enumerate(run_process(FraudDetector(), payments(), key="account", event_time="at"), 1):
        for row in result.rows.to_pylist():
            print(f"batch {number}: alert    {row}")
        for row in result.sides["harmless"].to_pylist():
            print(f"batch {number}: harmless {row}")
        for row in result.sides["late"].to_pylist():
            print(f"batch {number}: late     {row['account']} {row['at']:%H:%M:%S} {row['amount']}")


if __name__ == "__main__":
    main()
