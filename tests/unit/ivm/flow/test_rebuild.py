"""Views that are replaced or refreshed while a flow runs."""

import pyarrow as pa
import pytest

from weirflow import DeltaBatch, IncrementalFlow
from weirflow.errors import ColumnNotFound, ConfigError, DataError, FlowError, HistoryGone, TableNotFound, TickPending
from weirflow.failpoints import watch_failpoints

TOTALS = "SELECT customer, SUM(amount) AS total FROM orders GROUP BY customer"
DOUBLED = "SELECT customer, SUM(amount) * 2 AS total FROM orders GROUP BY customer"
ORDERS = [{"customer": "ann", "amount": 5}, {"customer": "bob", "amount": 7}]


def shop(path=None):
    flow = IncrementalFlow("shop", path=path)
    flow.register_source("orders", "customer STRING, amount BIGINT")
    flow.register_view("totals", TOTALS)
    flow.register_view("top", "SELECT customer, total FROM totals ORDER BY total DESC LIMIT 1")
    flow.register_view("n", "SELECT COUNT(*) AS n FROM orders")
    flow.tick("orders", ORDERS)
    return flow


def rows(flow, view):
    return sorted(tuple(row.values()) for row in flow.snapshot(view).to_pylist())


def test_what_reads_a_replaced_view_is_rebuilt_and_watches_get_the_difference():
    flow = shop()
    top, n = flow.watch_output("top"), flow.watch_output("n")
    plan = flow.replace_view("totals", DOUBLED)
    assert (plan.kept, plan.rebuilt) == (("n",), ("totals", "top"))
    assert top.get(0) == (
        2,
        DeltaBatch.from_updates([{"customer": "bob", "total": 7}], [{"customer": "bob", "total": 14}]),
    )
    assert n.get(0) is None
    assert rows(flow, "totals") == [("ann", 10), ("bob", 14)]
    flow.tick("orders", [{"customer": "ann", "amount": 5}])
    assert rows(flow, "top") == [("ann", 20)]
    assert [tuple(row.values()) for row in flow.snapshot("top", epoch=1).to_pylist()] == [("bob", 7)]


def test_replacing_a_view_by_itself_does_nothing():
    flow = shop()
    flow.replace_view("totals", TOTALS)
    assert flow.epoch == 1


@pytest.mark.parametrize(
    ("sql", "error"),
    [
        ("SELECT customer FROM orders", ColumnNotFound),  # top reads total
        ("SELECT nope AS total, customer FROM orders", ColumnNotFound),
        ("SELECT * FROM nowhere", TableNotFound),
        ("SELECT * FROM top", ConfigError),
        ("SELECT customer, amount / 0 AS total FROM orders", DataError),
    ],
)
def test_a_view_that_cannot_be_replaced_stays(sql, error):
    flow = shop()
    with pytest.raises(error):
        flow.replace_view("totals", sql)
    assert (flow.epoch, rows(flow, "totals"), rows(flow, "top")) == (1, [("ann", 5), ("bob", 7)], [("bob", 7)])
    flow.tick("orders", ORDERS)
    assert rows(flow, "totals") == [("ann", 10), ("bob", 14)]


def test_watches_of_a_view_with_other_columns_end_and_its_past_is_gone():
    flow = shop()
    flow.drop("top")
    watch = flow.watch_output("totals")
    flow.replace_view("totals", "SELECT customer, COUNT(*) AS n FROM orders GROUP BY customer")
    assert list(watch) == []
    with pytest.raises(HistoryGone) as caught:
        flow.snapshot("totals", epoch=1)
    assert caught.value.oldest == 2
    assert flow.snapshot("n", epoch=1).to_pylist() == [{"n": 2}]


def test_a_view_whose_rows_were_not_kept_can_be_replaced_but_not_refreshed():
    flow = IncrementalFlow()
    flow.register_source("orders", "customer STRING, amount BIGINT")
    flow.register_view("totals", TOTALS, materialized=False)
    flow.tick("orders", ORDERS)
    with pytest.raises(ConfigError, match="not kept"):
        flow.refresh_view("totals")
    watch = flow.watch_output("totals")
    flow.replace_view("totals", TOTALS)
    assert list(watch) == []
    assert rows(flow, "totals") == [("ann", 5), ("bob", 7)]


