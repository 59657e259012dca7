"""What it costs to keep a graph of 44 materialized views: a warehouse of a broker, in the manner of TPC-DI.

    python benchmarks/refresh_graph.py [--scale F] [--shares F ...] [--format iceberg|delta]

Eight tables are cleaned, joined to dimensions and facts, and summed up by what people ask for. After each change of
trades, cash and customers, all views are refreshed in one go, each behind those that it reads; and plain tables of the
same queries are overwritten by Spark one after the other. No time counts unless each view equals its plain table as
a multiset. One small change before the others is not counted.

Prints how the views were refreshed, seconds and CPU of this process and all below it, and the part of Spark's that
they are; writes benchmarks/results/refresh-graph-<format>.json.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from refresh import MERGE_ON_READ, PROPERTIES, RESULTS, WARM_UP, cost_of

from weirflow import Session
from weirflow.materialized.opened import views_in
from weirflow.materialized.together import refresh_together

SHARES = (0.001, 0.01)
TRADES = 1_000_000
"""How many trades there are at scale 1; of accounts a hundredth, of customers half of these."""
_DAYS = 250
_TABLES = {
    "industry": "SELECT i_id, upper(i_name) AS i_name, i_sector FROM industry",
    "company": "SELECT co_id, co_industry, trim(co_name) AS co_name, co_rating FROM company",
    "security": "SELECT s_id, s_company, s_exchange, s_shares FROM security WHERE s_shares > 0",
    "customer": "SELECT c_id, c_tier, c_country, c_tax FROM customer WHERE c_tier IS NOT NULL",
    "account": "SELECT a_id, a_customer, a_broker FROM account",
    "trade": "SELECT t_id, t_account, t_security, t_day, t_type, t_quantity, t_price, t_fee FROM trade "
    "WHERE t_quantity > 0",
    "cash": "SELECT m_id, m_account, m_day, m_amount FROM cash WHERE m_amount <> 0",
    "price": "SELECT p_security, p_day, p_close, p_volume FROM price",
}
_DIMENSIONS = {
    "d_company": "SELECT * FROM {c_company} JOIN {c_industry} ON co_industry = i_id",
    "d_security": "SELECT * FROM {c_security} JOIN {d_company} ON s_company = co_id",
    "d_account": "SELECT * FROM {c_account} JOIN {c_customer} ON a_customer = c_id",
    "d_broker": "SELECT a_broker, count(*) AS accounts, sum(c_tax) AS tax FROM {d_account} GROUP BY a_broker",
    "f_trade": "SELECT t.*, t_quantity * t_price AS t_total, a_broker, c_id, c_tier, c_country, s_exchange, "
    "i_sector, co_id FROM {c_trade} t JOIN {d_account} ON t_account = a_id JOIN {d_security} ON t_security = s_id",
    "f_cash": "SELECT m.*, a_broker, c_id, c_tier, c_country FROM {c_cash} m JOIN {d_account} ON m_account = a_id",
    "f_price": "SELECT p.*, s_exchange, i_sector, co_id, p_close * s_shares AS p_cap FROM {c_price} p "
    "JOIN {d_security} ON p_security = s_id",
    "f_holding": "SELECT t_account, t_security, sum(IF(t_type = 'buy', t_quantity, -t_quantity)) AS h_quantity, "
    "a_broker, c_tier, i_sector FROM {f_trade} GROUP BY t_account, t_security, a_broker, c_tier, i_sector",
    "f_worth": "SELECT c_id, c_tier, c_country, sum(m_amount) AS w_cash, count(*) AS w_moves FROM {f_cash} "
    "GROUP BY c_id, c_tier, c_country",
}
_SUMS = {
    "f_trade": (
        "t_total",
        ["t_day", "a_broker", "c_tier", "c_country", "s_exchange", "i_sector", "co_id", "t_type", "c_id"],
    ),
    "f_cash": ("m_amount", ["m_day", "a_broker", "c_tier", "c_country", "m_account"]),
    "f_price": ("p_cap", ["p_day", "s_exchange", "i_sector", "co_id"]),
    "f_holding": ("h_quantity", ["t_account", "t_security", "a_broker", "c_tier", "i_sector"]),
    "f_worth": ("w_cash", ["c_tier", "c_country"]),
    "d_broker": ("tax", ["accounts"]),
}
QUERIES = {
    **{f"c_{name}": sql for name, sql in _TABLES.items()},
    **_DIMENSIONS,
    **{
        f"s_{fact[2:]}_{key}": f"SELECT {key}, sum({what}) AS total, count(*) AS number FROM {{{fact}}} GROUP BY {key}"
        for fact, (what, keys) in _SUMS.items()
        for key in keys
    },
    "s_rich": "SELECT c_country, c_tier, max(w_cash) AS most, min(w_cash) AS least FROM {f_worth} "
    "GROUP BY c_country, c_tier",
}
"""By the names of views, each behind those that it reads, which are in braces."""


class Broker:
    """The rows of the tables, and changes of them."""

    def __init__(self, scale: float) -> None:
        self._random = np.random.default_rng(7)
        self.trades = round(TRADES * scale)
        self.accounts = max(self.trades // 100, 10)

    def base(self) -> dict[str, pa.Table]:
        """All tables, before the first change."""
        chosen, industries, companies, securities = self._random, np.arange(20), np.arange(200), np.arange(500)
        customers, accounts = np.arange(self.accounts // 2), np.arange(self.accounts)
        days = np.repeat(np.arange(_DAYS), len(securities))
        return {
            "industry": pa.table(
                {"i_id": industries, "i_name": _named("field", industries), "i_sector": industries % 5}
            ),
            "company": pa.table(
                {
                    "co_id": companies,
                    "co_industry": companies % 20,
                    "co_name": _named("co", companies),
                    "co_rating": companies % 7,
                }
            ),
            "security": pa.table(
                {
                    "s_id": securities,
                    "s_company": securities % 200,
                    "s_exchange": securities % 4,
                    "s_shares": 1000 + securities,
                }
            ),
            "customer": self._customers(customers),
            "account": pa.table({"a_id": accounts, "a_customer": accounts // 2, "a_broker": accounts % 50}),
            "trade": self._trades(np.arange(self.trades)),
            "cash": self._cash(np.arange(self.trades)),
            "price": pa.table(
                {
                    "p_security": np.tile(securities, _DAYS),
                    "p_day": days,
                    "p_close": chosen.integers(1, 500, len(days)),
                    "p_volume": chosen.integers(1, 9999, len(days)),
                }
            ),
        }

    def change(self, share: float) -> dict[str, pa.Table]:
        """Rows that are there instead of others with their keys, or new."""
        size = max(4, round(self.trades * share))
        keys = self._random.choice(self.trades, size, replace=False)
        self.trades += size // 2
        keys[: size // 2] = np.arange(self.trades - size // 2, self.trades)
        customers = self._random.choice(self.accounts // 2, max(1, round(self.accounts // 2 * share)), replace=False)
        return {"trade": self._trades(keys), "cash": self._cash(keys), "customer": self._customers(customers)}

    def _customers(self, keys: Any) -> pa.Table:
        tiers, countries = self._random.integers(1, 4, len(keys)), self._random.integers(0, 30, len(keys))
        return pa.table(
            {"c_id": keys, "c_tier": tiers, "c_country": countries, "c_tax": self._random.integers(0, 40, len(keys))}
        )

    def _trades(self, keys: Any) -> pa.Table:
        drawn = self._random.integers
        return pa.table(
            {
                "t_id": keys,
                "t_account": drawn(0, self.accounts, len(keys)),
                "t_security": drawn(0, 500, len(keys)),
                "t_day": drawn(0, _DAYS, len(keys)),
                "t_type": np.array(["buy", "sell"])[drawn(0, 2, len(keys))],
                "t_quantity": drawn(0, 1000, len(keys)),
                "t_price": drawn(1, 500, len(keys)),
                "t_fee": drawn(0, 20, len(keys)),
            }
        )

    def _cash(self, keys: Any) -> pa.Table:
        drawn = self._random.integers
        days, amounts = drawn(0, _DAYS, len(keys)), drawn(-5000, 5000, len(keys))
        return pa.table(
            {"m_id": keys, "m_account": drawn(0, self.accounts, len(keys)), "m_day": days, "m_amount": amounts}
        )


KEYS = {"trade": "t_id", "cash": "m_id", "customer": "c_id"}


def _named(kind: str, keys: Any) -> list[str]:
    return [f" {kind} {key} " for key in keys]


def _sql(name: str, prefix: str) -> str:
    return re.sub(r"\{(\w+)\}", rf"{prefix}\1", QUERIES[name])


class Warehouse:
    """The tables, views and plain tables, in a schema of a Session.

    Attributes:
        modes: how the views were refreshed last, counted.
    """

    def __init__(self, session: Session, kind: str) -> None:
        self._session = session
        self._kind = kind
        self.modes: Counter[str] = Counter()
        self.schema = "iceberg.broker" if kind == "iceberg" else "broker"
        session.sql(f"CREATE NAMESPACE {self.schema}")
        session.sql(f"USE {self.schema}")

    def load(self, tables: dict[str, pa.Table]) -> None:
        """Make the tables, the views and the plain tables."""
        properties = ", ".join(f"'{name}' = '{value}'" for name, value in PROPERTIES[self._kind, MERGE_ON_READ].items())
        for name, rows in tables.items():
            self._session.register("loaded", self._session.from_arrow(rows))
            self._session.sql(
                f"CREATE TABLE {name} USING {self._kind} TBLPROPERTIES ({properties}) AS SELECT * FROM loaded"
            )
        for name in QUERIES:
            self._session.sql(f"CREATE MATERIALIZED VIEW v_{name} USING {self._kind} AS {_sql(name, 'v_')}")
            self._session.sql(f"CREATE TABLE p_{name} USING {self._kind} AS {_sql(name, 'p_')}")

    def apply(self, change: dict[str, pa.Table]) -> None:
        """Bring rows in by their keys."""
        for name, rows in change.items():
            self._session.register("changed", self._session.from_arrow(rows))
            self._session.sql(
                f"MERGE INTO {name} t USING changed s ON t.{KEYS[name]} = s.{KEYS[name]} "
                "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
            )

    def refresh(self) -> None:
        """Refresh all views."""
        outcomes = refresh_together(self._session, views_in(self._session, self.schema))
        failed = [one for one in outcomes if one.record is None]
        if failed:
            raise SystemExit(f"{len(failed)} views were not refreshed, {failed[0].view} first: {failed[0].error}")
        records = [one.record for one in outcomes if one.record is not None]
        self.modes = Counter(f"{one.mode} {one.code or ''}".strip() for one in records)

    def overwrite(self) -> None:
        """Compute all plain tables."""
        for name in QUERIES:
            self._session.sql(f"INSERT OVERWRITE p_{name} {_sql(name, 'p_')}")

    def require_equal(self) -> None:
        """End the program if a view and its plain table differ."""
        for name in QUERIES:
            for one, other in (("v", "p"), ("p", "v")):
                rows = self._session.sql(f"SELECT * FROM {one}_{name} EXCEPT ALL SELECT * FROM {other}_{name} LIMIT 3")
                if found := rows.collect():
                    raise SystemExit(f"{name} is wrong: {found} only in {one}_{name}")


def main() -> None:
    """Print the figures and write the JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scale", type=float, default=0.1, help="1 has a million trades")
    parser.add_argument("--shares", type=float, nargs="+", default=SHARES, help="parts of trades, cash and customers")
    parser.add_argument("--format", choices=("iceberg", "delta"), default="iceberg")
    arguments = parser.parse_args()
    broker, measured = Broker(arguments.scale), []
    with Session.embedded(cores=2, driver_memory="3g", packages=[arguments.format], progress="off") as session:
        warehouse = Warehouse(session, arguments.format)
        print(f"making tables and {len(QUERIES)} views", file=sys.stderr)
        warehouse.load(broker.base())
        print("first refreshes", file=sys.stderr)
        warehouse.refresh()
        for number, share in enumerate((WARM_UP, *arguments.shares)):
            warehouse.apply(broker.change(share))
            calls: Sequence[Callable[[], None]] = (warehouse.refresh, warehouse.overwrite)
            first, second = calls if number % 2 else calls[::-1]
            taken = {first: cost_of(first), second: cost_of(second)}
            ours, spark = (taken[call] for call in calls)
            warehouse.require_equal()
            modes = ", ".join(f"{count} {how}" for how, count in warehouse.modes.items())
            line = (
                f"{share:.2%}: {len(QUERIES)} views in {ours.seconds:.1f} s, {ours.cpu:.1f} s of CPU; "
                f"Spark {spark.seconds:.1f} s, {spark.cpu:.1f} s of CPU; {ours.seconds / spark.seconds:.2f} "
                f"of its time, {ours.cpu / spark.cpu:.2f} of its CPU; {modes}"
            )
            print(line if number else f"(warm-up) {line}", flush=True)
            measured += [line] if number else []
    RESULTS.mkdir(exist_ok=True)
    report = {**vars(arguments), "views": len(QUERIES), "measured": measured}
    (RESULTS / f"refresh-graph-{arguments.format}.json").write_text(json.dumps(report, indent=2) + "\n")


if __name__ == "__main__":
    main()
