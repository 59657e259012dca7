from decimal import Decimal

import pytest

from weirflow.cli.options import QueryOptions, SessionOptions, literal
from weirflow.cli.tables import TableFile, _is_one_document, _local_source, parse_tables
from weirflow.errors import PathNotFound
from weirflow.types import Placement


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("7", 7),
        ("-7", -7),
        ("9223372036854775808", Decimal(2**63)),
        ("1.5", 1.5),
        (".5e3", 500.0),
        ("True", True),
        ("FALSE", False),
        ("null", None),
        ("", ""),
        ("nan", "nan"),
        ("2026-01-31", "2026-01-31"),
        ("'007'", "007"),
        ("'it''s'", "it's"),
        ("it's", "it's"),
    ],
)
def test_parameters_are_read_as_sql_literals(text, value):
    assert (type(literal(text)), literal(text)) == (type(value), value)


def test_a_value_may_hold_an_equals_sign():
    assert QueryOptions(param=["a=b=c", "n=1"]).params() == {"a": "b=c", "n": 1}


def test_the_placement_follows_from_the_options(tmp_path):
    assert SessionOptions(endpoint="sc://h:1").arguments()["placement"] is Placement.DISTRIBUTED
    assert SessionOptions(path=tmp_path).arguments()["placement"] is Placement.SINGLE_NODE
    assert set(SessionOptions().arguments().values()) == {None}


def test_spark_conf_and_packages_are_collected():
    arguments = SessionOptions(conf=["spark.a=1", "spark.b=x=y"], package=["kafka", "s3"]).arguments()
    assert arguments["spark_conf"] == {"spark.a": "1", "spark.b": "x=y"}
    assert arguments["packages"] == ("kafka", "s3")


def test_tables_keep_their_names_and_paths():
    assert parse_tables(["a=x.csv", "b=s3://bucket/k=v/x.parquet"]) == [
        TableFile("a", "x.csv"),
        TableFile("b", "s3://bucket/k=v/x.parquet"),
    ]


@pytest.mark.parametrize(
    ("name", "source"),
    [
        ("a.csv", "csv"),
        ("a.CSV", "csv"),
        ("a.csv.gz", "csv"),
        ("a.b.parquet", "parquet"),
        ("a.json", "json"),
        ("a.jsonl", "json"),
        ("a.ndjson.zst", "json"),
    ],
)
def test_the_format_is_known_by_the_suffix(tmp_path, name, source):
    (tmp_path / name).write_bytes(b"")
    assert _local_source(str(tmp_path / name)) == (source, str(tmp_path / name), {})


def test_a_folder_is_known_by_the_files_in_it(tmp_path):
    (tmp_path / "day=1").mkdir()
    for name in ("day=1/part-0.snappy.parquet", "_SUCCESS", ".part-0.crc"):
        (tmp_path / name).touch()
    assert _local_source(str(tmp_path))[0] == "parquet"


def test_names_with_glob_characters_mean_themselves_and_patterns_what_they_match(tmp_path):
    (tmp_path / "a[1].csv").touch()
    assert _local_source(f"{tmp_path}/a[1].csv")[1] == f"{tmp_path}/a\\[1\\].csv"
    assert _local_source(f"{tmp_path}/*.csv")[1] == f"{tmp_path}/*.csv"
    with pytest.raises(PathNotFound):
        _local_source(f"{tmp_path}/*.parquet")


@pytest.mark.parametrize(
    ("text", "is_one"),
    [
        ('{"a": 1}\n{"a": 2}\n', False),
        ('[{"a": 1}]', False),
        ("", False),
        ('[\n  {"a": 1}\n]', True),
        ('\n{\n  "a": 1\n}', True),
        ("not json", False),
    ],
)
def test_json_over_several_lines_is_told_from_json_lines(tmp_path, text, is_one):
    file = tmp_path / "a.json"
    file.write_text(text)
    assert _is_one_document(file) is is_one
