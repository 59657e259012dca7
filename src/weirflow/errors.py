"""Every error a user can meet.

Each class has a stable ``code`` to match on; each message says what happened, to what, and what to do::

    WeirflowError
    ├── ConfigError                 CONFIG_INVALID           a setting or argument cannot be used
    │   ├── ProfileError            PROFILE_REFUSED          a durability profile could not keep its promise
    │   └── EngineMissing           ENGINE_MISSING           a view is to be recomputed, and the flow has no Session
    ├── DependencyMissing           DEPENDENCY_MISSING       an extra, or Java, is not installed
    ├── PackageUnavailable          PACKAGE_UNAVAILABLE      connector jars could not be fetched
    ├── StackExhausted              STACK_EXHAUSTED          the caller is so deep in calls that no room is left
    ├── UnsupportedError            UNSUPPORTED              this placement, store or Spark cannot do it
    │   └── StreamRefused           STREAM_REFUSED           output mode, trigger, sink and query do not go together
    ├── SessionError                SESSION_FAILED           Spark could not be started, or was lost
    │   ├── SessionClosed           SESSION_CLOSED           the Session was closed
    │   └── SessionConflict         SESSION_CONFLICT         another Session holds this process's Spark
    ├── EndpointError
    │   ├── EndpointUnreachable     ENDPOINT_UNREACHABLE     nothing answers there in time
    │   └── AuthenticationFailed    AUTHENTICATION_FAILED    the endpoint refused the token
    ├── QueryError                  QUERY_FAILED             Spark refused or failed the query
    │   ├── SqlSyntaxError          SQL_SYNTAX               the text is not SQL
    │   ├── SqlTooComplex           SQL_TOO_COMPLEX          the text is too long, or too deeply nested
    │   ├── TableNotFound           TABLE_NOT_FOUND
    │   ├── ColumnNotFound          COLUMN_NOT_FOUND
    │   ├── FunctionNotFound        FUNCTION_NOT_FOUND
    │   ├── PathNotFound            PATH_NOT_FOUND
    │   ├── AlreadyExists           ALREADY_EXISTS           a table or path to be created is there already
    │   ├── StreamNotFound          STREAM_NOT_FOUND         no streaming query has this name or id
    │   ├── SqlTypeError            SQL_TYPE                 types do not fit
    │   ├── DataError               DATA_ERROR               a row broke a rule: overflow, division by zero, bad cast
    │   │   └── ResultTooLarge      RESULT_TOO_LARGE         an expression or join would make more than fits in memory
    │   └── UserCodeError           USER_CODE_FAILED         a Python function that was given to be run raised
    ├── OperationError
    │   ├── OperationCancelled      OPERATION_CANCELLED
    │   ├── OperationTimeout        OPERATION_TIMEOUT
    │   └── OperationUnknown        OPERATION_UNKNOWN        no operation has this id
    ├── FlowError                   FLOW_FAILED              a flow cannot do what it was asked now
    │   ├── TickPending             TICK_PENDING             a failed tick waits to be retried or discarded
    │   ├── FlowReentered           FLOW_REENTERED           a function that a tick calls would tick the same flow
    │   ├── TickTimeout             TICK_TIMEOUT             a tick did not finish in time; nothing has changed
    │   ├── WatchOverflow           WATCH_OVERFLOW           a reader of deltas fell too far behind
    │   ├── HistoryGone             HISTORY_GONE             deltas of an epoch are not kept any more
    │   ├── SinkFailed              SINK_FAILED              a sink could not write; its deltas are kept
    │   ├── SinkConflict            SINK_CONFLICT            a sink's target does not fit the flow
    │   └── StreamConflict          STREAM_CONFLICT          an attached stream is not where the flow left it
    ├── StateError                  STATE_FAILED             keyed state cannot do what it was asked
    │   ├── StateTypeError          STATE_TYPE               a key or value is not of its slot's type
    │   ├── StateMismatch           STATE_MISMATCH           a slot is stored as something else than is declared
    │   ├── StateDamaged            STATE_DAMAGED            stored bytes are no key or value of their slot
    │   └── MigrationMissing        MIGRATION_MISSING        no step leads from a stored version to the declared one
    ├── StorageError                STORAGE_FAILED           checkpoint storage failed
    │   ├── ObjectNotFound          OBJECT_NOT_FOUND
    │   ├── ObjectExists            OBJECT_EXISTS            put-if-absent lost to an earlier writer
    │   └── ObjectChanged           OBJECT_CHANGED           a conditional update lost to another writer
    └── MetadataError               METADATA_FAILED          the metadata database failed
        ├── LeaseHeld               LEASE_HELD               somebody else has the lease now
        ├── LeaseLost               LEASE_LOST               the lease ran out, or went to somebody else
        └── DocumentChanged         DOCUMENT_CHANGED         a document has another version than expected

Errors pickle whole, so they cross Spark workers and processes unchanged.
"""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime


