"""The messages of Arrow Flight SQL, by the field numbers that its specification gives them.

They are declared here, and not generated: code of a protocol buffer compiler runs with one or two major versions of
its library only, and what is declared runs with all.
"""

from __future__ import annotations

from typing import Any

from google.protobuf import (  # type: ignore[import-untyped]  # its types are a package of their own
    any_pb2,
    descriptor_pb2,
    descriptor_pool,
    message,
    message_factory,
    timestamp_pb2,
)

from weirflow.errors import ConfigError

_PACKAGE = "arrow.flight.protocol"
_Field = descriptor_pb2.FieldDescriptorProto
_KINDS = {
    "bool": _Field.TYPE_BOOL,
    "bytes": _Field.TYPE_BYTES,
    "int32": _Field.TYPE_INT32,
    "int64": _Field.TYPE_INT64,
    "string": _Field.TYPE_STRING,
    "uint32": _Field.TYPE_UINT32,
}
# Enumerations are declared as int32, which have the same bytes.
_FLIGHT = {
    "FlightDescriptor": "int32 type = 1; bytes cmd = 2; repeated string path = 3",
    "Ticket": "bytes ticket = 1",
    "Location": "string uri = 1",
    "FlightEndpoint": (
        "Ticket ticket = 1; repeated Location location = 2; google.protobuf.Timestamp expiration_time = 3; "
        "bytes app_metadata = 4"
    ),
    "FlightInfo": (
        "bytes schema = 1; FlightDescriptor flight_descriptor = 2; repeated FlightEndpoint endpoint = 3; "
        "int64 total_records = 4; int64 total_bytes = 5; bool ordered = 6; bytes app_metadata = 7"
    ),
    "CancelFlightInfoRequest": "FlightInfo info = 1",
    "CancelFlightInfoResult": "int32 status = 1",
    "RenewFlightEndpointRequest": "FlightEndpoint endpoint = 1",
    "CloseSessionRequest": "",
    "CloseSessionResult": "int32 status = 1",
}
_SQL = {
    "CommandGetSqlInfo": "repeated uint32 info = 1",
    "CommandGetXdbcTypeInfo": "optional int32 data_type = 1",
    "CommandGetCatalogs": "",
    "CommandGetDbSchemas": "optional string catalog = 1; optional string db_schema_filter_pattern = 2",
    "CommandGetTables": (
        "optional string catalog = 1; optional string db_schema_filter_pattern = 2; "
        "optional string table_name_filter_pattern = 3; repeated string table_types = 4; bool include_schema = 5"
    ),
    "CommandGetTableTypes": "",
    "CommandGetPrimaryKeys": "optional string catalog = 1; optional string db_schema = 2; string table = 3",
    "CommandGetExportedKeys": "optional string catalog = 1; optional string db_schema = 2; string table = 3",
    "CommandGetImportedKeys": "optional string catalog = 1; optional string db_schema = 2; string table = 3",
    "CommandGetCrossReference": (
        "optional string pk_catalog = 1; optional string pk_db_schema = 2; string pk_table = 3; "
        "optional string fk_catalog = 4; optional string fk_db_schema = 5; string fk_table = 6"
    ),
    "ActionCreatePreparedStatementRequest": "string query = 1; optional bytes transaction_id = 2",
    "ActionCreatePreparedStatementResult": (
        "bytes prepared_statement_handle = 1; bytes dataset_schema = 2; bytes parameter_schema = 3"
    ),
    "ActionClosePreparedStatementRequest": "bytes prepared_statement_handle = 1",
    "ActionCancelQueryRequest": "bytes info = 1",
    "ActionCancelQueryResult": "int32 result = 1",
    "CommandStatementQuery": "string query = 1; optional bytes transaction_id = 2",
    "CommandStatementUpdate": "string query = 1; optional bytes transaction_id = 2",
    "CommandStatementSubstraitPlan": "optional bytes transaction_id = 2",
    "CommandPreparedStatementQuery": "bytes prepared_statement_handle = 1",
    "CommandPreparedStatementUpdate": "bytes prepared_statement_handle = 1",
    "TableDefinitionOptions": "int32 if_not_exist = 1; int32 if_exists = 2",
    "IngestOption": "string key = 1; string value = 2",
    "CommandStatementIngest": (
        "TableDefinitionOptions table_definition_options = 1; string table = 2; optional string schema = 3; "
        "optional string catalog = 4; bool temporary = 5; optional bytes transaction_id = 6; "
        "repeated IngestOption options = 1000"
    ),
    "TicketStatementQuery": "bytes statement_handle = 1",
    "DoPutUpdateResult": "int64 record_count = 1",
    "DoPutPreparedStatementResult": "optional bytes prepared_statement_handle = 1",
}


