import base64
import datetime as dt
import json
from decimal import Decimal
from io import StringIO

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from weirflow.cli import output
from weirflow.cli.checks import satisfies
from weirflow.cli.failures import excerpt, reported
from weirflow.cli.files import write_file
from weirflow.cli.options import ReportOptions
from weirflow.cli.output import Format, write_csv, write_document, write_json, write_jsonl, write_table
from weirflow.cli.result import Result, ResultColumn
from weirflow.errors import ConfigError, SqlPosition, SqlSyntaxError
from weirflow.rows.json_values import json_values

UTC = dt.UTC


def result_of(*batches, limit=None, types=None):
    schema = batches[0].schema
    columns = tuple(
        ResultColumn(name, kind) for name, kind in zip(schema.names, types or map(str, schema.types), strict=True)
    )
    return Result(columns, schema, iter(batches), limit)


def written(write, result):
    sink = StringIO()
    write(result, sink)
    return sink.getvalue()


def two_batches():
    return pa.record_batch({"n": [1, 2]}), pa.record_batch({"n": [3, 4]})


@pytest.mark.parametrize(
    ("values", "kind", "expected"),
    [
        ([1, None], pa.int64(), [1, None]),
        ([True], pa.bool_(), [True]),
        ([0.5, float("nan"), float("inf"), float("-inf")], pa.float64(), [0.5, "NaN", "Infinity", "-Infinity"]),
        ([0.1, None], pa.float32(), [0.1, None]),
        ([Decimal("0.0000001"), Decimal("1.50"), None], pa.decimal128(20, 7), ["0.0000001", "1.5000000", None]),
        ([dt.date(2026, 1, 31), None], pa.date32(), ["2026-01-31", None]),
        ([dt.datetime(2026, 1, 31, 12, tzinfo=UTC), None], pa.timestamp("us", "UTC"), ["2026-01-31T12:00:00Z", None]),
        ([500], pa.timestamp("us"), ["1970-01-01T00:00:00.0005"]),
        ([dt.time(1, 2, 3, 120000), dt.time(0)], pa.time64("us"), ["01:02:03.12", "00:00:00"]),
        ([-(10**8)], pa.duration("us"), ["-PT1M40S"]),
        ([0, 86_400_000_000, 1, None], pa.duration("us"), ["PT0S", "P1D", "PT0.000001S", None]),
        ([b"\x00\xff", None], pa.binary(), [base64.b64encode(b"\x00\xff").decode(), None]),
        ([[1, None], None, []], pa.list_(pa.int32()), [[1, None], None, []]),
        ([[(1, "a")], None], pa.map_(pa.int32(), pa.string()), [{"1": "a"}, None]),
        (
            [{"a": {"b": [b"x"]}}, None],
            pa.struct({"a": pa.struct({"b": pa.list_(pa.binary())})}),
            [{"a": {"b": ["eA=="]}}, None],
        ),
        ([None], pa.null(), [None]),
        ([{}, None], pa.struct([]), [{}, None]),
    ],
    ids=lambda value: str(value) if isinstance(value, pa.DataType) else "",
)
def test_every_type_has_one_spelling_in_json(values, kind, expected):
    array = pa.array(values, kind)
    assert json_values(array) == expected
    padded = pa.concat_arrays([pa.nulls(2, kind), array])  # as a slice, which keeps its parent's buffers
    assert json_values(padded.slice(2)) == expected
    json.dumps(json_values(array), allow_nan=False)


def test_dates_beyond_pythons_years_are_spelt():
    assert json_values(pa.array([-719528, 2932897], pa.int32()).cast(pa.date32())) == ["0000-01-01", "10000-01-01"]


def test_strings_that_are_not_utf8_are_shown_with_replacements():
    bad = pa.array([b"\xffA", None], pa.binary()).view(pa.string())
    assert json_values(bad) == ["\ufffdA", None]


def test_csv_tells_null_from_the_empty_string_and_quotes_what_needs_it():
    batch = pa.record_batch({"a,b": [None, "", 'say "hi"', "two\nlines", " x"], "l": [[1], None, [], [2, 3], None]})
    assert written(write_csv, result_of(batch)) == (
        '"a,b",l\n,[1]\n"",\n"say ""hi""",[]\n"two\nlines","[2,3]"\n" x",\n'
    )


def test_json_lines_and_json_hold_the_same_objects():
    rows = [{"n": number} for number in (1, 2, 3, 4)]
    lines = written(write_jsonl, result_of(*two_batches()))
    assert [json.loads(line) for line in lines.splitlines()] == rows
    assert json.loads(written(write_json, result_of(*two_batches()))) == rows


def test_no_rows_are_still_json_and_csv():
    empty = pa.record_batch({"n": pa.array([], pa.int64())})
    assert json.loads(written(write_json, result_of(empty))) == []
    assert written(write_jsonl, result_of(empty)) == ""
    assert written(write_csv, result_of(empty)) == "n\n"


