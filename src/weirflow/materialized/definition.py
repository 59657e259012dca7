"""``Definition``: what a materialized view computes, as the property of its table has it."""

from __future__ import annotations

from enum import StrEnum

import msgspec

from weirflow.errors import StorageError
from weirflow.sql.settings import SqlSettings  # noqa: TC001 - msgspec reads the annotations

PROPERTY = "weirflow.view"
"""The property of a table that makes it a materialized view."""
PLACE = "weirflow.state"
"""The property that says where state and history are, if not in the table's folder."""
FORMAT = 1


class RefreshPolicy(StrEnum):
    """How a materialized view may be refreshed."""

    AUTO = "auto"
    """By increments or in full, whichever is expected to be faster."""
    INCREMENTAL = "incremental"
    """By increments wherever possible, else in full."""
    STRICT = "incremental strict"
    """By increments; a refresh that cannot be one fails, but for the first and one that is asked for in full."""
    FULL = "full"
    """In full, always: no state is kept."""


class Definition(msgspec.Struct, frozen=True):
    """What is written down when a view is created.

    Attributes:
        id: tells the view from others that had its name.
        sql: the query.
        catalog: the catalog in which names in it are looked up.
        namespace: the schema in which they are.
        settings: what the text leaves open.
        policy: how it may be refreshed.
        revision: how often it was given another query.
    """

    id: str
    sql: str
    catalog: str
    namespace: str
    settings: SqlSettings
    policy: RefreshPolicy
    format: int = FORMAT
    revision: int = 0


def encode_definition(definition: Definition) -> str:
    """The value of the property."""
    return msgspec.json.encode(definition).decode()


def decode_definition(text: str, table: str) -> Definition:
    """What the property of a table says; ``StorageError`` if it cannot be read."""
    hint = "use the version of Weirflow that created it, or create the view again"
    try:
        found = msgspec.json.decode(text, type=Definition)
    except msgspec.MsgspecError as error:
        raise StorageError(f"The definition of {table} cannot be read: {error}.", uri=table, hint=hint) from error
    if found.format != FORMAT:
        message = f"The definition of {table} has the format {found.format}, this Weirflow reads {FORMAT}."
        raise StorageError(message, uri=table, hint=hint)
    return found
