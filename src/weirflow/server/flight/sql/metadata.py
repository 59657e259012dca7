"""The commands of Flight SQL that ask about what there is: the columns of each one's answer, and the answer."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from weirflow.errors import UnsupportedError
from weirflow.server.flight.sql import catalogs, info

if TYPE_CHECKING:
    import pyarrow as pa

    from weirflow.server.flight.sql.catalogs import Listing


class _Asked(NamedTuple):
    columns: Callable[[Any], pa.Schema]
    answer: Callable[[Any, Listing], pa.Table]


def answer_schema(command: Any) -> pa.Schema:
    """The columns of the answer to a command; ``UnsupportedError`` if it is none that asks."""
    return _found(command).columns(command)


def answer(command: Any, listing: Listing) -> pa.Table:
    """The answer to a command, of what a listing shows."""
    return _found(command).answer(command, listing)


def _found(command: Any) -> _Asked:
    name = command.DESCRIPTOR.name
    if name not in _COMMANDS:
        raise UnsupportedError(f"{name} has no answer that can be fetched.")
    return _COMMANDS[name]


def _given(command: Any, field: str) -> Any:
    return getattr(command, field) if command.HasField(field) else None


def _tables(command: Any, listing: Listing) -> pa.Table:
    return listing.tables(
        _given(command, "catalog"),
        _given(command, "db_schema_filter_pattern"),
        _given(command, "table_name_filter_pattern"),
        command.table_types,
        with_columns=command.include_schema,
    )


_REFERENCES = _Asked(lambda _: catalogs.REFERENCES, lambda _, listing: listing.no_references())
_COMMANDS = {
    "CommandGetSqlInfo": _Asked(lambda _: info.INFO_SCHEMA, lambda command, _: info.sql_info(command.info)),
    "CommandGetXdbcTypeInfo": _Asked(
        lambda _: info.TYPES_SCHEMA, lambda command, _: info.type_info(_given(command, "data_type"))
    ),
    "CommandGetCatalogs": _Asked(lambda _: catalogs.CATALOGS, lambda _, listing: listing.catalogs()),
    "CommandGetDbSchemas": _Asked(
        lambda _: catalogs.SCHEMAS,
        lambda command, listing: listing.schemas(
            _given(command, "catalog"), _given(command, "db_schema_filter_pattern")
        ),
    ),
    "CommandGetTables": _Asked(
        lambda command: catalogs.TABLES_WITH_SCHEMAS if command.include_schema else catalogs.TABLES, _tables
    ),
    "CommandGetTableTypes": _Asked(lambda _: catalogs.TABLE_TYPES, lambda _, listing: listing.table_types()),
    "CommandGetPrimaryKeys": _Asked(
        lambda _: catalogs.KEYS,
        lambda command, listing: listing.primary_keys(
            _given(command, "catalog"), _given(command, "db_schema"), command.table
        ),
    ),
    "CommandGetExportedKeys": _REFERENCES,
    "CommandGetImportedKeys": _REFERENCES,
    "CommandGetCrossReference": _REFERENCES,
}