@pytest.mark.parametrize(
    ("limit", "numbers", "truncated"),
    [(None, [1, 2, 3, 4], False), (4, [1, 2, 3, 4], False), (3, [1, 2, 3], True), (2, [1, 2], True), (1, [1], True)],
)
def test_the_document_says_honestly_whether_there_is_more(limit, numbers, truncated):
    document = json.loads(written(write_document, result_of(*two_batches(), limit=limit, types=["bigint"])))
    assert document == {
        "columns": [{"name": "n", "type": "bigint"}],
        "rows": [[number] for number in numbers],
        "row_count": len(numbers),
        "truncated": truncated,
    }


def test_columns_of_the_same_name_survive_where_they_can_and_are_refused_where_not():
    batch = pa.RecordBatch.from_arrays([pa.array([1]), pa.array([2])], names=["a", "a"])
    assert json.loads(written(write_document, result_of(batch)))["rows"] == [[1, 2]]
    assert written(write_csv, result_of(batch)) == "a,a\n1,2\n"
    with pytest.raises(ConfigError, match="Two columns are called 'a'"):
        written(write_jsonl, result_of(batch))


def test_a_table_shows_null_and_makes_control_characters_visible():
    batch = pa.record_batch({"name": ["ann", None, "\x1b[31m\nx"], "n": [1, 22, None]})
    table = written(write_table, result_of(batch, types=["string", "int"]))
    assert table.splitlines() == [
        "┏━━━━━━━━━━━━━┳━━━━━━┓",
        "┃ name        ┃    n ┃",
        "┡━━━━━━━━━━━━━╇━━━━━━┩",
        "│ ann         │    1 │",
        "│ NULL        │   22 │",
        "│ \\x1b[31m\\nx │ NULL │",
        "└─────────────┴──────┘",
        "3 rows",
    ]


def test_a_table_that_was_cut_says_so():
    table = written(write_table, result_of(*two_batches(), limit=3))
    assert table.splitlines()[-1] == "first 3 rows; use --limit 0 for all"


def test_a_wide_table_is_not_folded_in_a_file():
    batch = pa.record_batch({f"column_{number}": ["x" * 40] for number in range(10)})
    assert "x" * 40 in written(write_table, result_of(batch))


@pytest.mark.parametrize("suffix", ["parquet", "arrow", "csv", "jsonl"])
def test_a_file_holds_all_rows_and_replaces_the_old_one(tmp_path, suffix):
    file = tmp_path / f"rows.{suffix}"
    file.write_text("old")
    write_file(result_of(*two_batches()), file)
    read = {
        "parquet": lambda: pq.read_table(file).to_pylist(),
        "arrow": lambda: pa.ipc.open_file(file).read_all().to_pylist(),
        "csv": lambda: [{"n": int(line)} for line in file.read_text().splitlines()[1:]],
        "jsonl": lambda: [json.loads(line) for line in file.read_text().splitlines()],
    }
    assert read[suffix]() == [{"n": 1}, {"n": 2}, {"n": 3}, {"n": 4}]
    assert [entry.name for entry in tmp_path.iterdir()] == [file.name]


def test_a_failure_leaves_the_old_file_and_no_other(tmp_path):
    def broken():
        yield two_batches()[0]
        raise SqlSyntaxError("boom")

    file = tmp_path / "rows.parquet"
    file.write_text("old")
    schema = two_batches()[0].schema
    with pytest.raises(SqlSyntaxError):
        write_file(Result((ResultColumn("n", "bigint"),), schema, broken()), file)
    assert [(entry.name, entry.read_text()) for entry in tmp_path.iterdir()] == [("rows.parquet", "old")]


def test_every_format_has_a_writer():
    assert set(output.WRITERS) == set(Format)


@pytest.mark.parametrize(
    ("sql", "position", "lines"),
    [
        ("SELECT *\nFORM t", SqlPosition(2, 6), ["FORM t", "     ^"]),
        ("SELECT nope", SqlPosition(1, 8, "nope"), ["SELECT nope", "       ^^^^"]),
        ("SELECT '日本', nope", SqlPosition(1, 14, "nope"), ["SELECT '日本', nope", "               " + " ^^^^"[1:]]),
        ("\tSELECT x", SqlPosition(1, 9, "x"), [" SELECT x", "        ^"]),
        ("SELECT 1 +", SqlPosition(1, 11), ["SELECT 1 +", "          ^"]),
        ("SELECT 1", SqlPosition(7, 1), []),
    ],
)
def test_an_excerpt_points_at_the_place(sql, position, lines):
    assert excerpt(sql, position) == lines


@pytest.mark.parametrize("as_json", [False, True])
def test_a_bug_is_reported_without_a_traceback(capsys, as_json):
    with pytest.raises(Exception) as ended, reported(ReportOptions(json=as_json)):  # noqa: PT011 - typer's Exit
        raise RuntimeError("oops")
    assert ended.value.exit_code == 1
    assert "RuntimeError: oops" in (shown := capsys.readouterr().err)
    assert "Traceback" not in shown


@pytest.mark.parametrize(
    ("version", "wanted", "holds"),
    [
        ("4.1.3", ">=4.1,<5", True),
        ("4.1", ">=4.1.0", True),
        ("5.0.0", "<5,>=4.1", False),
        ("2.3.3", "", True),
        ("4.2.0rc1", ">=4.2", True),
    ],
)
def test_version_ranges(version, wanted, holds):
    assert satisfies(version, wanted) is holds