class Prices:
    """Runs queries that depend on more than the sources."""

    def __init__(self):
        self.price = 2

    def schema(self, _sql, tables):
        return tables["orders"]

    def run(self, _sql, tables):
        table = tables["orders"]
        amounts = [amount * self.price for amount in table.column("amount").to_pylist()]
        return table.set_column(1, table.schema.field(1), pa.array(amounts, pa.int64()))


def test_a_refresh_computes_what_changed_elsewhere():
    prices = Prices()
    flow = IncrementalFlow(engine=prices)
    flow.register_source("orders", "customer STRING, amount BIGINT")
    flow.register_view("priced", "SELECT * FROM orders", mode="diff")
    flow.register_view("total", "SELECT SUM(amount) AS total FROM priced")
    flow.tick("orders", ORDERS)
    watch = flow.watch_output("total")
    prices.price = 3
    assert flow.refresh_view("priced").rebuilt == ("priced", "total")
    assert watch.get(0) == (2, DeltaBatch.from_updates([{"total": 24}], [{"total": 36}]))
    flow.refresh_view("priced")
    assert (flow.epoch, watch.get(0)) == (3, None)


def test_sources_and_unknown_views_are_not_replaced():
    flow = shop()
    with pytest.raises(ConfigError, match="is a source"):
        flow.replace_view("orders", TOTALS)
    with pytest.raises(TableNotFound):
        flow.refresh_view("tops")


def test_a_tick_that_waits_is_decided_about_first():
    flow = shop()
    flow.register_view("shares", "SELECT 100 / amount AS share FROM orders")
    with pytest.raises(DataError):
        flow.tick("orders", [{"customer": "ann", "amount": 0}])
    with pytest.raises(TickPending):
        flow.replace_view("shares", "SELECT amount AS share FROM orders")
    flow.discard()
    flow.replace_view("shares", "SELECT amount * 1.5 AS share FROM orders")


@pytest.mark.parametrize("checkpoint", [False, True])
def test_a_durable_flow_is_reopened_with_the_replaced_view(tmp_path, checkpoint):
    with shop(tmp_path) as flow:
        flow.replace_view("totals", DOUBLED)
        flow.refresh_view("totals")
        flow.tick("orders", ORDERS)
        if checkpoint:
            flow.checkpoint()
        expected = rows(flow, "totals"), rows(flow, "top"), flow.epoch
    with IncrementalFlow("shop", path=tmp_path) as flow:
        assert (rows(flow, "totals"), rows(flow, "top"), flow.epoch) == expected
        flow.tick("orders", ORDERS)
        assert rows(flow, "totals") == [("ann", 30), ("bob", 42)]


@pytest.mark.parametrize(("point", "total"), [("define.before_log", 7), ("define.after_log", 14)])
def test_a_crash_leaves_the_old_view_or_the_new_one(tmp_path, point, total):
    class Crash(Exception):
        pass

    def crash(name):
        if name == point:
            raise Crash

    with shop(tmp_path) as flow:
        watch_failpoints(crash)
        try:
            with pytest.raises(Crash):
                flow.replace_view("totals", DOUBLED)
        finally:
            watch_failpoints(None)
    with IncrementalFlow("shop", path=tmp_path) as flow:
        assert rows(flow, "top") == [("bob", total)]


def test_a_sink_does_not_get_rows_of_two_definitions(tmp_path):
    flow = shop(tmp_path / "flow")
    taken = []
    with flow.sink("top", lambda epoch, delta: taken.append((epoch, delta)), name="top"):
        with pytest.raises(FlowError, match="two definitions"):
            flow.replace_view("totals", DOUBLED)
        flow.refresh_view("totals")
    flow.replace_view("totals", DOUBLED)
    flow.close()


def test_a_query_is_explained_without_being_a_view():
    flow = shop()
    assert flow.explain_query("SELECT total FROM totals WHERE total > 1").startswith("the query: incremental")
    with pytest.raises(ColumnNotFound):
        flow.explain_query("SELECT nope FROM totals")
    assert flow.views == ("totals", "top", "n")


def test_ad_hoc_sql_reads_tables_that_are_brought_along():
    flow = shop()
    names = flow.sql("SELECT 'ann' AS customer, 'Ann' AS name")
    query = "SELECT name, total FROM totals JOIN names USING (customer)"
    assert flow.sql(query, tables={"names": names}).to_pylist() == [{"name": "Ann", "total": 5}]
    assert flow.sql("SELECT * FROM totals", tables={"totals": names}).to_pylist() == names.to_pylist()
