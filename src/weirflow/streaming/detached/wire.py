"""How clients and jobs talk: one question for each connection to a socket of the machine, known by a key.

A question is JSON, an answer is pickled: only the job's own client unpickles it, after both have proved that they
know the key.
"""

from __future__ import annotations

import pickle
import socket
import struct
from multiprocessing import AuthenticationError
from multiprocessing.connection import Connection, answer_challenge, deliver_challenge
from typing import Any

import msgspec

from weirflow.errors import QueryError, WeirflowError

_LONGEST = 1 << 20
_HELLO_SECONDS = 10


class JobGone(Exception):
    """Nobody listens there any more, or the connection broke before an answer. Not for users."""


class NoAnswer(Exception):
    """Somebody listens, and says nothing within the time given. Not for users."""


class Question(msgspec.Struct, frozen=True):
    """A member of a query that is asked for.

    Attributes:
        query: the query's name.
        member: the name of a property, or of a method to be called.
        arguments: the method's.
    """

    query: str
    member: str
    arguments: dict[str, Any]


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
    answered = pickle.loads(content)  # noqa: S301 - of the job, which has proved to be it or was started just now
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
