"""Spark's errors as ours: one place where Py4J, gRPC and PySpark exceptions become ``WeirflowError``."""

from __future__ import annotations

import contextlib
import logging
import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from pickle import PicklingError
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlparse

from py4j.protocol import Py4JError, Py4JJavaError, Py4JNetworkError
from pyspark.errors import ParseException, PySparkException, PythonException, StreamingQueryException
from pyspark.errors.exceptions.captured import convert_exception

from weirflow.errors import (
    AlreadyExists,
    CatalogNotFound,
    ColumnNotFound,
    DataError,
    DependencyMissing,
    EndpointUnreachable,
    FunctionNotFound,
    PathNotFound,
    QueryError,
    SessionError,
    SqlPosition,
    SqlSyntaxError,
    SqlTooComplex,
    SqlTypeError,
    TableNotFound,
    UnsupportedError,
    UserCodeError,
    WeirflowError,
    did_you_mean,
)
from weirflow.spark.catalogs.failures import explained
from weirflow.spark.frames.source_options import FORMATS
from weirflow.spark.jars.packages import CONNECTORS
from weirflow.spark.jobs.relayed_errors import relayed_error
from weirflow.spark.user_code import user_code_error
from weirflow.sql.type_names import NAMES

if TYPE_CHECKING:
    TableNames = Callable[[], Iterable[str]]

# Spark's error conditions, by their first part, that have a class of their own here.
_BY_CONDITION: dict[str, type[QueryError]] = {
    "PARSE_SYNTAX_ERROR": SqlSyntaxError,
    "PARSE_EMPTY_STATEMENT": SqlSyntaxError,
    "FAILED_TO_PARSE_TOO_COMPLEX": SqlTooComplex,
    "TABLE_OR_VIEW_NOT_FOUND": TableNotFound,
    "VIEW_NOT_FOUND": TableNotFound,
    "REQUIRES_SINGLE_PART_NAMESPACE": CatalogNotFound,  # a name of three parts whose first is no catalog
    "CATALOG_NOT_FOUND": CatalogNotFound,
    "UNRESOLVED_COLUMN": ColumnNotFound,
    "UNRESOLVED_USING_COLUMN_FOR_JOIN": ColumnNotFound,
    "FIELD_NOT_FOUND": ColumnNotFound,
    "UNRESOLVED_ROUTINE": FunctionNotFound,
    "PATH_NOT_FOUND": PathNotFound,
    "PATH_ALREADY_EXISTS": AlreadyExists,
    "TABLE_OR_VIEW_ALREADY_EXISTS": AlreadyExists,
    "TEMP_TABLE_OR_VIEW_ALREADY_EXISTS": AlreadyExists,
    "LOCATION_ALREADY_EXISTS": AlreadyExists,
    "SCHEMA_ALREADY_EXISTS": AlreadyExists,
    "ROUTINE_ALREADY_EXISTS": AlreadyExists,
    "_LEGACY_ERROR_TEMP_1155": ColumnNotFound,  # the column to partition files by
    "DATATYPE_MISMATCH": SqlTypeError,
    "INCOMPATIBLE_DATA_FOR_TABLE": SqlTypeError,
    "INVALID_CONF_VALUE": QueryError,  # its SQLSTATE is that of data
}
# Otherwise the SQLSTATE's class decides: 22 is "data exception".
_BY_SQLSTATE_CLASS: dict[str, type[QueryError]] = {"22": DataError}

# Conditions that only wrap the one that says what happened.
_EXTRA_OF = {"pandas": "pandas", "grpcio": "connect", "grpcio-status": "connect", "zstandard": "connect"}
_TELLING_NOTHING = frozenset({None, "FAILED_READ_FILE.NO_HINT", "TASK_WRITE_FAILED"})
_OVERFLOW = "java.lang.StackOverflowError"
_STREAM_ENDED = "terminated with exception: "
_STREAM_DETAILS = "\n=== Streaming Query ==="
_TRACEBACK = "Traceback (most recent call last)"
_NO_SOURCE = re.compile(r"Failed to find (?:the )?data source: ([\w.$-]+?)\. ")
_NO_COLUMNS = re.compile(r"Unable to infer schema for \w+")
_ZERO_BASED = re.compile(r"\bline (\d+),? pos (\d+)")
_ONE_BASED = re.compile(r"== SQL[^(\n]*\(line (\d+), position (\d+)\) ==")
_JAVA_MESSAGE = re.compile(r"\[([A-Z][A-Z0-9_.]+)\] (.*?)(?: SQLSTATE: (\w{5}))?(?:\n|$)", re.DOTALL)


