"""Views written as PySpark frames: maintained by deltas, joined with a table of the Session that is refreshed.

Run it with ``python examples/frames.py``.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from pyspark.sql import Window
from pyspark.sql import functions as F  # noqa: N812 - PySpark's own convention

from weirflow import Session

if TYPE_CHECKING:
    from weirflow import DeltaBatch


def main() -> None:
    """A shop whose totals, best orders and cities follow its orders."""
    with Session.embedded(progress="off") as session:
        session.register("cities", [{"customer": "ann", "city": "Rome"}, {"customer": "bob", "city": "Oslo"}])
        flow = session.flow("shop")
        flow.register_source("orders", "id BIGINT, customer STRING, amount BIGINT")
        orders, cities = flow.table("orders"), session.read_table("cities")

        flow.register_view("totals", orders.groupBy("customer").agg(F.sum("amount").alias("total")))
        best = Window.partitionBy("customer").orderBy(F.desc("amount"), "id")
        flow.register_view(
            "best", orders.withColumn("place", F.row_number().over(best)).where("place = 1").drop("place")
        )
        flow.register_view(
            "by_city",
            flow.table("totals").join(cities, "customer").groupBy("city").agg(F.sum("total").alias("total")),
        )
        for view in ("totals", "best", "by_city"):
            flow.on_delta(view, partial(show, view))

        flow.tick("orders", [{"id": 1, "customer": "ann", "amount": 30}, {"id": 2, "customer": "bob", "amount": 12}])
        flow.tick("orders", [{"id": 3, "customer": "ann", "amount": 50}])

        session.register("cities", [{"customer": "ann", "city": "Oslo"}, {"customer": "bob", "city": "Oslo"}])
        flow.refresh_view("by_city")  # Ann has moved: the snapshot of the table is brought up to date
        print(flow.snapshot("by_city").to_pylist())


def show(view: str, epoch: int, delta: DeltaBatch) -> None:
    """Print what changed."""
    for row in delta.to_arrow().to_pylist():
        weight = row.pop("_weight")
        print(f"epoch {epoch}, {view}: {weight:+d} {row}")


if __name__ == "__main__":
    main()
