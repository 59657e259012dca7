"""A function of two inputs that uses state, timers and side outputs, random batches for it, and what it should give."""

from __future__ import annotations

import operator
import random
from collections import Counter
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from weirflow.process import CoProcessFunction, run_co_process
from weirflow.state import StateDescriptor

if TYPE_CHECKING:
    from collections.abc import Iterable

START = datetime(2026, 1, 1, tzinfo=UTC)
ORDERS = pa.schema({"customer": pa.int64(), "at": pa.timestamp("us", "UTC"), "amount": pa.int64()})
VISITS = pa.schema({"id": pa.int64(), "page": pa.string(), "since": pa.timestamp("us", "UTC")})
KEY = ("customer", "id")
EVENT_TIME = ("at", "since")
_SECOND = 1000


def orders_and_visits() -> CoProcessFunction:
    """The function; made here so that Spark's workers, which cannot import this module, get it by value."""

    class OrdersAndVisits(CoProcessFunction):
        output = "who BIGINT, what STRING, amount BIGINT, pages ARRAY<STRING>, at BIGINT, watermark BIGINT"
        side_outputs = {  # noqa: RUF012 - as users write it
            "quiet": "who BIGINT, at BIGINT, watermark BIGINT, total BIGINT",
            "late": "customer BIGINT, at TIMESTAMP, amount BIGINT, id BIGINT, page STRING, since TIMESTAMP",
        }

        def open(self, ctx: Any) -> None:
            self.pages = ctx.list(StateDescriptor("pages", int, list[str]))
            self.total = ctx.reducing(StateDescriptor("total", int, int), operator.add)
            self.quiet = ctx.value(StateDescriptor("quiet", int, int))

        def on_left(self, ctx: Any, key: int, row: Any) -> None:
            self.total.add(row["amount"])
            self._put(ctx, key, "order", row["amount"])
            self._wait(ctx)

        def on_right(self, ctx: Any, key: int, row: Any) -> None:
            self.pages.add(row["page"])
            self._put(ctx, key, "visit", None)
            if row["page"] == "exit":
                self.pages.clear()
            self._wait(ctx)

        def on_timer(self, ctx: Any, key: int, ts: int, kind: str) -> None:  # noqa: ARG002 - the contract
            told = {"who": key, "at": ts, "watermark": ctx.watermark}
            ctx.side("quiet", {**told, "total": self.total.get()})
            self.quiet.clear()
            self.total.clear()

        def _put(self, ctx: Any, key: int, what: str, amount: int | None) -> None:
            told = {"who": key, "what": what, "amount": amount, "pages": self.pages.get()}
            ctx.emit({**told, "at": ctx.timestamp, "watermark": ctx.watermark})

        def _wait(self, ctx: Any) -> None:
            if self.quiet.get() is not None:
                ctx.timers.delete(self.quiet.get())
            self.quiet.set(ctx.timestamp + 5 * _SECOND)
            ctx.timers.register(self.quiet.get())

    return OrdersAndVisits()


def random_pairs(
    seed: int, batches: int = 4, rows: int = 12
) -> list[tuple[list[dict[str, Any]], list[dict[str, Any]]]]:
    """Batches of orders and visits that mostly advance; the last are far behind all others, so that timers fire."""
    choice = random.Random(seed)
    made, now = [], 10
    for _ in range(batches):
        lefts: list[dict[str, Any]] = []
        rights: list[dict[str, Any]] = []
        for _ in range(rows):
            now += choice.choice([0, 0, 1, 2])
            time = START + timedelta(seconds=now - choice.choice([0, 0, 0, 1, 9]))
            who = choice.randrange(4)
            if choice.random() < 0.5:
                lefts.append({"customer": who, "at": time, "amount": choice.randrange(9)})
            else:
                rights.append({"id": who, "page": choice.choice(["home", "cart", "exit"]), "since": time})
        made.append((lefts, rights))
    end = START + timedelta(hours=1)
    return [*made, ([{"customer": 99, "at": end, "amount": 1}], [{"id": 99, "page": "home", "since": end}])]


def embedded(function: CoProcessFunction, batches: Iterable[Any], **options: Any) -> dict[str, list[dict[str, Any]]]:
    """What each output gets, over all batches, without the end of the input."""
    results = list(run_co_process(function, batches, finish=False, **options))
    found = {"output": [row for result in results for row in result.rows.to_pylist()]}
    for tag in function.side_outputs:
        found[tag] = [row for result in results for row in result.sides[tag].to_pylist()]
    return found


def multisets(found: dict[str, list[dict[str, Any]]]) -> dict[str, Counter[str]]:
    """The rows of each output as they can be compared: without an order, and without zones."""
    return {
        tag: Counter(repr({name: _plain(one) for name, one in row.items()}) for row in rows)
        for tag, rows in found.items()
    }


def _plain(value: Any) -> Any:
    return value.timestamp() if isinstance(value, datetime) else value