@contextlib.contextmanager
def translated(table_names: TableNames | None = None) -> Iterator[None]:
    """Raise what Spark raises in the block as a ``WeirflowError``; everything else passes unchanged.

    Args:
        table_names: called only when a table was not found, to suggest the nearest name.
    """
    try:
        yield
    except Exception as error:
        known = translate(error, table_names)
        if known is None or known is error:
            raise
        raise known from error


def translate(  # noqa: PLR0911 - one return for each kind of error
    error: BaseException, table_names: TableNames | None = None
) -> WeirflowError | None:
    """The ``WeirflowError`` for an error of Spark's, or None when it is not one."""
    if isinstance(error, WeirflowError):
        return error
    if _is_lost(error) or _is_lost(error.__context__):
        return _lost_session()
    if isinstance(error, PySparkException):
        return _from_pyspark(error, table_names)
    if isinstance(error, Py4JError):
        try:
            return explained(error) or _from_java(error, table_names)
        except (Py4JError, OSError):  # the JVM went before it could say what happened
            return _lost_session()
    if isinstance(error, PicklingError):
        return UserCodeError(f"A Python function cannot be sent to Spark's workers: {error}.")
    if isinstance(error, AttributeError) and "_get_object_id" in str(error):
        return SqlTypeError("Spark has no type for one of the Python values it was given.")
    if _is_grpc(error):
        return EndpointUnreachable(
            f"The connection to the Spark Connect server failed: {_grpc_details(error)}.",
            hint="check that the server runs, then open another Session",
        )
    return None


def quiet_pyspark_loggers() -> None:
    """Stop PySpark from printing every analysis error as JSON; the error is raised, once, as ours."""
    for name in ("SQLQueryContextLogger", "DataFrameQueryContextLogger"):
        logging.getLogger(name).disabled = True


def _from_pyspark(  # noqa: PLR0911 - one return for each kind of error
    error: PySparkException, table_names: TableNames | None
) -> WeirflowError | None:
    text = str(error)
    if (error.getCondition() or "").startswith("UNSUPPORTED_DATA_TYPE"):
        return UnsupportedError(_plain_message(text), hint="cast the column to a type that both sides have")
    if isinstance(error, ImportError):
        return _not_installed(error)
    if isinstance(error, AttributeError | TypeError | IndexError | NotImplementedError):
        return None  # a wrong call in Python, and Python's own class for it
    if type(error).__name__ in {"SparkConnectGrpcException", "RetriesExceeded"}:
        return explained(error) or _from_connect(text)
    if isinstance(error, PythonException):
        return _from_python(text)
    if isinstance(error, StreamingQueryException):
        return _from_stream(text)
    condition = error.getCondition()
    kind = _kind(condition, error.getSqlState())
    if kind is QueryError and (catalogs := explained(error)) is not None:
        return catalogs
    if kind is QueryError and isinstance(error, ParseException):
        kind = SqlSyntaxError
    return kind(
        _plain_message(text),
        hint=_hint(kind, error.getMessageParameters() or {}, table_names) or _source_hint(text),
        position=_position(text, _fragment(error)),
        condition=condition,
    )


def _not_installed(error: PySparkException) -> DependencyMissing:
    """From what PySpark says when a package is missing or too old: which extra has it."""
    package = str((error.getMessageParameters() or {}).get("package_name", "")).casefold()
    extra = _EXTRA_OF.get(package)
    hint = f"pip install 'weirflow[{extra}]'" if extra else f"pip install {package}" if package else None
    return DependencyMissing(_plain_message(str(error)), hint=hint)


