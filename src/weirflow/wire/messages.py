"""The messages of the protocol: what is asked over Flight, and what is answered.

All are MessagePack maps. A field that is unknown is skipped and one that is missing has its default, so that a server
and a client of neighbouring versions understand each other; ``PROTOCOL`` counts up when they would not.

=====================  ====================================  ==============================================
call                   asked                                 answered
=====================  ====================================  ==============================================
``DoAction`` TICK      ``Tick``                              ``Summary``
``DoAction`` CALL      ``Call``                              what ``calls.METHODS`` says for its method
``DoPut``              ``Put`` as the descriptor's command   ``Summary`` as metadata, after the last batch
``GetFlightInfo``      ``Statement`` or ``Result``           endpoints, whose tickets are the server's own
                       as the descriptor's command
``DoGet``              ``Rows``, ``FlowQuery`` or ``Watch``  batches; those of a watch have a ``Mark`` each
                       as the ticket
=====================  ====================================  ==============================================

Commands and tickets begin with ``PREFIX``, so that they cannot be taken for those of Flight SQL.
"""

from __future__ import annotations

from typing import Any, TypeVar

import msgspec

from weirflow.errors import ConfigError

PROTOCOL = 1
"""What this version speaks."""
TICK = "weirflow.tick"
"""The action that is a tick."""
CALL = "weirflow.call"
"""The action that is any other call."""
PREFIX = b"weirflow:"
"""How commands and tickets of this protocol begin."""
AUTHORIZATION = "authorization"
"""The header that holds ``Bearer``, a blank and the token."""
LONGEST_TOKEN = 256
"""Characters of the token of a tick, at most."""


class Message(msgspec.Struct, frozen=True, omit_defaults=True):
    """What is sent."""


class Place(Message, frozen=True):
    """A place in a stream; see ``Position``."""

    stream: str
    origin: str
    at: str
    after: tuple[str, str] | None = None


class Tick(Message, frozen=True):
    """A tick of small deltas.

    Attributes:
        flow: whose.
        deltas: by source, packed rows; those with a column ``_weight`` as its last are weighted, others are inserted,
            or upserted by key.
        token: names the tick; does nothing if one of the last ticks had it.
        timeout: seconds that it may take.
        position: where the tick brings a stream, which makes it ``Flow.feed``; then there is no token.
    """

    flow: str
    deltas: dict[str, bytes]
    token: str | None = None
    timeout: float | None = None
    position: Place | None = None


class Summary(Message, frozen=True):
    """What a tick did; see ``StepSummary``."""

    epoch: int
    rows_in: int
    rows_out: int
    duration_ms: float
    views: dict[str, int] = msgspec.field(default_factory=dict)
    late: int = 0
    dropped: int = 0
    replayed: bool = False


class Call(Message, frozen=True):
    """A method that is called.

    Attributes:
        method: its name in ``calls.METHODS``.
        arguments: packed, as that says.
        flow: whose method it is; None for those of the Session.
    """

    method: str
    arguments: msgspec.Raw = msgspec.Raw(b"\x80")
    flow: str | None = None


class Command(Message, frozen=True, tag_field="kind"):
    """What the command of a descriptor says."""


class Put(Command, frozen=True, tag="put"):
    """A tick of one source whose rows follow as a stream, weighted or not as in ``Tick``."""

    flow: str
    source: str
    token: str | None = None
    timeout: float | None = None
    position: Place | None = None


class Statement(Command, frozen=True, tag="statement"):
    """A statement to be run, whose rows can be fetched when it is answered.

    Attributes:
        sql: its text.
        params: a packed row of parameters (``arrow.pack_params``), or None.
        timeout: seconds after which it is stopped.
        key: by which it can be cancelled, chosen by the client; its operation is listed under its own id, too.
    """

    sql: str
    params: bytes | None = None
    timeout: float | None = None
    key: str | None = None


class Result(Command, frozen=True, tag="result"):
    """The rows of a statement that was submitted, once it has ended."""

    operation: str


class Ticket(Message, frozen=True, tag_field="kind"):
    """What is fetched."""


class Rows(Ticket, frozen=True, tag="rows"):
    """All rows of a source or view, now or after an earlier epoch; the schema's metadata has the epoch (``EPOCH``)."""

    flow: str
    name: str
    epoch: int | None = None


class FlowQuery(Ticket, frozen=True, tag="query"):
    """The rows of a query over the sources and views of a flow, and over some tables, each packed."""

    flow: str
    sql: str
    tables: dict[str, bytes] = msgspec.field(default_factory=dict)


class Watch(Ticket, frozen=True, tag="watch"):
    """The deltas of a view, for as long as they are read; ``_weight`` is the last column.

    The first batch is empty, and its mark says after which epoch the others come, and of which flow they are. A
    snapshot has the epoch it is of.

    Attributes:
        from_epoch: begin with the deltas after this epoch.
        snapshot: begin with all rows.
        capacity: how many deltas may wait for the reader before the watch fails.
        progress: also mark epochs that leave the view as it was; those that come fast are marked as one.
        identity: of the flow whose epochs are meant; another flow of that name has ``HistoryGone``. None for any.
    """

    flow: str
    view: str
    from_epoch: int | None = None
    snapshot: bool = False
    capacity: int = 1024
    progress: bool = True
    identity: str | None = None


class Mark(Message, frozen=True):
    """What belongs to a batch of a watch.

    Attributes:
        epoch: which one the rows are of.
        last: whether the epoch has no further rows; all deltas up to it have been sent then.
        identity: of the flow, in the first mark.
    """

    epoch: int
    last: bool = True
    identity: str | None = None


EPOCH = b"weirflow.epoch"
"""The key, in the metadata of a schema, of the epoch that rows are of."""

AnyCommand = Put | Statement | Result
AnyTicket = Rows | FlowQuery | Watch
M = TypeVar("M")


def pack(message: Any) -> bytes:
    """A message, or what a method answers, as bytes; ``ConfigError`` if a value in it has no form."""
    try:
        return _encoder.encode(message)
    except (OverflowError, TypeError, ValueError, RecursionError) as error:  # a ValueError for text that is none
        raise ConfigError(f"A value cannot be sent: {error}.") from None


def unpack(content: bytes, kind: type[M]) -> M:
    """What the bytes of a message of this kind say.

    Raises:
        ConfigError: they are not such a message.
    """
    try:
        return msgspec.msgpack.decode(content, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        name = getattr(kind, "__name__", "message")
        raise ConfigError(
            f"These bytes are no {name} of Weirflow's protocol {PROTOCOL}: {error}.",
            hint="use a client and a server of the same version",
        ) from None


def pack_command(command: AnyCommand) -> bytes:
    """A command for a descriptor."""
    return PREFIX + pack(command)


def unpack_command(content: bytes) -> AnyCommand | None:
    """The command of a descriptor; None for one of another protocol, ``ConfigError`` for one that cannot be read."""
    command: AnyCommand | None = _after_prefix(content, AnyCommand)
    return command


def pack_ticket(ticket: AnyTicket) -> bytes:
    """What to fetch, for a ticket."""
    return PREFIX + pack(ticket)


def unpack_ticket(content: bytes) -> AnyTicket | None:
    """What a ticket is for; None for one of another protocol, ``ConfigError`` for one that cannot be read."""
    ticket: AnyTicket | None = _after_prefix(content, AnyTicket)
    return ticket


def _after_prefix(content: bytes, kind: Any) -> Any:
    return unpack(content[len(PREFIX) :], kind) if content.startswith(PREFIX) else None


_encoder = msgspec.msgpack.Encoder()
