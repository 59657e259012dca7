"""The catalogue that the SQL tests share."""

from __future__ import annotations

import pytest

from weirflow.sql.plan import Field
from weirflow.sql.typing.type_syntax import parse_ddl

SCHEMAS = {
    "t": (
        "id INT, a INT, b BIGINT, amount DECIMAL(10,2), name STRING, ts TIMESTAMP, d DATE, arr ARRAY<INT>, "
        "m MAP<STRING, INT>, s STRUCT<x: INT, y: STRUCT<z: STRING>>, f DOUBLE, ok BOOLEAN"
    ),
    "u": "id INT, k INT, v STRING",
    "n": "x INT",
}


@pytest.fixture(scope="session")
def catalog() -> dict[str, tuple[Field, ...]]:
    return {name: tuple(Field(part.name, part.type) for part in parse_ddl(ddl)) for name, ddl in SCHEMAS.items()}
