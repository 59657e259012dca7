"""Frames as views: each is maintained by deltas and equals what Spark computes of the same rows, or says why not."""

import datetime as dt
import functools
import runpy
from collections import Counter
from decimal import Decimal
from pathlib import Path

import pytest
from pyspark.sql import Window
from pyspark.sql import functions as F  # noqa: N812  PySpark's own convention
from support.maintained import comparable
from support.shared_session import SETTINGS

from weirflow import DeltaBatch, Session
from weirflow.errors import ConfigError, NotIncremental
from weirflow.rows.types import spark_schema
from weirflow.sql.types import nullable

EXAMPLE = Path(__file__).parents[2] / "examples" / "frames.py"
ORDERS = "id BIGINT, customer STRING, amount DECIMAL(10,2), day DATE, tags ARRAY<STRING>"
CUSTOMERS = "customer STRING, city STRING, since INT"


def order(number, customer, amount, day, tags):
    amount = None if amount is None else Decimal(amount)
    return {"id": number, "customer": customer, "amount": amount, "day": dt.date(2024, 1, day), "tags": tags}


TICKS = [
    {
        "orders": [
            order(1, "ann", "5.00", 1, ["a", "b"]),
            order(2, "bob", None, 1, []),
            order(3, "ann", "7.25", 2, ["b"]),
            order(3, "ann", "7.25", 2, ["b"]),
            order(4, None, "1.50", 3, None),
        ],
        "customers": [
            {"customer": "ann", "city": "Rome", "since": 2020},
            {"customer": "eve", "city": None, "since": None},
        ],
    },
    {
        "orders": [order(5, "bob", "9.00", 3, ["c", None]), order(6, "ann", "5.00", 4, ["a"])],
        "customers": [{"customer": "bob", "city": "Oslo", "since": 2021}],
    },
]
GONE = order(3, "ann", "7.25", 2, ["b"])


def expression(orders, _):
    return orders.select("id", F.expr("CASE WHEN amount > 5 THEN upper(customer) ELSE 'less' END AS label"))


def windowed(orders, _):
    latest = Window.partitionBy("customer").orderBy(F.desc("day"), F.desc("id"))
    return orders.withColumn("place", F.row_number().over(latest)).where("place <= 2").select("customer", "id", "place")


def running(orders, _):
    so_far = Window.partitionBy("customer").orderBy("day", "id").rowsBetween(Window.unboundedPreceding, 0)
    return orders.select("id", F.sum("amount").over(so_far).alias("so_far"))


def chained(orders, _):
    found = orders.withColumn("double", F.col("amount") * 2).withColumn("more", F.col("double") + 1)
    return found.withColumnRenamed("more", "most").drop("tags", "double").where(F.col("most") > 3)


def with_nan(orders):
    return F.when(orders.amount > 6, float("nan")).otherwise(orders.amount.cast("double"))


FRAMES = {
    "pivot": lambda o, _: o.groupBy("customer").pivot("id", [1, 2]).sum("amount"),
    "unpivot": lambda o, _: o.unpivot("customer", ["id"], "what", "value"),
    "what Spark evaluates": lambda o, _: o.select(F.printf("customer").alias("code")),
    "select": lambda o, _: o.select("id", (o.amount + 1).alias("more"), o["customer"]),
    "expr": expression,
    "selectExpr": lambda o, _: o.selectExpr("id % 2 AS odd", "amount AS a"),
    "withColumn": chained,
    "filter": lambda o, _: o.filter(o.customer.isin("ann", "eve") | o.amount.isNull()),
    "groupBy": lambda o, _: o.groupBy("customer").agg(
        F.sum("amount").alias("s"), F.count("*").alias("n"), F.max("day")
    ),
    "agg": lambda o, _: o.agg(F.avg("amount").alias("a"), F.countDistinct("customer").alias("c")),
    "rollup": lambda o, _: o.rollup("customer", "day").agg(F.sum("amount").alias("s")),
    "cube": lambda o, _: o.cube("customer", "day").count(),
    "having": lambda o, _: o.groupBy("customer").count().where("count > 1"),
    "join": lambda o, c: o.join(c, o.customer == c.customer).select(o.id, c.city),
    "join on a name": lambda o, c: o.join(c, "customer"),
    "left join": lambda o, c: o.join(c, ["customer"], "left"),
    "full join": lambda o, c: o.join(c, "customer", "full"),
    "semi join": lambda o, c: o.join(c, "customer", "left_semi"),
    "anti join": lambda o, c: o.join(c, "customer", "left_anti"),
    "self join": lambda o, _: (
        o.alias("x").join(o.alias("y"), F.col("x.id") == F.col("y.id") + 1).select("x.id", "y.day")
    ),
    "crossJoin": lambda o, c: o.select("id").crossJoin(c.select("city")),
    "window": windowed,
    "running sum": running,
    "union": lambda o, c: o.select("customer").union(c.select("customer")),
    "unionByName": lambda o, c: o.unionByName(c, allowMissingColumns=True),
    "intersect": lambda o, c: o.select("customer").intersect(c.select("customer")),
    "exceptAll": lambda o, c: o.select("customer").exceptAll(c.select("customer")),
    "distinct": lambda o, _: o.select("customer", "day").distinct(),
    "dropDuplicates": lambda o, _: o.select("customer", "amount").dropDuplicates(),
    "na.fill": lambda o, _: o.na.fill({"customer": "nobody"}).na.fill(0, ["amount"]).select("customer", "amount"),
    "na.drop": lambda o, _: o.na.drop(subset=["amount", "customer"]),
    "na.drop all": lambda o, _: o.select("id", with_nan(o).alias("x"), "customer").na.drop(
        "all", subset=["x", "customer"]
    ),
    "na.drop nan": lambda o, _: o.select("id", with_nan(o).alias("x")).na.drop(),
    "na.replace": lambda o, _: o.na.replace({"ann": "Ann"}, subset=["customer"]).select("customer"),
    "explode": lambda o, _: o.select("id", F.explode("tags").alias("tag")),
    "explode_outer": lambda o, _: o.select("id", F.explode_outer("tags").alias("tag")),
    "posexplode": lambda o, _: o.select("id", F.posexplode("tags")),
    "orderBy limit": lambda o, _: o.orderBy(F.desc_nulls_last("amount"), "id").limit(2).select("id"),
    "scalar functions": lambda o, _: o.select(F.concat_ws("-", "customer", F.year("day").cast("string")).alias("x")),
    "conditional": lambda o, _: o.select(F.when(F.col("amount") > 5, "big").otherwise(F.lit(None)).alias("size")),
    "structs": lambda o, _: o.select(F.struct("id", "day").alias("s")).select("s.id", F.col("s.day").alias("d")),
    "transform": lambda o, _: o.transform(lambda one: one.select("id")),
    "describe a day": lambda o, _: o.groupBy(F.year("day").alias("y")).agg(F.collect_set("customer").alias("who")),
}
# What has no delta rule, and what it says: there is no text that could be run again.
REFUSED = {
    "na.drop some": (lambda o, _: o.na.drop(thresh=2, subset=["id", "amount", "customer"]), "atleastnnonnulls"),
    "dropDuplicates of some": (lambda o, _: o.dropDuplicates(["customer"]), "Deduplicate"),
    "sample": (lambda o, _: o.sample(0.5, seed=3), "Sample"),
    "rand": (lambda o, _: o.withColumn("r", F.rand()), "rand"),
    "now": (lambda o, _: o.withColumn("at", F.current_timestamp()), "current_timestamp"),
    "first": (lambda o, _: o.groupBy("customer").agg(F.first("id")), "first"),
}
UNORDERED = {"describe a day"}


