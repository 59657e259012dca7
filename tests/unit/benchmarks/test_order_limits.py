"""The limits of ``benchmarks/orders.py``, over figures that are given."""

from orders import Figures, limits


def found(*measured):
    return {limit.name: (limit.figure, limit.verdict) for limit in limits(*measured)}


def test_a_tick_is_held_against_both_recomputes_and_a_table_a_hundred_times_as_large():
    beside = {"lag": Figures(ticks=[0.1, 0.2, 0.4], duckdb=[0.1], spark=[5.0])}
    small, large = {"lag": Figures(ticks=[0.1])}, {"lag": Figures(ticks=[0.15])}
    assert found(beside, small, large) == {
        "lag: Spark / ours": (25.0, "ok"),
        "lag: DuckDB / ours": (0.5, "not met"),
        "lag: table of 10M / of 100k": (1.4999999999999998, "ok"),
    }


def test_growth_is_not_measured_without_the_other_tables():
    beside = {"lag": Figures(ticks=[1.0], duckdb=[2.0], spark=[10.0])}
    assert found(beside, {}, {}) == {
        "lag: Spark / ours": (10.0, "not met"),
        "lag: DuckDB / ours": (2.0, "ok"),
        "lag: table of 10M / of 100k": (None, "not measured"),
    }
