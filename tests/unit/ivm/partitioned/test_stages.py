"""How circuits are cut: where rows move, what stays where it is, and what is done in two steps."""

import uuid

import pytest

from weirflow.errors import DataError
from weirflow.ivm.sharded.executor import InThisProcess
from weirflow.ivm.sharded.flow import PartitionedFlow

FAR = 2**63 - 1


def new_flow(shards=3):
    flow = PartitionedFlow(f"memory://{uuid.uuid4().hex}", shards, InThisProcess())
    flow.register_source("orders", "id BIGINT, customer STRING, amount BIGINT")
    flow.register_source("customers", "name STRING, city STRING", key="name")
    return flow


def exchanges(**views):
    flow = new_flow()
    for name, sql in views.items():
        flow.register_view(name, sql)
    return [line.partition(", ")[2] for line in flow.explain().splitlines() if " exchange of " in line]


def test_a_source_without_a_key_is_where_its_first_join_wants_it():
    joined = "SELECT customer, city, amount FROM orders JOIN customers ON customer = name"
    assert exchanges(joined=joined) == []


def test_what_is_grouped_by_the_key_of_the_join_stays():
    joined = "SELECT customer, SUM(amount) AS total FROM orders JOIN customers ON customer = name GROUP BY customer"
    assert exchanges(joined=joined) == []


def test_what_is_grouped_by_something_else_moves():
    joined = "SELECT city, SUM(amount) AS total FROM orders JOIN customers ON customer = name GROUP BY city"
    assert exchanges(joined=joined) == ["by 1 keys"]


def test_the_right_side_of_a_join_without_keys_goes_everywhere():
    assert "to every shard" in exchanges(pairs="SELECT id, city FROM orders CROSS JOIN customers")


def test_the_first_rows_of_each_shard_go_to_one():
    assert exchanges(top="SELECT * FROM orders ORDER BY amount DESC LIMIT 2") == ["to one shard"]


def test_two_views_share_an_exchange():
    by_customer = "SELECT customer, COUNT(*) AS n FROM orders GROUP BY customer"
    count, total = (f"SELECT amount, {one}(DISTINCT id) AS id FROM orders GROUP BY amount" for one in ("COUNT", "SUM"))
    assert exchanges(first=by_customer, count=count, total=total) == ["by 1 keys"]


def test_equal_rows_of_a_view_are_on_one_shard():
    assert exchanges(cities="SELECT city FROM customers") == ["by 1 keys -> cities"]


def test_totals_of_shards_may_leave_64_bits_where_the_total_does_not():
    flow = new_flow(7)
    flow.register_view("total", "SELECT SUM(amount) AS total, COUNT(*) AS n FROM orders")
    assert "aggregate of the shard" in flow.explain()
    amounts = [FAR, 10, FAR, -FAR, -FAR, -20]
    flow.tick("orders", [{"id": 1, "customer": f"c{at}", "amount": one} for at, one in enumerate(amounts)])
    assert flow.snapshot("total").to_pylist() == [{"total": -10, "n": 6}]
    with pytest.raises(DataError):
        flow.tick("orders", [{"id": 1, "customer": "c", "amount": FAR}, {"id": 2, "customer": "c", "amount": 11}])
    flow.discard()
    assert flow.snapshot("total").to_pylist() == [{"total": -10, "n": 6}]


def test_a_total_over_no_rows():
    flow = new_flow()
    flow.register_view("total", "SELECT SUM(amount) AS total, COUNT(*) AS n, MAX(id) AS last FROM orders")
    row = {"id": 1, "customer": "ann", "amount": 5}
    flow.tick("orders", [row])
    watch = flow.watch_output("total")
    flow.tick("orders", [{**row, "_weight": -1}])
    assert flow.snapshot("total").to_pylist() == [{"total": None, "n": 0, "last": None}]
    _, delta = watch.get(timeout=0)
    assert sorted(delta.to_arrow()["_weight"].to_pylist()) == [-1, 1]


@pytest.mark.parametrize("shards", [1, 2, 5])
def test_views_that_come_later_are_filled_where_rows_are(shards):
    flow = new_flow(shards)
    people = [{"name": f"c{at}", "city": f"x{at % 2}"} for at in range(6)]
    orders = [{"id": at, "customer": f"c{at % 6}", "amount": at} for at in range(30)]
    flow.tick({"orders": orders, "customers": people})
    flow.register_view(
        "cities", "SELECT city, SUM(amount) AS total FROM orders JOIN customers ON customer = name GROUP BY city"
    )
    flow.register_view("best", "SELECT city FROM cities ORDER BY total DESC LIMIT 1")
    flow.tick("orders", [{"id": 100, "customer": "c0", "amount": 1000}])
    assert sorted(map(str, flow.snapshot("cities").to_pylist())) == [
        "{'city': 'x0', 'total': 1210}",
        "{'city': 'x1', 'total': 225}",
    ]
    assert flow.snapshot("best").to_pylist() == [{"city": "x0"}]
    flow.drop("best")
    assert flow.views == ("cities",)
