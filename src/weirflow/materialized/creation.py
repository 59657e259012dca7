"""``create_view``: makes the table of a materialized view, empty until its first refresh."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from weirflow.errors import ConfigError
from weirflow.flows.own_session import settings_of
from weirflow.flows.sinks.table_commits import COMMITS
from weirflow.materialized.definition import PLACE, PROPERTY, Definition, RefreshPolicy, encode_definition
from weirflow.materialized.opened import classic_spark
from weirflow.materialized.sources import SourceTables
from weirflow.sql.quoting import text_literal
from weirflow.types import one_of

if TYPE_CHECKING:
    from weirflow.flows.host import FlowSession

_POLICY = "refresh_policy"
_STATE_LOCATION = "state_location"


@dataclass(frozen=True)
class NewView:
    """What is to be made.

    Attributes:
        name: the table's name, as SQL has it.
        sql: the query.
        using: ``iceberg`` or ``delta``.
        partitioned_by: what stands in PARTITIONED BY, as SQL has it; None for none.
        comment: the table's.
        properties: of the table; ``refresh_policy`` and ``state_location`` are the view's.
        if_not_exists: whether a table that is there is left as it is.
    """

    name: str
    sql: str
    using: str = "iceberg"
    partitioned_by: str | None = None
    comment: str | None = None
    properties: Mapping[str, str] = field(default_factory=dict)
    if_not_exists: bool = False


def create_view(session: FlowSession, wanted: NewView) -> None:
    """Make the table; its rows come with the first refresh.

    Raises:
        AlreadyExists: there is one of this name.
        ConfigError: it cannot be kept so.
    """
    using = wanted.using.casefold()
    if using not in COMMITS:
        raise ConfigError(
            f"A materialized view cannot be kept as {wanted.using!r}.", hint="say USING iceberg, or USING delta"
        )
    native = classic_spark(session)
    properties = dict(wanted.properties)
    definition = Definition(
        id=uuid.uuid4().hex,
        sql=wanted.sql,
        catalog=native.catalog.currentCatalog(),
        namespace=native.catalog.currentDatabase(),
        settings=settings_of(native),
        policy=one_of(RefreshPolicy, properties.pop(_POLICY, RefreshPolicy.AUTO), "No refresh policy is called"),
    )
    properties[PROPERTY] = encode_definition(definition)
    place = properties.pop(_STATE_LOCATION, None)
    if place is not None:
        properties[PLACE] = place

    def create() -> None:
        query = SourceTables(native, definition).query()
        columns = query._jdf.schema().asNullable().toDDL()  # noqa: SLF001 - as CREATE TABLE takes them
        native.sql(_statement(wanted, using, columns, properties))

    session.operations.run(f"create {wanted.name}", create)


def _statement(wanted: NewView, using: str, columns: str, properties: Mapping[str, str]) -> str:
    clauses = [
        f"CREATE TABLE {'IF NOT EXISTS ' if wanted.if_not_exists else ''}{wanted.name} ({columns}) USING {using}",
        *([] if wanted.partitioned_by is None else [f"PARTITIONED BY ({wanted.partitioned_by})"]),
        *([] if wanted.comment is None else [f"COMMENT {text_literal(wanted.comment)}"]),
        f"TBLPROPERTIES ({', '.join(f'{text_literal(one)} = {text_literal(properties[one])}' for one in properties)})",
    ]
    return "\n".join(clauses)
