"""Statements about catalogs: what they say, and that no error repeats a secret in them."""

import pytest

from weirflow.errors import SqlSyntaxError
from weirflow.sql.statements.catalogs import (
    CreateCatalog,
    DropCatalog,
    ShowCatalogs,
    described,
    read_catalog_statement,
)

CANARY = "canary-7f3a9c"
REST = "iceberg-rest+https://host/api"


@pytest.mark.parametrize(
    ("sql", "statement"),
    [
        (f"CREATE CATALOG lake USING '{REST}'", CreateCatalog("lake", REST, {})),
        (
            "create catalog if not exists `my-lake` using Iceberg_REST with (uri='https://host/api', path_style=TRUE)",
            CreateCatalog("my-lake", REST, {"path_style": "true"}, if_not_exists=True),
        ),
        (
            "CREATE CATALOG a USING iceberg_glue WITH (`s3.Part-Size` = 5, warehouse = 's3://b/x');",
            CreateCatalog("a", "iceberg-glue", {"s3.Part-Size": "5", "warehouse": "s3://b/x"}),
        ),
        ("DROP CATALOG lake", DropCatalog("lake")),
        ("DROP CATALOG IF EXISTS lake ;", DropCatalog("lake", if_exists=True)),
        ("SHOW CATALOGS", ShowCatalogs()),
        ("SHOW CATALOGS LIKE 'l*|x'", ShowCatalogs("l*|x")),
        ("SHOW CATALOGS 'l*'", ShowCatalogs("l*")),
    ],
)
def test_statements_are_read(sql, statement):
    assert read_catalog_statement(sql) == statement


def test_secrets_come_as_parameters():
    sql = "CREATE CATALOG lake USING iceberg_rest WITH (uri = ?, token = ?)"
    read = read_catalog_statement(sql, ["https://host/api", CANARY])
    assert read == CreateCatalog("lake", REST, {"token": CANARY})
    assert CANARY not in repr(read)


@pytest.mark.parametrize(
    ("sql", "says"),
    [
        (f"CREATE CATALOG lake USING x WITH (token '{CANARY}')", "Expected =, found 'a text in quotes'"),
        (f"CREATE CATALOG lake USING x WITH (a = 'b' '{CANARY}')", r"Expected \), found 'a text in quotes'"),
        (f"CREATE CATALOG lake USING x WITH (a = '{CANARY}', a = 'b')", "'a' is given twice"),
        (f"CREATE CATALOG lake USING x WITH (token = '{CANARY}", "this is not closed"),
        (f"CREATE CATALOG lake '{CANARY}'", "Expected USING and an address"),
        (f"CREATE CATALOG lake USING '{REST}' WITH (uri = '{CANARY}')", "The option uri goes with USING and the name"),
        ("CREATE OR REPLACE CATALOG lake USING x", "A catalog is not replaced"),
        ("CREATE CATALOG", "Expected a name, the statement ends"),
        ("DROP CATALOG a b", "Expected the end of the statement"),
        ("DROP CATALOG a.b", "Expected the end of the statement"),
        ("SHOW CATALOGS x", "Expected a string"),
        ("SHOW CATALOGS LIKE 5", "expected a text in quotes"),
    ],
)
@pytest.mark.parametrize("params", [None, {"unused": 1}])
def test_what_cannot_be_read_is_named_without_secrets(sql, says, params):
    with pytest.raises(SqlSyntaxError, match=f"(?i){says}") as caught:
        read_catalog_statement(sql, params)
    assert CANARY not in f"{caught.value} {vars(caught.value)}"


def test_lists_of_what_runs_show_no_options():
    sql = f"CREATE  CATALOG lake\nUSING iceberg_rest WITH (token = '{CANARY}')"
    assert described(sql) == "CREATE CATALOG lake USING iceberg_rest"
    assert described(f"CREATE CATALOG lake USING '{CANARY}'") == "CREATE CATALOG lake USING"
