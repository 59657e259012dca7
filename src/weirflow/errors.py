"""Every error a user can meet.

Each class has a stable ``code`` to match on; each message says what happened, to what, and what to do::

    WeirflowError
    ├── ConfigError                 CONFIG_INVALID           a setting or argument cannot be used
    │   ├── ProfileError            PROFILE_REFUSED          a durability profile could not keep its promise
    │   ├── EngineMissing           ENGINE_MISSING           a view needs Spark, and the flow has no Session
    │   └── FunctionMissing         FUNCTION_MISSING         a view calls a function that was not passed in
    ├── DependencyMissing           DEPENDENCY_MISSING       an extra, or Java, is not installed
    ├── PackageUnavailable          PACKAGE_UNAVAILABLE      connector jars could not be fetched
    ├── StackExhausted              STACK_EXHAUSTED          the call is so deep inside others that no stack is left
    ├── UnsupportedError            UNSUPPORTED              this placement, store or Spark cannot do it
    │   └── StreamRefused           STREAM_REFUSED           output mode, trigger, sink and query do not work together
    ├── SessionError                SESSION_FAILED           Spark could not be started, or was lost
    │   ├── SessionClosed           SESSION_CLOSED           the Session was closed
    │   └── SessionConflict         SESSION_CONFLICT         another Session holds this process's Spark
    ├── EndpointError
    │   ├── EndpointUnreachable     ENDPOINT_UNREACHABLE     nothing answers at the endpoint in time
    │   └── AuthenticationFailed    AUTHENTICATION_FAILED    the endpoint refused the token
    ├── NotAllowed                  NOT_ALLOWED              the token is valid, but not for this
    ├── MessageTooLarge             MESSAGE_TOO_LARGE        a request is larger than a server accepts
    ├── RetryLater                  RETRY_LATER              a server cannot do it now; the same call later may
    │   ├── ServerBusy              SERVER_BUSY              the token has as many requests as it may have
    │   ├── ServerDraining          SERVER_DRAINING          the server is about to end
    │   └── SpoolFull               SPOOL_FULL               results that can still be fetched leave no room for more
    ├── TicketExpired               TICKET_EXPIRED           a result can no longer be fetched
    ├── QueryError                  QUERY_FAILED             Spark refused the query, or it failed
    │   ├── SqlSyntaxError          SQL_SYNTAX               the text is not SQL
    │   ├── SqlTooComplex           SQL_TOO_COMPLEX          the text is too long, or too deeply nested
    │   ├── TableNotFound           TABLE_NOT_FOUND
    │   ├── CatalogNotFound         CATALOG_NOT_FOUND        no catalog has this name
    │   ├── ColumnNotFound          COLUMN_NOT_FOUND
    │   ├── AmbiguousColumn         AMBIGUOUS_COLUMN         a name stands for several columns
    │   ├── NotGrouped              COLUMN_NOT_GROUPED       a column next to aggregates is not grouped
    │   ├── FunctionNotFound        FUNCTION_NOT_FOUND
    │   ├── PathNotFound            PATH_NOT_FOUND
    │   ├── AlreadyExists           ALREADY_EXISTS           a table or path to be created already exists
    │   ├── StreamNotFound          STREAM_NOT_FOUND         no streaming query has this name or id
    │   ├── SqlTypeError            SQL_TYPE                 types do not fit
    │   ├── DataError               DATA_ERROR               a row broke a rule: overflow, division by zero, bad cast
    │   │   ├── FunctionFailed      FUNCTION_FAILED          a function that a view calls raised
    │   │   └── ResultTooLarge      RESULT_TOO_LARGE         an expression or join would produce more than fits
    │   ├── NotIncremental          NOT_INCREMENTAL          the query cannot be an incremental view
    │   └── UserCodeError           USER_CODE_FAILED         a Python function of the user raised
    ├── OperationError
    │   ├── OperationCancelled      OPERATION_CANCELLED
    │   ├── OperationTimeout        OPERATION_TIMEOUT
    │   └── OperationUnknown        OPERATION_UNKNOWN        no operation has this id
    ├── FlowError                   FLOW_FAILED              a flow cannot do this in its present state
    │   ├── FlowNotFound            FLOW_NOT_FOUND           no flow has this name
    │   ├── TickPending             TICK_PENDING             a failed tick waits to be retried or discarded
    │   ├── FlowReentered           FLOW_REENTERED           a function that a tick calls tried to tick the same flow
    │   ├── TickTimeout             TICK_TIMEOUT             a tick did not finish in time; nothing has changed
    │   ├── WatchOverflow           WATCH_OVERFLOW           a reader of deltas fell too far behind
    │   ├── HistoryGone             HISTORY_GONE             deltas of an epoch are no longer kept
    │   ├── SinkFailed              SINK_FAILED              a sink could not write; its deltas are kept
    │   ├── SinkConflict            SINK_CONFLICT            a sink's target does not fit the flow
    │   └── StreamConflict          STREAM_CONFLICT          an attached stream is not where the flow left it
    ├── RefreshRefused              REFRESH_REFUSED          a materialized view cannot be refreshed by an increment
    ├── StateError                  STATE_FAILED             keyed state cannot do what it was asked
    │   ├── StateTypeError          STATE_TYPE               a key or value is not of its slot's type
    │   ├── StateMismatch           STATE_MISMATCH           a slot is stored differently than declared
    │   ├── StateDamaged            STATE_DAMAGED            stored bytes are not a key or value of their slot
    │   └── MigrationMissing        MIGRATION_MISSING        no step leads from a stored version to the declared one
    ├── StorageError                STORAGE_FAILED           checkpoint storage failed
    │   ├── ObjectNotFound          OBJECT_NOT_FOUND
    │   ├── ObjectExists            OBJECT_EXISTS            put-if-absent lost to an earlier writer
    │   └── ObjectChanged           OBJECT_CHANGED           a conditional update lost to another writer
    ├── VectorStoreError            VECTOR_STORE_FAILED      a vector store failed
    └── MetadataError               METADATA_FAILED          the metadata database failed
        ├── LeaseHeld               LEASE_HELD               somebody else has the lease now
        ├── LeaseLost               LEASE_LOST               the lease ran out, or went to somebody else
        └── DocumentChanged         DOCUMENT_CHANGED         a document has another version than expected

Errors can be pickled with all their attributes, so they cross Spark workers and processes unchanged.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any, ClassVar

if TYPE_CHECKING:
    from datetime import datetime

_LONGEST_TEXT = 20_000  # tracebacks of Spark's are shorter


class WeirflowError(Exception):
    """The root of all errors that Weirflow raises on purpose.

    Attributes:
        code: stable, upper-case identifier of this kind of error.
        message: what happened, to what.
        hint: what to do about it, or None if the message says everything.
    """

    code: ClassVar[str] = "WEIRFLOW_ERROR"

    def __init_subclass__(cls, *, code: str | None = None) -> None:
        super().__init_subclass__()
        cls.code = code or cls.code

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


class ConfigError(WeirflowError, code="CONFIG_INVALID"):
    """A setting or argument cannot be used; nothing was started."""


class ProfileError(ConfigError, code="PROFILE_REFUSED"):
    """The durability profile could not keep its promise with these stores or this placement."""


class EngineMissing(ConfigError, code="ENGINE_MISSING"):
    """Spark has to recompute a view, but the flow was made without a Session; nothing has changed."""


class FunctionMissing(ConfigError, code="FUNCTION_MISSING"):
    """A view calls a function that was not passed in, or was passed in with another version."""


class DependencyMissing(WeirflowError, code="DEPENDENCY_MISSING"):
    """Something that is needed is not installed; the hint is the command that installs it."""

    @classmethod
    def extra(cls, extra: str, *, needed_for: str) -> DependencyMissing:
        """The error for an optional part of Weirflow that was not installed."""
        return cls(f"{needed_for} needs the optional part {extra!r}.", hint=f"pip install 'weirflow[{extra}]'")


class PackageUnavailable(WeirflowError, code="PACKAGE_UNAVAILABLE"):
    """Connector jars are neither in the cache folder nor could be fetched.

    Attributes:
        coordinates: the Maven coordinates that are missing.
    """

    def __init__(self, message: str, *, coordinates: Iterable[str] = (), hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.coordinates = tuple(coordinates)


class StackExhausted(WeirflowError, code="STACK_EXHAUSTED"):
    """The call is so deep inside other calls that Python has no stack left for it; nothing has changed."""


class UnsupportedError(WeirflowError, code="UNSUPPORTED"):
    """This cannot be done here; the message says where it can."""


class StreamRefused(UnsupportedError, code="STREAM_REFUSED"):
    """This output mode, trigger, sink and query do not work together; nothing was started."""


class SessionError(WeirflowError, code="SESSION_FAILED"):
    """Spark could not be started, or died."""


class SessionClosed(SessionError, code="SESSION_CLOSED"):
    """The Session was closed before this call."""


class SessionConflict(SessionError, code="SESSION_CONFLICT"):
    """This process already runs a Spark that the Session cannot share."""


class EndpointError(WeirflowError, code="ENDPOINT_FAILED"):
    """A remote endpoint could not be used. There is never a local fallback."""


class EndpointUnreachable(EndpointError, code="ENDPOINT_UNREACHABLE"):
    """Nothing answers at the endpoint within the deadline."""


class AuthenticationFailed(EndpointError, code="AUTHENTICATION_FAILED"):
    """The endpoint answered, but refused the token."""


class NotAllowed(WeirflowError, code="NOT_ALLOWED"):
    """The caller is known, but may not do this, or not with this flow or catalog; nothing was done."""


class MessageTooLarge(WeirflowError, code="MESSAGE_TOO_LARGE"):
    """A request is larger than the server accepts; nothing was done."""


class RetryLater(WeirflowError, code="RETRY_LATER"):
    """A server cannot do it at this moment. Nothing was done: the same call may be made again.

    Attributes:
        retry_after: in how many seconds that is worth a try.
    """

    def __init__(self, message: str, *, retry_after: float, hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.retry_after = retry_after


class ServerBusy(RetryLater, code="SERVER_BUSY"):
    """The token, or the server, has as many requests under way as it may have."""


class ServerDraining(RetryLater, code="SERVER_DRAINING"):
    """The server finishes its current requests and accepts no new ones, because it is about to end."""


class SpoolFull(RetryLater, code="SPOOL_FULL"):
    """Results that can still be fetched take all the room that a server, or a token, has; the new one was dropped."""


class TicketExpired(WeirflowError, code="TICKET_EXPIRED"):
    """A result can no longer be fetched, or belongs to somebody else."""


@dataclass(frozen=True)
class SqlPosition:
    """A place in SQL text: 1-based line and column, and the fragment found there."""

    line: int
    column: int
    fragment: str = ""


class QueryError(WeirflowError, code="QUERY_FAILED"):
    """A query was refused or failed.

    Attributes:
        position: where in the SQL text, when known.
        condition: Spark's own error condition, when the error came from Spark.
    """

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


class SqlSyntaxError(QueryError, code="SQL_SYNTAX"):
    """The text could not be parsed as SQL."""


class SqlTooComplex(QueryError, code="SQL_TOO_COMPLEX"):
    """The text is longer, or nested more deeply, than what can be read and computed; Spark may still run it."""


class TableNotFound(QueryError, code="TABLE_NOT_FOUND"):
    """No table or view has this name."""


class CatalogNotFound(QueryError, code="CATALOG_NOT_FOUND"):
    """No catalog with this name was created."""


class ColumnNotFound(QueryError, code="COLUMN_NOT_FOUND"):
    """No column in scope has this name."""


class AmbiguousColumn(QueryError, code="AMBIGUOUS_COLUMN"):
    """A name stands for more than one column in scope."""


class NotGrouped(QueryError, code="COLUMN_NOT_GROUPED"):
    """A column is used next to aggregates, but it is neither grouped nor aggregated."""


class FunctionNotFound(QueryError, code="FUNCTION_NOT_FOUND"):
    """No function has this name."""


class PathNotFound(QueryError, code="PATH_NOT_FOUND"):
    """There is no file or folder at this path."""


class AlreadyExists(QueryError, code="ALREADY_EXISTS"):
    """The table or path to be created already exists; nothing was written."""


class StreamNotFound(QueryError, code="STREAM_NOT_FOUND"):
    """No running streaming query has this name or id."""


class SqlTypeError(QueryError, code="SQL_TYPE"):
    """The types in the query do not fit together."""


class DataError(QueryError, code="DATA_ERROR"):
    """A row broke a rule while the query ran: overflow, division by zero, an impossible cast."""


class ResultTooLarge(DataError, code="RESULT_TOO_LARGE"):
    """An expression, a generator or a join would produce more at once than is allowed or fits into memory."""


class FunctionFailed(DataError, code="FUNCTION_FAILED"):
    """A function that a view calls raised, or returned an undeclared type; the tick has changed nothing."""


class Reason(StrEnum):
    """Stable codes that say why a query is valid Spark SQL but not accepted as an incremental view."""

    EXPRESSION_NOT_DETERMINISTIC = "EXPRESSION_NOT_DETERMINISTIC"
    """The same rows could give a different result tomorrow: ``now()``, ``rand()``, ``uuid()``."""
    FUNCTION_NOT_DECLARED = "FUNCTION_NOT_DECLARED"
    """A user's function that is not declared deterministic with ``session.udf(..., deterministic=True)``."""
    FUNCTION_NOT_PROVEN = "FUNCTION_NOT_PROVEN"
    """Spark has the function, but ours is not proven to equal it."""
    OPERATOR_NOT_INCREMENTALIZABLE = "OPERATOR_NOT_INCREMENTALIZABLE"
    """The operator has no rule for deltas: TABLESAMPLE, LATERAL subqueries that cannot become joins."""
    SETTING_NOT_SUPPORTED = "SETTING_NOT_SUPPORTED"
    """The SQL has to be read with a setting that only Spark supports."""
    SPARK_NOT_ON_EXECUTORS = "SPARK_NOT_ON_EXECUTORS"
    """Spark could evaluate a part of it on the delta, but the rows are on executors, where there is no Spark to ask."""
    TYPE_NOT_SUPPORTED = "TYPE_NOT_SUPPORTED"
    """A value of this type has no exact counterpart: calendar intervals, variants."""


