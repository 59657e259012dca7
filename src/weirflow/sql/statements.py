"""Telling queries from commands by their text, for what must not change anything."""

from __future__ import annotations

import re

from weirflow.errors import UnsupportedError

_NOT_CODE = re.compile(
    r"""[rR]'[^']*'|[rR]"[^"]*"|'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|`[^`]*`|--[^\n]*|/\*.*?\*/""", re.DOTALL
)
_QUERY = re.compile(r"[\s(]*(SELECT|VALUES|TABLE|WITH|FROM)\b", re.IGNORECASE)
_CHANGES = re.compile(r"\b(INSERT|UPDATE|DELETE|MERGE)\b", re.IGNORECASE)


def is_query(sql: str) -> bool:
    """Whether the statement can only read; False when in doubt."""
    code = _NOT_CODE.sub(" ", sql)
    return _QUERY.match(code) is not None and _CHANGES.search(code) is None


def refuse_commands(sql: str) -> None:
    """Raise ``UnsupportedError`` for anything that may be more than a query: Spark runs commands as it reads them."""
    if not is_query(sql):
        raise UnsupportedError(
            "Only queries can be explained; this statement might change something.",
            hint="explain the SELECT in it, or run EXPLAIN as SQL",
        )
