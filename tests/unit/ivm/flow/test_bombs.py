# ruff: noqa: E501 - tables of values read better in long lines
"""Small hostile input cannot stall a tick or eat the memory: it is computed at once, or refused with a typed error.

Each test runs in a child process that may take 20 seconds and 4 GiB, so that what is broken fails instead of hanging.
"""

import pytest
from support.limited import LimitedRunner

FLOW = """
    import time
    from weirflow.errors import DataError, WeirflowError
    from weirflow.ivm.flow import IncrementalFlow
    from weirflow.ivm.zset.delta import DeltaBatch
    import pyarrow as pa

    def flow_of(view, columns="s STRING, p STRING, n INT"):
        flow = IncrementalFlow()
        flow.register_source("t", columns)
        flow.register_view("v", view)
        return flow

    def value_of(expression, **row):
        flow = flow_of(f"SELECT {expression} AS x FROM t")
        flow.tick("t", [{"s": "", "p": "", "n": 0} | row])
        return flow.snapshot("v")["x"][0].as_py()

    def refusal_of(view, rows, columns="s STRING, p STRING, n INT"):
        '''The code of the error that the tick raises; it is pending then, and works again once it is discarded.'''
        flow = flow_of(view, columns)
        try:
            flow.tick("t", rows)
        except DataError as error:
            assert flow.pending and flow.epoch == 0 and error.hint
            flow.discard()
            assert flow.snapshot("v").num_rows == 0
            flow.tick("t", [])
            return error.code
        return "nothing"
"""


@pytest.fixture(scope="module")
def printed():
    """Runs code behind that of flows; the lines that it prints."""
    with LimitedRunner() as runner:
        yield lambda code, **limits: runner.run(FLOW + code, **limits).split("\n")[:-1]


def test_a_regular_expression_bomb_is_matched_in_linear_time(printed):
    assert printed(r"""
    text = "a" * 100_000 + "!"
    print(value_of("s RLIKE '^(a+)+$'", s=text))
    print(value_of("s RLIKE '(?:a|aa)+$'", s=text))
    print(len(value_of("regexp_replace(s, '(?:a+)+!', 'x')", s=text)))
    print(len(value_of("regexp_extract(s, '^((?:a|ab)+)!$', 1)", s=text)))
    print(value_of("split(s, '(?:a+)+b')", s=text) == [text])
    """) == ["False", "False", "1", "100000", "True"]


def test_an_expression_that_would_be_huge_once_compiled_is_refused(printed):
    assert (
        printed(r"""
    for expression in ("(a{200}){200}", "((a{50}){50}){50}", "(a{1000}){1000}", "(" * 5000 + "a" + ")" * 5000, "a" * 5000):
        try:
            flow_of(f"SELECT s RLIKE '{expression}' AS x FROM t")
        except WeirflowError as error:
            print(error.code)
    """)
        == ["NOT_INCREMENTAL"] * 5
    )


def test_like_with_many_wildcards_does_not_try_all_their_places(printed):
    assert printed(r"""
    text = "a" * 3000
    print(value_of("s LIKE p", s=text, p="%a" * 500 + "%b"))
    print(value_of("s LIKE p", s=text, p="%a" * 500 + "%"))
    print(value_of("s ILIKE p", s=text, p="%_A_" * 300 + "%"))
    print(value_of("s LIKE '" + "%a" * 900 + "%b'", s=text))
    print(value_of("s LIKE '" + "%a_" * 900 + "%'", s=text))
    """) == ["False", "True", "True", "False", "True"]


def test_a_long_text_is_cast_in_linear_time(printed):
    assert printed(r"""
    n = 500_000
    for kind, text in {
        "DOUBLE": "1" * n + "x",
        "FLOAT": "1" * n + "x",
        "DECIMAL(10,2)": "1" * n + "x",
        "DECIMAL(10,3)": "0e2000000000",
        "INT": "1" * n,
        "BIGINT": "0" * n + "7",
        "DATE": "2020-01-01T" + " " * n + "x",
        "TIMESTAMP": "2020-01-01 10:11:12+01:00" + " " * n + "x",
    }.items():
        print(value_of(f"CAST(TRY_CAST(s AS {kind}) AS STRING)", s=text))
    print(value_of("CAST(CAST(s AS DECIMAL(10,3)) AS STRING)", s="0." + "1" * n))
    print(value_of("CAST(CAST(s AS FLOAT) AS STRING)", s="0." + "1" * n))
    try:
        value_of("CAST(s AS DOUBLE)", s="1" * n + "x")
    except DataError as error:
        print(error.condition, len(error.message) < 500)
    """) == ["None", "None", "None", "None", "None", "7", "2020-01-01", "None", "0.111", "0.11111111", "CAST_INVALID_INPUT True"]  # fmt: skip


def test_other_functions_of_two_texts_take_linear_time(printed):
    assert printed(r"""
    some = "a" * 100_000
    print(len(value_of("substring_index(s, p, -1)", s=some * 8, p=some + "b" + some)))
    print(len(value_of("trim(BOTH p FROM s)", s=some * 4, p="".join(map(chr, range(0x10000, 0x10FFFF))) + "a")))
    """) == ["800000", "0"]