def _declared(file: str, package: str, messages: dict[str, str]) -> dict[str, Any]:
    """The classes of messages, from declarations in the words of a ``.proto`` file."""
    declared = descriptor_pb2.FileDescriptorProto(
        name=file, package=package, syntax="proto3", dependency=["google/protobuf/timestamp.proto"]
    )
    for name, fields in messages.items():
        kind = declared.message_type.add(name=name)
        for field in filter(None, fields.split("; ")):
            _add(kind, field, package, messages)
    pool = descriptor_pool.DescriptorPool()  # of our own: programs around us may declare the same names
    pool.AddSerializedFile(timestamp_pb2.DESCRIPTOR.serialized_pb)
    pool.AddSerializedFile(declared.SerializeToString())
    return {name: message_factory.GetMessageClass(pool.FindMessageTypeByName(f"{package}.{name}")) for name in messages}


def _add(kind: Any, field: str, package: str, messages: dict[str, str]) -> None:
    """Add a field, such as ``repeated string path = 3``, to the declaration of a message."""
    words, number = field.split(" = ")
    *labels, type_name, name = words.split()
    added = kind.field.add(name=name, number=int(number), label=_Field.LABEL_OPTIONAL)
    if "repeated" in labels:
        added.label = _Field.LABEL_REPEATED
    if "optional" in labels:  # which proto3 writes as a choice of one
        added.proto3_optional = True
        added.oneof_index = len(kind.oneof_decl)
        kind.oneof_decl.add(name=f"_{name}")
    if type_name in _KINDS:
        added.type = _KINDS[type_name]
    else:
        added.type = _Field.TYPE_MESSAGE
        added.type_name = f".{package}.{type_name}" if type_name in messages else f".{type_name}"


flight: Any = type("flight", (), _declared("weirflow/flight.proto", _PACKAGE, _FLIGHT))
"""Messages of Flight itself, by name."""
sql: Any = type("sql", (), _declared("weirflow/flight_sql.proto", f"{_PACKAGE}.sql", _SQL))
"""Messages of Flight SQL, by name."""


def wrapped(content: Any) -> bytes:
    """A message in an envelope that says its type, as Flight SQL sends commands and answers."""
    envelope = any_pb2.Any(
        type_url=f"type.googleapis.com/{content.DESCRIPTOR.full_name}", value=content.SerializeToString()
    )
    content_bytes: bytes = envelope.SerializeToString()
    return content_bytes


def unwrapped(data: bytes) -> Any | None:
    """The message of Flight SQL in an envelope; None if the bytes are no such envelope.

    Raises:
        ConfigError: the envelope names a message of Flight SQL that is not known, or holds other bytes.
    """
    envelope = any_pb2.Any()
    try:
        envelope.ParseFromString(data)
    except message.DecodeError:
        return None
    package, _, name = envelope.type_url.rpartition("/")[2].rpartition(".")
    if package != f"{_PACKAGE}.sql":
        return None
    if name not in _SQL:
        raise ConfigError(f"The message {name} of Flight SQL is not known here.")
    return parsed(getattr(sql, name), envelope.value)


def parsed(kind: Any, data: bytes) -> Any:
    """A message of a kind.

    Raises:
        ConfigError: the bytes are none.
    """
    content = kind()
    try:
        content.ParseFromString(data)
    except message.DecodeError:
        raise ConfigError(f"The bytes are not a {kind.DESCRIPTOR.name} of Flight SQL.") from None
    return content