_LONGEST_TEXT = 20_000  # tracebacks of Spark's are shorter


class WeirflowError(Exception):
    """The root of all errors Weirflow raises on purpose.

    Attributes:
        code: stable, upper-case identifier of this kind of error.
        message: what happened, to what.
        hint: what to do about it, or None when the message says it all.
    """

    code: ClassVar[str] = "WEIRFLOW_ERROR"

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        message = shortened(message)
        super().__init__(message)
        self.message = message
        self.hint = None if hint is None else shortened(hint)

    def __str__(self) -> str:
        return f"[{self.code}] {self.message}" + (f"\n  hint: {self.hint}" if self.hint else "")

    def __reduce__(self) -> tuple[Any, ...]:
        return (_rebuild, (type(self), self.message, self.__dict__.copy()))


def _rebuild(kind: type[WeirflowError], message: str, state: dict[str, Any]) -> WeirflowError:
    error = kind.__new__(kind, message)
    error.args = (message,)
    error.__dict__.update(state)
    return error


class ConfigError(WeirflowError):
    """A setting or argument cannot be used; nothing was started."""

    code = "CONFIG_INVALID"


class ProfileError(ConfigError):
    """The durability profile could not keep its promise with these stores or this placement."""

    code = "PROFILE_REFUSED"


class EngineMissing(ConfigError):
    """A view is to be recomputed by Spark, and the flow was made without a Session; nothing has changed."""

    code = "ENGINE_MISSING"


class DependencyMissing(WeirflowError):
    """Something that must be installed first is not; the hint holds the command."""

    code = "DEPENDENCY_MISSING"

    @classmethod
    def extra(cls, extra: str, *, needed_for: str) -> DependencyMissing:
        """The error for an optional part of Weirflow that was not installed."""
        return cls(f"{needed_for} needs the optional part {extra!r}.", hint=f"pip install 'weirflow[{extra}]'")


