"""Spark's errors as ours: one place where Py4J, gRPC and PySpark exceptions become ``WeirflowError``."""

from __future__ import annotations

import contextlib
import logging
import re
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlparse

from py4j.protocol import Py4JError, Py4JJavaError, Py4JNetworkError
from pyspark.errors import PySparkException, PythonException

from weirflow.errors import (
    AlreadyExists,
    ColumnNotFound,
    DataError,
    EndpointUnreachable,
    FunctionNotFound,
    PathNotFound,
    QueryError,
    SessionError,
    SqlPosition,
    SqlSyntaxError,
    SqlTypeError,
    TableNotFound,
    UserCodeError,
    WeirflowError,
    did_you_mean,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    TableNames = Callable[[], Iterable[str]]

# Spark's error conditions, by their first part, that have a class of their own here.
_BY_CONDITION: dict[str, type[QueryError]] = {
    "PARSE_SYNTAX_ERROR": SqlSyntaxError,
    "PARSE_EMPTY_STATEMENT": SqlSyntaxError,
    "TABLE_OR_VIEW_NOT_FOUND": TableNotFound,
    "VIEW_NOT_FOUND": TableNotFound,
    "UNRESOLVED_COLUMN": ColumnNotFound,
    "UNRESOLVED_USING_COLUMN_FOR_JOIN": ColumnNotFound,
    "FIELD_NOT_FOUND": ColumnNotFound,
    "UNRESOLVED_ROUTINE": FunctionNotFound,
    "PATH_NOT_FOUND": PathNotFound,
    "PATH_ALREADY_EXISTS": AlreadyExists,
    "TABLE_OR_VIEW_ALREADY_EXISTS": AlreadyExists,
    "LOCATION_ALREADY_EXISTS": AlreadyExists,
    "DATATYPE_MISMATCH": SqlTypeError,
}
# Otherwise the SQLSTATE's class decides: 22 is "data exception".
_BY_SQLSTATE_CLASS: dict[str, type[QueryError]] = {"22": DataError}

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
        if known is None:
            raise
        raise known from error


def translate(error: BaseException, table_names: TableNames | None = None) -> WeirflowError | None:
    """The ``WeirflowError`` for an error of Spark's, or None when it is not one."""
    if isinstance(error, WeirflowError):
        return error
    if isinstance(error, PySparkException):
        return _from_pyspark(error, table_names)
    if isinstance(error, Py4JNetworkError | ConnectionRefusedError | ConnectionResetError | BrokenPipeError):
        return SessionError("The connection to Spark's JVM is gone.", hint="close this Session and open another")
    if isinstance(error, Py4JError):
        return _from_java(error)
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


def _from_pyspark(error: PySparkException, table_names: TableNames | None) -> WeirflowError | None:
    if isinstance(error, AttributeError | TypeError | NotImplementedError):
        return None  # a wrong call in Python, and Python's own class for it
    text = str(error)
    if type(error).__name__ in {"SparkConnectGrpcException", "RetriesExceeded"}:
        return _from_connect(text)
    if isinstance(error, PythonException):
        return UserCodeError(_python_traceback(text))
    condition = error.getCondition()
    kind = _kind(condition, error.getSqlState())
    return kind(
        _plain_message(text),
        hint=_hint(kind, error.getMessageParameters() or {}, table_names),
        position=_position(text, _fragment(error)),
        condition=condition,
    )


def _from_connect(text: str) -> WeirflowError:
    if match := _JAVA_MESSAGE.search(text):
        return _kind(match.group(1), match.group(3))(match.group(2).strip(), condition=match.group(1))
    if "StatusCode.UNAVAILABLE" in text or "RETRIES_EXCEEDED" in text:
        return EndpointUnreachable(
            "The connection to the Spark Connect server failed.",
            hint="check that the server runs, then open another Session",
        )
    return QueryError(text.strip())


def _from_java(error: Py4JError) -> WeirflowError:
    thrown = error.java_exception if isinstance(error, Py4JJavaError) else None
    text = str((thrown.getMessage() or thrown.toString()) if thrown is not None else error)
    if match := _JAVA_MESSAGE.search(text):
        return _kind(match.group(1), match.group(3))(match.group(2).strip(), condition=match.group(1))
    return QueryError(text.strip())


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
        wanted = _bare(parameters.get("objectName") or parameters.get("fieldName") or "")
        proposals = [_bare(part) for part in re.findall(r"(?:`[^`]*`\.?)+", parameters.get("proposal", ""))]
        return did_you_mean(wanted, proposals) or (f"the columns are {', '.join(proposals)}" if proposals else None)
    if kind is TableNotFound and table_names is not None:
        known = sorted(table_names())
        near = did_you_mean(_bare(parameters.get("relationName", "")), known)
        return near or (f"the tables are {', '.join(known[:10])}" if known else "no table is registered yet")
    if kind is PathNotFound:
        return _nearest_path(parameters.get("path", ""))
    return None


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


def _python_traceback(text: str) -> str:
    start = text.find("Traceback (most recent call last)")
    trace = text[start:].strip() if start >= 0 else text.strip()
    trace = trace.split("\n\nJVM stacktrace")[0].rstrip()
    return f"A Python function that Spark ran raised {trace.splitlines()[-1]}\n{trace}"


def _is_grpc(error: BaseException) -> bool:
    return any(kind.__module__.startswith("grpc") and kind.__name__ == "RpcError" for kind in type(error).__mro__)


def _grpc_details(error: BaseException) -> str:
    details = getattr(error, "details", None)
    return str(details()) if callable(details) else type(error).__name__