def test_a_cross_product_that_does_not_fit_is_refused_before_it_is_made(printed):
    assert printed(r"""
    rows = {"k": [1] * 100_000, "v": list(range(100_000)), "s": ["x"] * 100_000}
    started = time.monotonic()
    for condition in ("a.k = b.k", "TRUE"):
        view = f"SELECT a.v, b.v AS w FROM t AS a JOIN t AS b ON {condition}"
        print(refusal_of(view, rows, "k BIGINT, v BIGINT, s STRING"))
    print(time.monotonic() - started < 10)
    """) == ["RESULT_TOO_LARGE", "RESULT_TOO_LARGE", "True"]


def test_a_large_value_is_not_copied_for_all_that_it_meets(printed):
    assert (
        printed(r"""
    rows = [{"k": 1, "v": number, "s": "x" * 2_000_000 if number == 0 else "y"} for number in range(2000)]
    columns = "k BIGINT, v BIGINT, s STRING"
    print(refusal_of("SELECT a.s, b.v FROM t AS a JOIN t AS b ON a.k = b.k", rows, columns))
    print(refusal_of("SELECT s, x FROM t LATERAL VIEW explode(split(repeat('a,', 4000), ',')) AS x", rows[:1], columns))
    """)
        == ["RESULT_TOO_LARGE"] * 2
    )


def test_a_join_of_which_little_is_left_needs_little_memory(printed):
    assert printed(r"""
    count = 6_000
    flow = flow_of("SELECT a.v, b.v AS w FROM t AS a JOIN t AS b ON a.k = b.k AND a.v + b.v = 1", "k BIGINT, v BIGINT")
    flow.tick("t", {"k": [1] * count, "v": list(range(count))})
    print(sorted(map(tuple, (row.values() for row in flow.snapshot("v").to_pylist()))))
    """, gibibytes=2) == ["[(0, 1), (1, 0)]"]  # fmt: skip


def test_a_huge_weight_is_not_written_out(printed):
    assert printed(r"""
    delta = DeltaBatch.from_weighted(pa.table({"k": pa.array([1], pa.int64()), "v": pa.array([2], pa.int64()), "_weight": pa.array([1 << 40], pa.int64())}))
    for view in (
        "SELECT k, collect_list(v) AS x FROM t GROUP BY k",
        "SELECT k, listagg(string(v)) WITHIN GROUP (ORDER BY v) AS x FROM t GROUP BY k",
        "SELECT k, row_number() OVER (PARTITION BY k ORDER BY v) AS x FROM t",
    ):
        print(refusal_of(view, delta, "k BIGINT, v BIGINT"))
    flow = flow_of("SELECT k, percentile(v, array(0.1, 0.5)) AS x FROM t GROUP BY k", "k BIGINT, v BIGINT")
    flow.tick("t", delta)
    flow.tick("t", {"k": [1, 1], "v": [1, 3]})
    print(flow.snapshot("v").to_pylist())
    """) == [*["RESULT_TOO_LARGE"] * 3, "[{'k': 1, 'x': [2.0, 2.0]}]"]  # fmt: skip


def test_windows_that_hold_a_moment_too_often_are_refused(printed):
    assert printed(r"""
    view = "SELECT window.start AS x, COUNT(*) AS n FROM t GROUP BY window(at, '100 days', '1 second')"
    import datetime
    rows = {"at": [datetime.datetime(2024, 1, 1, 0, 0, second // 10, second) for second in range(600)]}
    print(refusal_of(view, rows, "at TIMESTAMP_NTZ"))
    """) == ["RESULT_TOO_LARGE"]


def test_lists_of_all_frames_are_not_made_when_they_are_too_long(printed):
    assert printed(r"""
    view = "SELECT v, collect_list(v) OVER (ORDER BY v) AS x FROM t"
    print(refusal_of(view, {"v": list(range(50_000))}, "v BIGINT"))
    """) == ["RESULT_TOO_LARGE"]


def test_statements_are_told_apart_in_linear_time(printed):
    assert printed(r"""
    from weirflow.sql.statements.kinds import is_query, split_statements
    print(is_query("/**/" * 100_000 + "(SELECT 1)"), is_query("(" * 100_000 + "SELECT 1"))
    print(is_query("/*" * 100_000 + "*/" * 100_000 + "SELECT 1"), is_query("/* " * 100_000 + "SELECT 1"))
    for begun in ("SELECT ';", "WITH t AS (SELECT ", "FROM t;"):
        print([is_query(begun + more * 100_000) for more in ("\\'", "/* ", "`", "r'", '"', "(", "a.", ";")])
    print(len(split_statements("SELECT '" + "\\'" * 100_000 + "'; SELECT 1" + "/* ;" * 100_000)))
    """) == [
        "True True",
        "True False",
        "[True, True, True, True, True, True, True, True]",
        "[False, False, False, False, False, False, False, False]",
        "[False, False, False, False, False, False, False, True]",
        "2",
    ]