class PackageUnavailable(WeirflowError):
    """Connector jars are neither in the cache folder nor could be fetched.

    Attributes:
        coordinates: the Maven coordinates that are missing.
    """

    code = "PACKAGE_UNAVAILABLE"

    def __init__(self, message: str, *, coordinates: Iterable[str] = (), hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.coordinates = tuple(coordinates)


class StackExhausted(WeirflowError):
    """The caller is so deep inside other calls that Python leaves no room for this one; nothing has changed."""

    code = "STACK_EXHAUSTED"


class UnsupportedError(WeirflowError):
    """What was asked for cannot be done here; the message says where it can."""

    code = "UNSUPPORTED"


class StreamRefused(UnsupportedError):
    """This output mode, trigger, sink and query do not go together; nothing was started."""

    code = "STREAM_REFUSED"


class SessionError(WeirflowError):
    """Spark could not be started, or died."""

    code = "SESSION_FAILED"


class SessionClosed(SessionError):
    """The Session was closed before this call."""

    code = "SESSION_CLOSED"


class SessionConflict(SessionError):
    """This process already runs a Spark that the Session cannot share."""

    code = "SESSION_CONFLICT"


class EndpointError(WeirflowError):
    """A remote endpoint could not be used. There is never a local fallback."""

    code = "ENDPOINT_FAILED"


class EndpointUnreachable(EndpointError):
    """Nothing answers at the endpoint within the deadline."""

    code = "ENDPOINT_UNREACHABLE"


class AuthenticationFailed(EndpointError):
    """The endpoint answered and refused the token."""

    code = "AUTHENTICATION_FAILED"


@dataclass(frozen=True)
class SqlPosition:
    """A place in SQL text: 1-based line and column, and the fragment found there."""

    line: int
    column: int
    fragment: str = ""


class QueryError(WeirflowError):
    """A query was refused or failed.

    Attributes:
        position: where in the SQL text, when known.
        condition: Spark's own error condition, when the error came from Spark.
    """

    code = "QUERY_FAILED"

    def __init__(
        self,
        message: str,
        *,
        hint: str | None = None,
        position: SqlPosition | None = None,
        condition: str | None = None,
    ) -> None:
        super().__init__(message, hint=hint)
        self.position = position
        self.condition = condition

    def __str__(self) -> str:
        text = super().__str__()
        if self.position is None:
            return text
        where = f"at line {self.position.line}, column {self.position.column}"
        return f"{text}\n  {where}" + (f": {shortened(self.position.fragment)}" if self.position.fragment else "")


class SqlSyntaxError(QueryError):
    """The text could not be parsed as SQL."""

    code = "SQL_SYNTAX"


class SqlTooComplex(QueryError):
    """The text is longer, or nested more deeply, than what can be read and computed; Spark may still run it."""

    code = "SQL_TOO_COMPLEX"


class TableNotFound(QueryError):
    """No table or view has this name."""

    code = "TABLE_NOT_FOUND"


class ColumnNotFound(QueryError):
    """No column in scope has this name."""

    code = "COLUMN_NOT_FOUND"


class FunctionNotFound(QueryError):
    """No function has this name."""

    code = "FUNCTION_NOT_FOUND"


class PathNotFound(QueryError):
    """No file or folder is at this path."""

    code = "PATH_NOT_FOUND"


class AlreadyExists(QueryError):
    """The table or path to be created exists already; nothing was written."""

    code = "ALREADY_EXISTS"


class StreamNotFound(QueryError):
    """No streaming query that runs has this name or id."""

    code = "STREAM_NOT_FOUND"


class SqlTypeError(QueryError):
    """The types in the query do not fit together."""

    code = "SQL_TYPE"


class DataError(QueryError):
    """A row broke a rule while the query ran: overflow, division by zero, a cast that cannot be."""

    code = "DATA_ERROR"


class ResultTooLarge(DataError):
    """An expression, a generator or a join would make more at once than is allowed or fits; none of it was made."""

    code = "RESULT_TOO_LARGE"


class UserCodeError(QueryError):
    """A Python function raised that Spark ran (a UDF, mapInArrow, ...), or a process function.

    The message holds the traceback from Spark; without Spark, the cause is the error itself.
    """

    code = "USER_CODE_FAILED"


class OperationError(WeirflowError):
    """A running operation ended before it had a result.

    Attributes:
        operation_id: the id it has in ``session.operations``.
    """

    code = "OPERATION_FAILED"

    def __init__(self, message: str, *, operation_id: str, hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.operation_id = operation_id


class OperationCancelled(OperationError):
    """The operation was cancelled; its Spark jobs are stopped."""

    code = "OPERATION_CANCELLED"


class OperationTimeout(OperationError):
    """The operation did not finish by its deadline; its Spark jobs are stopped."""

    code = "OPERATION_TIMEOUT"


class OperationUnknown(OperationError):
    """No running operation has this id: it never existed, or it has ended."""

    code = "OPERATION_UNKNOWN"


class FlowError(WeirflowError):
    """A flow cannot do what it was asked, in the state it is in."""

    code = "FLOW_FAILED"


class TickPending(FlowError):
    """A tick failed and its delta is kept: ``retry()`` or ``discard()`` it before the next one."""

    code = "TICK_PENDING"


class FlowReentered(FlowError):
    """A sink's function or a callback, which a tick calls, would tick, change or close the flow that calls it."""

    code = "FLOW_REENTERED"


class TickTimeout(FlowError):
    """A tick did not finish by its deadline. Nothing has changed, and its delta is kept as after every failed tick."""

    code = "TICK_TIMEOUT"


class WatchOverflow(FlowError):
    """A reader of deltas fell further behind than its buffer holds; nothing it was given before is missing.

    Attributes:
        epoch: the last epoch that was delivered without a gap.
    """

    code = "WATCH_OVERFLOW"

    def __init__(self, message: str, *, epoch: int, hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.epoch = epoch


class HistoryGone(FlowError):
    """The deltas since an epoch are not kept any more.

    Attributes:
        oldest: the oldest epoch from which all deltas are still there.
    """

    code = "HISTORY_GONE"

    def __init__(self, message: str, *, oldest: int, hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.oldest = oldest


class SinkFailed(FlowError):
    """A sink could not write its target. No tick is undone, and the deltas are kept until they are written."""

    code = "SINK_FAILED"


class SinkConflict(FlowError):
    """A sink's target was written by another flow or view, or does not reach up to the deltas that are kept."""

    code = "SINK_CONFLICT"


class StreamConflict(FlowError):
    """What is attached to a flow is another stream or table than before, or has gone back; no row was taken."""

    code = "STREAM_CONFLICT"


class StateError(WeirflowError):
    """Keyed state cannot do what it was asked; what is stored is as it was."""

    code = "STATE_FAILED"


class StateTypeError(StateError):
    """A key or value is not of the type its slot declares; nothing of it was written.

    Attributes:
        slot: the name of the slot.
        key: the key it was for, as text.
    """

    code = "STATE_TYPE"

    def __init__(self, message: str, *, slot: str, key: str, hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.slot = slot
        self.key = key


class StateMismatch(StateError):
    """What is stored does not fit: a slot is declared otherwise, or a query is not that of its savepoint."""

    code = "STATE_MISMATCH"


class StateDamaged(StateError):
    """Stored bytes are not a key or value of their slot."""

    code = "STATE_DAMAGED"


class MigrationMissing(StateError):
    """A stored value has another version than its slot declares, and no step leads there.

    Attributes:
        slot: the name of the slot.
        from_version: where the missing step begins.
        to_version: the version that is to be reached.
    """

    code = "MIGRATION_MISSING"

    def __init__(self, message: str, *, slot: str, from_version: int, to_version: int, hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.slot = slot
        self.from_version = from_version
        self.to_version = to_version


class StorageError(WeirflowError):
    """Checkpoint storage failed.

    Attributes:
        uri: the object or storage concerned, without credentials.
    """

    code = "STORAGE_FAILED"

    def __init__(self, message: str, *, uri: str, hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.uri = uri


class ObjectNotFound(StorageError):
    """No object has this name."""

    code = "OBJECT_NOT_FOUND"


class ObjectExists(StorageError):
    """Put-if-absent found the name taken; the earlier object is untouched."""

    code = "OBJECT_EXISTS"


class ObjectChanged(StorageError):
    """A conditional update found another version than the one expected; nothing was written."""

    code = "OBJECT_CHANGED"


class MetadataError(WeirflowError):
    """The metadata database failed or could not be reached.

    Attributes:
        uri: the database concerned, without credentials.
    """

    code = "METADATA_FAILED"

    def __init__(self, message: str, *, uri: str, hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.uri = uri


class LeaseHeld(MetadataError):
    """Somebody else has the lease; nothing was changed.

    Attributes:
        name: the name of the lease.
        owner: who has it.
        since: when they acquired it, by the database's clock.
        until: when it runs out unless they renew it, by the database's clock.
    """

    code = "LEASE_HELD"

    def __init__(
        self,
        message: str,
        *,
        uri: str,
        name: str,
        owner: str,
        since: datetime,
        until: datetime,
        hint: str | None = None,
    ) -> None:
        super().__init__(message, uri=uri, hint=hint)
        self.name = name
        self.owner = owner
        self.since = since
        self.until = until


class LeaseLost(MetadataError):
    """A lease ran out or went to somebody else, or a node's id was taken by another process.

    Attributes:
        name: the name of the lease, or the id of the node.
    """

    code = "LEASE_LOST"

    def __init__(self, message: str, *, uri: str, name: str, hint: str | None = None) -> None:
        super().__init__(message, uri=uri, hint=hint)
        self.name = name


class DocumentChanged(MetadataError):
    """A document has another version than the one expected; nothing was written.

    Attributes:
        name: the name of the document.
        version: the version it has now; 0 when there is none.
    """

    code = "DOCUMENT_CHANGED"

    def __init__(self, message: str, *, uri: str, name: str, version: int, hint: str | None = None) -> None:
        super().__init__(message, uri=uri, hint=hint)
        self.name = name
        self.version = version


def shortened(text: str) -> str:
    """Text for an error: of what is very long, such as a value that was quoted, the beginning and the end.

    >>> len(shortened("x" * 1_000_000)) < 20_010
    True
    """
    if len(text) <= _LONGEST_TEXT:
        return text
    return f"{text[: _LONGEST_TEXT // 2]} … {text[-_LONGEST_TEXT // 2 :]}"


def did_you_mean(name: str, known: Iterable[str], *, prefix: str = "") -> str | None:
    """A hint that names the nearest known names, each behind ``prefix``, or None when nothing is near.

    >>> did_you_mean("ordres", ["orders", "customers"])
    "did you mean 'orders'?"
    """
    by_folded = {candidate.casefold(): str(candidate) for candidate in known}
    near = difflib.get_close_matches(name.casefold(), by_folded, n=3, cutoff=0.6)
    if not near:
        return None
    return "did you mean " + " or ".join(repr(prefix + by_folded[folded]) for folded in near) + "?"
