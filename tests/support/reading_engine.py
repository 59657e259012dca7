"""An engine that reads SQL of its own: each text stands for another one, which the binder can read."""

from __future__ import annotations

from typing import TYPE_CHECKING

from support.flow_engine import FlowEngine

from weirflow.errors import QueryError
from weirflow.sql.bind.query import bind_query
from weirflow.sql.plan import Field
from weirflow.sql.stored import encode_plan

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pyarrow as pa


class ReadingEngine(FlowEngine):
    """Reads the texts of a dictionary: as SQL, as an error to raise, or (None) as the binder does; refuses all others.

    Attributes:
        plans: for some texts, what it returns instead.
        meanings: for some of those, what they are when they are run.
        asked: the texts that it was given, with the relations that there were.
    """

    def __init__(self, texts: Mapping[str, str | Exception | None]) -> None:
        super().__init__()
        self.texts = dict(texts)
        self.plans: dict[str, str] = {}
        self.meanings: dict[str, str] = {}
        self.asked: list[tuple[str, list[str]]] = []

    def resolve(self, sql: str, tables: Mapping[str, pa.Schema]) -> str | None:
        self.asked.append((sql, sorted(tables)))
        if sql in self.plans:
            return self.plans[sql]
        if sql not in self.texts:
            raise QueryError(f"{sql!r} is not in the book.")
        read = self.texts[sql]
        if isinstance(read, Exception):
            raise read
        if read is None:
            return None
        catalog = {name: tuple(Field(one.name, one.type) for one in schema) for name, schema in tables.items()}
        return encode_plan(bind_query(read, catalog))

    def _result(self, sql: str, tables: Mapping[str, pa.Table]) -> pa.Table:
        read = self.meanings.get(sql, self.texts.get(sql))
        return super()._result(read if isinstance(read, str) else sql, tables)