def _from_python(text: str) -> QueryError:
    """From what a Python function on an executor raised: ours as it was, others in a sentence."""
    return relayed_error(text) or user_code_error(text)


def _from_stream(text: str) -> WeirflowError:
    """Of a streaming query's end what caused it, without the query's id, offsets and plan around it."""
    before, found, after = text.partition(_STREAM_ENDED)
    cause = (after if found else before).partition(_STREAM_DETAILS)[0]
    if _TRACEBACK in cause:
        return _from_python(cause)
    if match := _JAVA_MESSAGE.search(cause):
        kind = _kind(match.group(1), match.group(3))
        return kind(match.group(2).strip(), condition=match.group(1), position=_position(cause, ""))
    return QueryError(_plain_message(cause))


def _from_connect(text: str) -> WeirflowError:
    if match := _JAVA_MESSAGE.search(text):
        return _kind(match.group(1), match.group(3))(match.group(2).strip(), condition=match.group(1))
    if "StatusCode.UNAVAILABLE" in text or "RETRIES_EXCEEDED" in text:
        return EndpointUnreachable(
            "The connection to the Spark Connect server failed.",
            hint="check that the server runs, then open another Session",
        )
    return _untold(text.strip())


def _from_java(error: Py4JError, table_names: TableNames | None) -> WeirflowError | None:
    """From Java's own exceptions, which often wrap the one that says what happened: "Job aborted" and the like."""
    messages = [str(error)]
    if isinstance(error, Py4JJavaError):
        messages = []
        for thrown in _causes(error.java_exception):
            converted = convert_exception(thrown)
            condition = converted.getCondition()
            if isinstance(converted, PythonException) or condition not in _TELLING_NOTHING:
                return _from_pyspark(converted, table_names)
            messages.append(str(thrown.getMessage() or thrown.toString()))
    for message in messages:
        if _TRACEBACK in message:
            return _from_python(message)
        match = _JAVA_MESSAGE.search(message)
        if match and match.group(1) not in _TELLING_NOTHING:
            kind = _kind(match.group(1), match.group(3))
            return kind(match.group(2).strip(), hint=_source_hint(message), condition=match.group(1))
    return _untold(messages[-1].partition("\n\tat ")[0].strip())


def _untold(message: str) -> QueryError:
    """From a message without a condition; a stack that overflows has no other."""
    if _OVERFLOW in message:
        return SqlTooComplex(
            "Spark's stack is too small for a query that is nested this deeply.",
            hint="split the query into views, or give Spark's threads larger stacks (-Xss)",
        )
    return QueryError(message)


def _causes(thrown: Any) -> Iterator[Any]:
    """A Java exception, what caused it, and so on to the root."""
    while thrown is not None:
        yield thrown
        thrown = thrown.getCause()


def _kind(condition: str | None, sqlstate: str | None) -> type[QueryError]:
    first_part = (condition or "").partition(".")[0]
    by_state = _BY_SQLSTATE_CLASS.get((sqlstate or "")[:2], QueryError)
    return _BY_CONDITION.get(first_part, by_state)


def _plain_message(text: str) -> str:
    """Spark's sentence alone: without its condition, its SQLSTATE, the plan or the quoted query."""
    sentence = re.split(r" SQLSTATE: \w{5}|\n== |\n\nJVM stacktrace", text.strip(), maxsplit=1)[0]
    sentence = re.sub(r"^\[[A-Z0-9_.]+\] ", "", sentence)
    # Spark's general advice says less than our hint does.
    return re.split(r"(?:\. Verify the spelling| Did you mean one of)", sentence, maxsplit=1)[0].strip()


