"""A flow that is interrupted at every point of what it does, compared with the changes that it acknowledged."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from weirflow import DeltaBatch
from weirflow.ivm.flow import IncrementalFlow

if TYPE_CHECKING:
    from pathlib import Path

VIEWS = {
    "totals": "SELECT customer, SUM(amount) AS total, COUNT(*) AS orders FROM orders GROUP BY customer",
    "extremes": "SELECT customer, MIN(amount) AS least, COUNT(DISTINCT amount) AS kinds FROM orders GROUP BY customer",
    "top": "SELECT * FROM totals ORDER BY total DESC, customer LIMIT 2",
    "named": "SELECT c.name, o.amount FROM orders o JOIN customers c ON o.customer = c.id",
    "kinds": "SELECT DISTINCT amount FROM orders",
    "ranks": "SELECT customer, amount, ROW_NUMBER() OVER (PARTITION BY customer ORDER BY amount) AS rank FROM orders",
    "below": "WITH RECURSIVE r(n) AS (SELECT amount FROM orders UNION SELECT n - 1 FROM r WHERE n > 0) SELECT n FROM r",
}
Order = tuple[int, int]


def declare(flow: IncrementalFlow) -> None:
    """Sources and views of a small shop."""
    flow.register_source("orders", "customer BIGINT, amount BIGINT")
    flow.register_source("customers", "id BIGINT, name STRING", key="id")
    for name, sql in VIEWS.items():
        flow.register_view(name, sql)


def delta(inserted: list[Order], retracted: list[Order]) -> DeltaBatch:
    """A delta of orders."""
    rows = [(one, 1) for one in inserted] + [(one, -1) for one in retracted]
    return DeltaBatch.from_weighted(
        [{"customer": customer, "amount": amount, "_weight": weight} for (customer, amount), weight in rows]
    )


class Shop:
    """What the shop holds: by the changes that were acknowledged, and by the one that was interrupted or not.

    Attributes:
        orders: how often each order is there.
        names: of the customers, by id.
    """

    def __init__(self) -> None:
        self.orders: Counter[Order] = Counter()
        self.names: dict[int, str] = {}

    def copy(self) -> Shop:
        """Another shop that holds the same."""
        other = Shop()
        other.orders, other.names = Counter(self.orders), dict(self.names)
        return other

    def views(self) -> dict[str, Counter[tuple[Any, ...]]]:
        """The rows of each source and view, computed anew and in another way."""
        orders = Counter({one: count for one, count in self.orders.items() if count})
        by_customer: dict[int, list[int]] = {}
        for (customer, amount), count in orders.items():
            by_customer.setdefault(customer, []).extend([amount] * count)
        totals = [(customer, sum(own), len(own)) for customer, own in by_customer.items()]
        named: Counter[tuple[Any, ...]] = Counter()
        for (customer, amount), count in orders.items():
            if customer in self.names:
                named[self.names[customer], amount] += count
        return {
            "orders": orders,
            "customers": Counter(self.names.items()),
            "totals": Counter(totals),
            "extremes": Counter((customer, min(own), len(set(own))) for customer, own in by_customer.items()),
            "top": Counter(sorted(totals, key=lambda row: (-row[1], row[0]))[:2]),
            "named": named,
            "kinds": Counter((amount,) for amount in {amount for _, amount in orders}),
            "ranks": Counter(
                (customer, amount, rank + 1)
                for customer, own in by_customer.items()
                for rank, amount in enumerate(sorted(own))
            ),
            "below": Counter((n,) for n in {n for _, amount in orders for n in range(amount + 1)}),
        }


def shown(flow: IncrementalFlow) -> dict[str, Counter[tuple[Any, ...]]]:
    """The rows of each source and view, as the flow says."""
    names = ("orders", "customers", *VIEWS)
    return {name: Counter(tuple(row.values()) for row in flow.snapshot(name).to_pylist()) for name in names}


class Reader:
    """Adds up what a watch and a callback are told, which must always be the view."""

    def __init__(self, flow: IncrementalFlow, view: str) -> None:
        self.view = view
        self.epochs: list[int] = []
        self._watch = flow.watch_output(view, snapshot=True, capacity=100_000)
        self._sum: Counter[tuple[Any, ...]] = Counter()

    def rows(self) -> Counter[tuple[Any, ...]]:
        """The sum of all deltas so far; each epoch comes once and in order."""
        while (item := self._watch.get(timeout=0)) is not None:
            epoch, change = item
            assert not self.epochs or epoch > self.epochs[-1], f"epoch {epoch} after {self.epochs[-1]}"
            self.epochs.append(epoch)
            for row in change.to_arrow().to_pylist():
                weight = row.pop("_weight")
                self._sum[tuple(row.values())] += weight
        return Counter({row: count for row, count in self._sum.items() if count})


def settled(flow: IncrementalFlow, before: Shop, after: Shop, readers: list[Reader]) -> Shop:
    """Which of the two the flow is now, in all its views and for all its readers alike."""
    found = shown(flow)
    assert found in (before.views(), after.views())
    for reader in readers:
        assert reader.rows() == found[reader.view], reader.view
    return after if found == after.views() else before


def reopened(path: Path, **options: Any) -> IncrementalFlow:
    """The flow of a folder, opened anew."""
    return IncrementalFlow("shop", path=path, **options)