class NotIncremental(QueryError, code="NOT_INCREMENTAL"):
    """The query cannot be an incremental view; Spark itself can run it.

    Attributes:
        reason: why, as a stable code.
    """

    def __init__(
        self,
        message: str,
        *,
        reason: Reason,
        hint: str | None = None,
        position: SqlPosition | None = None,
    ) -> None:
        super().__init__(message, hint=hint, position=position)
        self.reason = reason

    def __str__(self) -> str:
        return f"{super().__str__()}\n  reason: {self.reason}"


class UserCodeError(QueryError, code="USER_CODE_FAILED"):
    """A Python function raised that Spark ran (a UDF, mapInArrow, ...), or a process function.

    The message says what was raised where; without Spark, the cause is the error itself.

    Attributes:
        traceback: from Spark, the traceback on its worker; None if the cause has it.
    """

    traceback: str | None = None


class OperationError(WeirflowError, code="OPERATION_FAILED"):
    """A running operation ended before it had a result.

    Attributes:
        operation_id: the id it has in ``session.operations``.
    """

    def __init__(self, message: str, *, operation_id: str, hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.operation_id = operation_id


class OperationCancelled(OperationError, code="OPERATION_CANCELLED"):
    """The operation was cancelled; its Spark jobs are stopped."""


class OperationTimeout(OperationError, code="OPERATION_TIMEOUT"):
    """The operation did not finish by its deadline; its Spark jobs are stopped."""


class OperationUnknown(OperationError, code="OPERATION_UNKNOWN"):
    """No running operation has this id: it never existed, or it has ended."""


class FlowError(WeirflowError, code="FLOW_FAILED"):
    """A flow cannot do this in its present state."""


class FlowNotFound(FlowError, code="FLOW_NOT_FOUND"):
    """No flow has this name; none was made."""


class TickPending(FlowError, code="TICK_PENDING"):
    """A tick failed and its delta is kept: ``retry()`` or ``discard()`` it before the next one."""


class FlowReentered(FlowError, code="FLOW_REENTERED"):
    """A sink's function or a callback, which a tick calls, would tick, change or close the flow that calls it."""


class TickTimeout(FlowError, code="TICK_TIMEOUT"):
    """A tick did not finish by its deadline. Nothing has changed, and its delta is kept as after every failed tick."""


class WatchOverflow(FlowError, code="WATCH_OVERFLOW"):
    """A reader of deltas fell further behind than its buffer holds; nothing it was given before is missing.

    Attributes:
        epoch: the last epoch that was delivered without a gap.
    """

    def __init__(self, message: str, *, epoch: int, hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.epoch = epoch


class HistoryGone(FlowError, code="HISTORY_GONE"):
    """The deltas since an epoch are not kept any more.

    Attributes:
        oldest: the oldest epoch from which all deltas are still there.
    """

    def __init__(self, message: str, *, oldest: int, hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.oldest = oldest


class SinkFailed(FlowError, code="SINK_FAILED"):
    """A sink could not write its target. No tick is undone, and the deltas are kept until they are written."""


class SinkConflict(FlowError, code="SINK_CONFLICT"):
    """A sink's target was written by another flow or view, or does not reach up to the deltas that are kept."""


class StreamConflict(FlowError, code="STREAM_CONFLICT"):
    """What is attached to a flow is another stream or table than before, or has gone back; no row was taken."""


class RefreshRefused(WeirflowError, code="REFRESH_REFUSED"):
    """A materialized view may be refreshed by increments only, and this refresh cannot be one; nothing has changed.

    Attributes:
        reason: why not, as a stable code.
    """

    def __init__(self, message: str, *, reason: str, hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.reason = reason


class StateError(WeirflowError, code="STATE_FAILED"):
    """Keyed state cannot do what it was asked; what is stored is as it was."""


class StateTypeError(StateError, code="STATE_TYPE"):
    """A key or value is not of the type its slot declares; nothing was written.

    Attributes:
        slot: the name of the slot.
        key: the key it was for, as text.
    """

    def __init__(self, message: str, *, slot: str, key: str, hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.slot = slot
        self.key = key


class StateMismatch(StateError, code="STATE_MISMATCH"):
    """What is stored does not fit: a slot is declared otherwise, or a query is not that of its savepoint."""


class StateDamaged(StateError, code="STATE_DAMAGED"):
    """Stored bytes are not a key or value of their slot."""


class MigrationMissing(StateError, code="MIGRATION_MISSING"):
    """A stored value has another version than its slot declares, and no step leads there.

    Attributes:
        slot: the name of the slot.
        from_version: where the missing step begins.
        to_version: the version that is to be reached.
    """

    def __init__(self, message: str, *, slot: str, from_version: int, to_version: int, hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.slot = slot
        self.from_version = from_version
        self.to_version = to_version


class StorageError(WeirflowError, code="STORAGE_FAILED"):
    """Checkpoint storage failed.

    Attributes:
        uri: the object or storage concerned, without credentials.
    """

    def __init__(self, message: str, *, uri: str, hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.uri = uri


class ObjectNotFound(StorageError, code="OBJECT_NOT_FOUND"):
    """No object has this name."""


class ObjectExists(StorageError, code="OBJECT_EXISTS"):
    """Put-if-absent found the name taken; the earlier object is untouched."""


class ObjectChanged(StorageError, code="OBJECT_CHANGED"):
    """A conditional update found another version than the one expected; nothing was written."""


class VectorStoreError(WeirflowError, code="VECTOR_STORE_FAILED"):
    """A vector store failed, could not be reached, or refused what it was given; nothing was written.

    Attributes:
        uri: the store concerned, without credentials.
    """

    def __init__(self, message: str, *, uri: str, hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.uri = uri


class MetadataError(WeirflowError, code="METADATA_FAILED"):
    """The metadata database failed or could not be reached.

    Attributes:
        uri: the database concerned, without credentials.
    """

    def __init__(self, message: str, *, uri: str, hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.uri = uri


class LeaseHeld(MetadataError, code="LEASE_HELD"):
    """Somebody else has the lease; nothing was changed.

    Attributes:
        name: the name of the lease.
        owner: who has it.
        since: when they acquired it, by the database's clock.
        until: when it runs out unless they renew it, by the database's clock.
    """

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


class LeaseLost(MetadataError, code="LEASE_LOST"):
    """A lease ran out or went to somebody else, or a node's id was taken by another process.

    Attributes:
        name: the name of the lease, or the id of the node.
    """

    def __init__(self, message: str, *, uri: str, name: str, hint: str | None = None) -> None:
        super().__init__(message, uri=uri, hint=hint)
        self.name = name


class DocumentChanged(MetadataError, code="DOCUMENT_CHANGED"):
    """A document has another version than the one expected; nothing was written.

    Attributes:
        name: the name of the document.
        version: the version it has now; 0 when there is none.
    """

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
