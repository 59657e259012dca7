"""An aggregate in a correlated subquery that finds no rows gives what it gives over no rows."""

import pytest

from weirflow import IncrementalFlow
from weirflow.errors import NotIncremental
from weirflow.sql.functions.aggregates.signatures import AGGREGATES, INTERNAL_AGGREGATES

CALLS = {
    **{name: f"{name}(x)" for name in AGGREGATES},
    **{
        name: f"{name}(d, d)"
        for name in AGGREGATES
        if name.startswith(("corr", "covar_", "regr_")) or name in ("min_by", "max_by")
    },
    **{name: f"{name}(b)" for name in ("bool_and", "bool_or")},
    **{name: f"{name}(s)" for name in ("bitmap_or_agg", "bitmap_and_agg")},
    "vector_avg": "vector_avg(v)",
    "percentile": "percentile(x, 0.5)",
    "percentile_disc": "percentile_disc(0.5) WITHIN GROUP (ORDER BY x)",
    "mode": "mode(x, true)",
    "listagg": "listagg(e) WITHIN GROUP (ORDER BY e)",
    "count_min_sketch": "count_min_sketch(x, 0.5D, 0.5D, 1)",
}
UNDETERMINED = {"first", "last", "any_value"}


@pytest.fixture
def flow():
    with IncrementalFlow() as flow:
        flow.register_source("t", "k BIGINT")
        flow.register_source("u", "k BIGINT, x BIGINT, d DOUBLE, b BOOLEAN, s BINARY, e STRING, v ARRAY<DOUBLE>")
        yield flow


@pytest.mark.parametrize("name", sorted(AGGREGATES.keys() - INTERNAL_AGGREGATES - UNDETERMINED))
def test_what_it_gives_over_no_rows(flow, name):
    flow.register_view("alone", f"SELECT {CALLS[name]} AS v FROM u WHERE k = 9")
    try:
        flow.register_view("asked", f"SELECT (SELECT {CALLS[name]} FROM u WHERE u.k = t.k) AS v FROM t")
    except NotIncremental:
        assert name == "count_min_sketch"
        return
    flow.tick("t", [{"k": 9}])
    assert flow.snapshot("asked").to_pylist() == flow.snapshot("alone").to_pylist()
