"""What ``benchmarks/refresh.py`` changes in the tables, and what it says of its figures."""

import numpy as np
from refresh import Measured, Orders, Spent, summary


def test_a_change_updates_deletes_and_inserts_orders():
    orders = Orders(0.001)
    before = set(orders.base()["orders"].column("o_orderkey").to_pylist())
    change = orders.change(0.1)
    keys = change.rows["orders"].column("o_orderkey").to_pylist()
    gone = set(change.gone.tolist())
    assert (len(gone), len(before & set(keys)), len(set(keys) - before)) == (37, 76, 37)
    assert gone <= before - set(keys)
    assert set(change.rows["lineitem"].column("l_orderkey").to_pylist()) == set(keys)
    assert not gone & set(np.concatenate([orders.change(0.1).gone for _ in range(3)]).tolist())


def test_ratios_and_what_took_too_long_are_said_for_each_change():
    figures = [
        Measured(1, 0.001, "incremental", None, Spent(2.0, 4.0), Spent(8.0, 16.0)),
        Measured(2, 0.001, "full", "LARGE_CHANGE", Spent(3.0, 4.0), Spent(1.0, 4.0)),
    ]
    assert summary(figures) == [
        (
            "0.10%: Spark / refresh 2.17 in the median, 4.00 of those with 5 s and more; "
            "all refreshes 0.56 of Spark's time, 0.40 of its CPU; 1 incremental, 1 full LARGE_CHANGE"
        ),
        "q2 at 0.10% took more than 1.1 x Spark + 1 s: 3.0 s, Spark 1.0 s",
    ]
