"""Flight SQL as Arrow's JDBC driver speaks it."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING, Any

import pytest
from py4j.protocol import Py4JJavaError
from support.flight import Flighted, flighted
from support.jdbc import Jdbc, jdbc, rows

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from weirflow import Session


@pytest.fixture(scope="module")
def driver() -> Iterator[Jdbc]:
    with jdbc() as opened:
        yield opened


@pytest.fixture
def served(session: Session, tmp_path: Path) -> Iterator[Flighted]:
    flow = session.flow("shop")
    flow.register_source("orders", "id BIGINT, who STRING, amount DOUBLE", key="id")
    flow.register_view("totals", "SELECT who, sum(amount) AS total FROM orders GROUP BY who")
    flow.tick("orders", [{"id": 1, "who": "ann", "amount": 2.5}, {"id": 2, "who": "bob", "amount": 4.0}])
    with flighted(session, tmp_path) as opened:
        yield opened
    flow.close()


def prepared(connection: Any, sql: str, *values: Any) -> tuple[list[str], Any]:
    """The types that the driver was told, and what the statement returns."""
    with closing(connection.prepareStatement(sql)) as statement:
        known = statement.getParameterMetaData()
        types = [known.getParameterTypeName(number) for number in range(1, known.getParameterCount() + 1)]
        for number, value in enumerate(values, 1):
            put = {int: statement.setLong, float: statement.setDouble, str: statement.setString}[type(value)]
            put(number, value)
        return types, rows(statement.executeQuery()) if sql.startswith("SELECT") else statement.executeUpdate()


def test_statements_and_typed_parameters(driver: Jdbc, served: Flighted) -> None:
    with closing(driver.connect(served.address, token=served.tokens["admin"])) as connection:
        with closing(connection.createStatement()) as statement:
            assert rows(statement.executeQuery("SELECT * FROM shop.totals ORDER BY who")) == [
                {"who": "ann", "total": 2.5},
                {"who": "bob", "total": 4.0},
            ]
            assert statement.executeUpdate("INSERT INTO orders VALUES (3, 'cat', 1.0)") == 1
        inserted = prepared(connection, "INSERT INTO orders (id, amount, who) VALUES (?, ?, ?)", 4, 0.5, "ann")
        assert inserted == (["Int(64, true)", "FloatingPoint(DOUBLE)", "Utf8"], 1)
        found = prepared(
            connection, "SELECT id FROM orders WHERE id + ? < 5 AND who = ? AND amount > ? LIMIT ?", 1, "ann", 1.5, 9
        )
        assert found == (["Int(64, true)", "Utf8", "FloatingPoint(DOUBLE)", "Int(64, true)"], [{"id": 1}])


def test_what_tools_ask_for(driver: Jdbc, served: Flighted) -> None:
    with closing(driver.connect(served.address, user="anyone", password=served.tokens["reader"])) as connection:
        meta = connection.getMetaData()
        assert meta.getDatabaseProductName() == "Weirflow"
        assert meta.getIdentifierQuoteString() == "`"
        assert not meta.supportsTransactions()
        assert not meta.supportsConvert()
        tables = rows(meta.getTables(None, "shop", "%", None))
        assert [(one["TABLE_NAME"], one["TABLE_TYPE"]) for one in tables] == [("orders", "TABLE"), ("totals", "VIEW")]
        columns = rows(meta.getColumns(None, "shop", "orders", None))
        assert [one["COLUMN_NAME"] for one in columns] == ["id", "who", "amount"]
        keys = rows(meta.getPrimaryKeys(None, "shop", "orders"))
        assert [(one["COLUMN_NAME"], one["KEY_SEQ"]) for one in keys] == [("id", 1)]


def test_errors_reach_the_caller(driver: Jdbc, served: Flighted) -> None:
    def failed(call: Any) -> str:
        with pytest.raises(Py4JJavaError) as raised:
            call()
        return str(raised.value.java_exception.toString())

    assert "AUTHENTICATION_FAILED" in failed(lambda: driver.connect(served.address, token="wf_no_token"))
    assert "AUTHENTICATION_FAILED" in failed(lambda: driver.connect(served.address, user="x", password="y"))
    with (
        closing(driver.connect(served.address, token=served.tokens["reader"])) as connection,
        closing(connection.createStatement()) as statement,
    ):
        assert "[TABLE_NOT_FOUND]" in failed(lambda: statement.executeQuery("SELECT * FROM nowhere"))
        assert "[NOT_ALLOWED]" in failed(lambda: statement.executeUpdate("INSERT INTO orders VALUES (9, 'x', 1.0)"))
