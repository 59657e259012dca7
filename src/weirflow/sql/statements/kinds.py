"""Telling queries from commands by their text, for what must not change anything."""

from __future__ import annotations

import re

from weirflow.errors import UnsupportedError

# What is not closed goes on to the end, in a group of its own, so that no character is read again and again.
_NOT_CODE = re.compile(
    r"""[rR]'[^']*+(?:'|(\Z))|[rR]"[^"]*+(?:"|(\Z))|'(?:[^'\\]++|\\.)*+(?:'|(\\?\Z))|"(?:[^"\\]++|\\.)*+(?:"|(\\?\Z))"""
    r"""|`[^`]*+(?:`|(\Z))|--[^\n]*|/\*.*?(?:\*/|(\Z))""",
    re.DOTALL,
)
_QUERY = re.compile(r"[\s(]*(SELECT|VALUES|TABLE|WITH|FROM)\b", re.IGNORECASE)
_VALUES = re.compile(r"[\s(]*VALUES\b", re.IGNORECASE)
_READS = re.compile(
    r"[\s(]*(SELECT|VALUES|TABLE|WITH|FROM|INSERT|UPDATE|DELETE|MERGE|CREATE|REPLACE|CACHE|EXPLAIN|DESC|DESCRIBE)\b",
    re.IGNORECASE,
)
_ABOUT_FLOWS = re.compile(
    r"\s*(CREATE\s+FLOW|CREATE\s+(OR\s+REPLACE\s+)?(SOURCE|INCREMENTAL)|DROP\s+(SOURCE|INCREMENTAL)"
    r"|SHOW\s+(SOURCES|INCREMENTAL)|(DESC|DESCRIBE|REFRESH|EXPLAIN)\s+INCREMENTAL|(DESC|DESCRIBE)\s+SOURCE)\b",
    re.IGNORECASE,
)
_MAY_BE_ABOUT_FLOWS = re.compile(r"\s*(INSERT|UPDATE|DELETE|MERGE|DESC|DESCRIBE|REFRESH)\b", re.IGNORECASE)
_SCRIPT = re.compile(r"\s*BEGIN\b", re.IGNORECASE)
_CHANGES = re.compile(r"\b(INSERT|UPDATE|DELETE|MERGE)\b", re.IGNORECASE)


def is_query(sql: str) -> bool:
    """Whether the statement can only read; False when in doubt."""
    code = _code(sql)
    return _QUERY.match(code) is not None and _CHANGES.search(code) is None


def is_values(sql: str) -> bool:
    """Whether the query is a list of values."""
    return _VALUES.match(_code(sql)) is not None


def reads_tables(sql: str) -> bool:
    """Whether the statement may read tables, as queries do, or as commands that have a query in them."""
    return _READS.match(_code(sql)) is not None


def is_about_flows(sql: str) -> bool:
    """Whether the statement begins as only those about incremental flows do."""
    return _ABOUT_FLOWS.match(_code(sql)) is not None


def may_be_about_flows(sql: str) -> bool:
    """Whether the statement is about something that may be a table, or a source or view of a flow."""
    return _MAY_BE_ABOUT_FLOWS.match(_code(sql)) is not None


def split_statements(sql: str) -> list[tuple[int, int]]:
    """Where each of the statements in ``sql`` begins and ends; semicolons are between them. A script is one."""
    code = _code(sql)
    if _SCRIPT.match(code):
        return [(0, len(sql))]
    ends = [*(found.start() for found in re.finditer(";", code)), len(sql)]
    starts = [0, *(end + 1 for end in ends)]
    return [(start, end) for start, end in zip(starts, ends, strict=False) if code[start:end].strip()]


def refuse_commands(sql: str) -> None:
    """Raise ``UnsupportedError`` for anything that may be more than a query: Spark runs commands as it reads them."""
    if not is_query(sql):
        raise UnsupportedError(
            "Only queries can be explained; this statement might change something.",
            hint="explain the SELECT in it, or run EXPLAIN as SQL",
        )


def _code(sql: str) -> str:
    """The statement with blanks for what is no code: comments and all that is in quotes, if they are closed."""
    return _NOT_CODE.sub(lambda found: " " * len(found[0]) if found.lastindex is None else found[0], sql)
