"""A small shop's day as one batch job: orders and customers in, the best customers out, checked at the end.

Run it with ``make demo``.
"""

from __future__ import annotations

import random
import tempfile
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.csv

from weirflow import Session

ORDERS = 20_000
CUSTOMERS = 50
TOTALS = """
    SELECT customer, country, COUNT(*) AS orders, SUM(amount) AS total
    FROM orders JOIN customers USING (customer)
    GROUP BY customer, country
"""
TOP = "SELECT * FROM totals ORDER BY total DESC, customer LIMIT :n"


def write_orders(path: Path) -> pa.Table:
    """Write a day of orders as a CSV file, the way a shop would export them, and return them."""
    dice = random.Random(7)  # noqa: S311 - a demo, not a secret
    orders = pa.table(
        {
            "order_id": range(ORDERS),
            "customer": [dice.randrange(CUSTOMERS) for _ in range(ORDERS)],
            "amount": [dice.randrange(100, 20_000) for _ in range(ORDERS)],
        }
    )
    pyarrow.csv.write_csv(orders, path)
    return orders


def expected_totals(orders: pa.Table) -> dict[int, int]:
    """The totals computed without Spark, to compare with."""
    summed = orders.group_by("customer").aggregate([("amount", "sum")])
    return dict(zip(summed["customer"].to_pylist(), summed["amount_sum"].to_pylist(), strict=True))


def main() -> None:
    """Run the whole job in a temporary folder and print each step."""
    with tempfile.TemporaryDirectory(prefix="weirflow-demo-") as folder, Session.embedded() as session:
        orders = write_orders(Path(folder, "orders.csv"))

        started = time.perf_counter()
        session.register("orders", session.read_csv(f"{folder}/orders.csv"))
        print(
            f"Spark {session.spark.version} is up and {ORDERS:,} orders are read: {time.perf_counter() - started:.1f} s"
        )

        countries = ["DE", "FR", "IN", "US"]
        session.register(
            "customers",
            pa.table(
                {
                    "customer": range(CUSTOMERS),
                    "country": [countries[number % len(countries)] for number in range(CUSTOMERS)],
                }
            ),
        )

        session.sql(TOTALS).write_parquet(f"{folder}/totals")
        session.register("totals", session.read_parquet(f"{folder}/totals"))

        print("\nThe best customers:")
        session.sql(TOP, {"n": 5}).show()

        print("How Spark runs the join and the sums, stage by stage:")
        print(session.explain(TOTALS, mode="stages"))

        found = {row["customer"]: row["total"] for row in session.sql("SELECT * FROM totals").to_arrow().to_pylist()}
        if found != expected_totals(orders):
            raise SystemExit("the totals are wrong")
        print(f"\nChecked: all {len(found)} totals equal those computed without Spark.")


if __name__ == "__main__":
    main()