@pytest.fixture
def flow(session):
    with session.flow("frames") as flow:
        flow.register_source("orders", ORDERS)
        flow.register_source("customers", CUSTOMERS)
        yield flow


def values(rows, *, unordered):
    def one(value):
        return tuple(sorted(value)) if unordered and isinstance(value, list) else comparable(value)

    return Counter(tuple(one(value) for value in row.values()) for row in rows)


def test_each_frame_is_incremental_and_equals_spark(session, flow):
    names = {name: f"v{number}" for number, name in enumerate(FRAMES)}
    refused = {}
    for name, make in FRAMES.items():
        try:
            flow.register_view(names[name], make(flow.table("orders"), flow.table("customers")))
        except NotIncremental as error:
            refused[name] = error.message
    assert refused == {}
    assert {one.kind for one in flow.describe().relations} == {"source", "incremental"}
    for tick in TICKS:
        flow.tick(tick)
    flow.tick("orders", DeltaBatch.from_deletes([GONE], schema=flow.schema("orders")))
    held = {name: flow.frame(name) for name in ("orders", "customers")}
    wrong = {}
    for name, make in FRAMES.items():
        spark = make(held["orders"], held["customers"]).to_arrow()
        ours = flow.snapshot(names[name])
        types = [nullable(one) for one in spark_schema(spark.schema).types]
        unordered = name in UNORDERED
        if (ours.schema.names, ours.schema.types) != (spark.schema.names, types):
            wrong[name] = (ours.schema, spark.schema)
        elif values(ours.to_pylist(), unordered=unordered) != values(spark.to_pylist(), unordered=unordered):
            wrong[name] = (ours.to_pylist(), spark.to_pylist())
    assert wrong == {}


@pytest.mark.parametrize("name", REFUSED)
def test_a_frame_without_a_delta_rule_says_what_it_is(flow, name):
    make, message = REFUSED[name]
    with pytest.raises(NotIncremental, match=f"(?i){message}"):
        flow.register_view("v", make(flow.table("orders"), flow.table("customers")))
    assert flow.views == ()


def test_a_frame_is_not_recomputed_and_nothing_else_is_a_view(flow):
    with pytest.raises(ConfigError, match="can only be maintained by deltas"):
        flow.register_view("v", flow.table("orders"), mode="diff")
    for wrong in (7, None, ["SELECT 1"], functools.partial(print)):
        with pytest.raises(ConfigError, match="A view is one query in SQL"):
            flow.register_view("v", wrong)


def test_the_example_runs(session, capsys, monkeypatch):
    monkeypatch.setattr(Session, "embedded", staticmethod(lambda **_: Session(**SETTINGS)))  # on the Spark that runs
    runpy.run_path(str(EXAMPLE), run_name="__main__")
    assert capsys.readouterr().out.endswith("[{'city': 'Oslo', 'total': 92}]\n")
