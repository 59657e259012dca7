"""What an incremental view cannot hold, each with a reason code that stays the same from release to release."""

from __future__ import annotations

from enum import StrEnum

from weirflow.errors import QueryError, SqlPosition


class Reason(StrEnum):
    """Why a query is valid Spark SQL, yet not accepted as an incremental view."""

    EXPRESSION_NOT_DETERMINISTIC = "EXPRESSION_NOT_DETERMINISTIC"
    """The same rows could give another result tomorrow: ``now()``, ``rand()``, ``uuid()``."""
    FUNCTION_NOT_PROVEN = "FUNCTION_NOT_PROVEN"
    """Spark has the function, but no proof says that ours equals it."""
    OPERATOR_NOT_INCREMENTALIZABLE = "OPERATOR_NOT_INCREMENTALIZABLE"
    """The operator has no delta rule: PIVOT, TABLESAMPLE, LATERAL subqueries that cannot become joins."""
    SETTING_NOT_SUPPORTED = "SETTING_NOT_SUPPORTED"
    """The SQL is to be read with a setting that only Spark knows."""
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
