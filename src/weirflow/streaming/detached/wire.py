"""How clients and jobs talk: one question for each connection to a socket of the machine, known by a key.

A question is JSON, an answer is pickled: only the job's own client unpickles it, after both have proved that they
know the key. A job may run under another version than its client: each tells the other which protocol it speaks.
"""

from __future__ import annotations

import pickle
import socket
import struct
from multiprocessing import AuthenticationError
from multiprocessing.connection import Connection, answer_challenge, deliver_challenge
from typing import Any, NamedTuple

import msgspec

from weirflow.errors import QueryError, UnsupportedError, WeirflowError

PROTOCOL = 2
"""What this version speaks. It counts up when something that is pickled has another form, or is in another module."""
UNNUMBERED = 1
"""What those speak who do not say: they are of a version from before protocols had numbers."""
COMMON = frozenset({"active", "stop"})
"""What is asked and answered alike in all protocols."""

_LONGEST = 1 << 20
_HELLO_SECONDS = 10


class JobGone(Exception):
    """Nobody listens there any more, or the connection broke before an answer. Not for users."""


class NoAnswer(Exception):
    """Somebody listens, and says nothing within the time given. Not for users."""


class Speaker(NamedTuple):
    """A job or a client: which protocol it speaks, and the version of Weirflow it runs under, if it says so."""

    protocol: int
    version: str | None = None

    def __str__(self) -> str:
        version = "another version of Weirflow" if self.version is None else f"Weirflow {self.version}"
        return f"{version} (protocol {self.protocol})"


def other_protocol(what: str, job: Speaker, client: Speaker) -> UnsupportedError:
    """The error for a question that a job and a client of different versions might not understand alike."""
    return UnsupportedError(
        f"{what} runs under {job}, and this client under {client}, which can only stop it.",
        hint="stop its queries and detach them again: they continue from their checkpoints; or use the job's version",
    )


class Question(msgspec.Struct, frozen=True):
    """A member of a query that is asked for.

    Attributes:
        query: the query's name.
        member: the name of a property, or of a method to be called.
        arguments: the method's.
        protocol: what the client speaks.
    """

    query: str
    member: str
    arguments: dict[str, Any]
    protocol: int = UNNUMBERED


def ask(address: str, key: bytes, question: Question, patience: float | None) -> Any:
    """The answer to a question; raises the ``WeirflowError`` that the job answers with.

    Args:
        address: the job's socket.
        key: the job's key.
        question: what to ask.
        patience: seconds until an answer; None to wait as long as the job lives.

    Raises:
        JobGone: the job has ended, or ends.
        NoAnswer: it did not answer in time.
    """
    client = socket.socket(socket.AF_UNIX)
    try:
        client.connect(address)
    except OSError as error:
        client.close()
        raise JobGone from error
    with hurried(client) as connection:
        try:
            answer_challenge(connection, key)
            deliver_challenge(connection, key)
            connection.send_bytes(msgspec.json.encode(question))
            if not connection.poll(patience):
                raise NoAnswer
            answered = connection.recv_bytes()
        except BlockingIOError as error:
            raise NoAnswer from error
        except (OSError, EOFError, AuthenticationError) as error:
            raise JobGone from error
    return value_of(answered)


def hear(connection: Connection, key: bytes) -> Question:
    """The question of a client that knows the key; whatever is wrong with it raises."""
    deliver_challenge(connection, key)
    answer_challenge(connection, key)
    return msgspec.json.decode(connection.recv_bytes(_LONGEST), type=Question)


def answer(value: Any) -> bytes:
    """A value as it is sent."""
    try:
        return pickle.dumps(value)
    except Exception as error:  # noqa: BLE001 - pickle raises whatever an object's own methods raise
        return refusal(QueryError(f"What the job answers cannot be sent: {error}."))


def refusal(error: WeirflowError) -> bytes:
    """An error as it is sent; it is raised where it arrives."""
    try:
        return pickle.dumps(_Raised(error))
    except Exception:  # noqa: BLE001 - as above
        return pickle.dumps(_Raised(QueryError(error.message, hint=error.hint)))


def value_of(content: bytes) -> Any:
    """The value that was sent; raises the error that was."""
    try:
        answered = pickle.loads(content)  # noqa: S301 - of the job, which has proved to be it or was started just now
    except (ImportError, AttributeError, TypeError) as error:  # of a class that is elsewhere, or not, in this version
        raise QueryError(f"What the job answers cannot be read by this version of Weirflow: {error}.") from error
    if isinstance(answered, _Raised):
        raise answered.error
    return answered


def hurried(end: socket.socket) -> Connection:
    """A connection whose reads and writes give up after some seconds."""
    for option in (socket.SO_RCVTIMEO, socket.SO_SNDTIMEO):
        end.setsockopt(socket.SOL_SOCKET, option, struct.pack("ll", _HELLO_SECONDS, 0))
    return Connection(end.detach())


class _Raised:
    """An error among answers, which may also be values."""

    def __init__(self, error: WeirflowError) -> None:
        self.error = error