def _hint(kind: type[QueryError], parameters: dict[str, str], table_names: TableNames | None) -> str | None:
    if kind is ColumnNotFound:
        wanted, available = (
            next((parameters[name] for name in names if name in parameters), "")
            for names in (("objectName", "fieldName", "colName"), ("proposal", "fields", "suggestion"))
        )
        wanted = _bare(wanted)
        proposals = [_bare(part) for part in re.findall(r"(?:`[^`]*`\.?)+", available)]
        return did_you_mean(wanted, proposals) or (f"the columns are {', '.join(proposals)}" if proposals else None)
    if kind is TableNotFound and table_names is not None:
        known = _sorted_names(table_names)
        near = did_you_mean(_bare(parameters.get("relationName", "")), known)
        return near or (f"the tables are {', '.join(known[:10])}" if known else "no table is registered yet")
    if kind is CatalogNotFound:
        return "SHOW CATALOGS lists those that there are; CREATE CATALOG, or Session(catalogs=...), adds one"
    if "typeName" in parameters and "sqlType" not in parameters:
        return did_you_mean(_bare(parameters["typeName"]).upper(), [one.upper() for one in NAMES])
    if kind is PathNotFound:
        return _nearest_path(parameters.get("path", ""))
    return None


def _source_hint(text: str) -> str | None:
    """What to do about a format or files that Spark does not find; None for what is about something else."""
    if _NO_COLUMNS.search(text):
        return (
            'there is no file with columns at that path; check it, or give schema="a INT, ..." if files may be missing'
        )
    found = _NO_SOURCE.search(text)
    if found is None:
        return None
    name = found[1].casefold()
    if name in CONNECTORS:
        return f"open the Session with packages=[{name!r}]"
    return did_you_mean(name, FORMATS) or f"there are {', '.join(FORMATS)}"


def _sorted_names(table_names: TableNames) -> list[str]:
    try:
        return sorted(table_names())
    except Exception:  # noqa: BLE001 - a hint that cannot be had must not hide the error it belongs to
        return []


def _bare(name: str) -> str:
    """The last part of a quoted name: `t`.`a` is a."""
    return name.rpartition(".`")[2].strip("`")


def _nearest_path(uri: str) -> str | None:
    """The nearest name in the deepest folder that does exist; only for local paths."""
    parsed = urlparse(uri)
    if parsed.scheme not in ("", "file"):
        return None
    missing = Path(unquote(parsed.path))
    while not missing.parent.exists() and missing.parent != missing:
        missing = missing.parent
    try:
        siblings = [entry.name for entry in missing.parent.iterdir()]
    except OSError:
        return None
    return did_you_mean(missing.name, siblings) or f"{missing.parent} has no {missing.name!r}"


def _fragment(error: PySparkException) -> str:
    contexts = error.getQueryContext() or []
    return str(contexts[0].fragment()) if contexts and contexts[0].contextType().name == "SQL" else ""


def _position(text: str, fragment: str) -> SqlPosition | None:
    if match := _ONE_BASED.search(text):
        return SqlPosition(int(match.group(1)), int(match.group(2)), fragment)
    if match := _ZERO_BASED.search(text):
        return SqlPosition(int(match.group(1)), int(match.group(2)) + 1, fragment)
    return None


def _lost_session() -> SessionError:
    return SessionError("The connection to Spark's JVM is gone.", hint="close this Session and open another")


def _is_lost(error: BaseException | None) -> bool:
    if isinstance(error, Py4JNetworkError):
        return True
    if isinstance(error, ConnectionError | EOFError):
        return _raised_by_pyspark(error)
    # Py4J's error for an answer that never came says nothing but which call it was.
    return (
        type(error) is Py4JError
        and str(error).startswith("An error occurred while calling")
        and "Trace:" not in str(error)
    )


def _raised_by_pyspark(error: BaseException) -> bool:
    """Whether the error comes from a connection to the JVM, and not from a socket of the user's."""
    trace, module = error.__traceback__, ""
    while trace is not None:
        module = str(trace.tb_frame.f_globals.get("__name__", ""))
        trace = trace.tb_next
    return module.startswith(("py4j.", "pyspark.", "socket"))


def _is_grpc(error: BaseException) -> bool:
    return any(kind.__module__.startswith("grpc") and kind.__name__ == "RpcError" for kind in type(error).__mro__)


def _grpc_details(error: BaseException) -> str:
    details = getattr(error, "details", None)
    return str(details()) if callable(details) else type(error).__name__
