"""The audit log: one line of JSON for each request, which says who did what to what and how it ended.

There is no secret in it and no value of a row: of a statement it has the words, with a ``?`` for each literal.
"""

from __future__ import annotations

import json
import logging
import os
import threading
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from weirflow.sql.statements.lexer import LexemeKind, Lexer

if TYPE_CHECKING:
    from pathlib import Path

    from weirflow.server.access.caller import Caller

_log = logging.getLogger("weirflow.audit")

_LONGEST_SHAPE = 400
_WITHOUT_SPACE = frozenset("(),.;[]")


class AuditLog:
    """Appends to a file, or without one to the logger ``weirflow.audit``.

    The file may be moved away at any time; what comes after that is in a new one of its name.
    """

    def __init__(self, file: Path | None = None) -> None:
        self._file = file
        self._lock = threading.Lock()
        self._descriptor: int | None = None
        self._opened: tuple[int, int] | None = None
        if file is not None:
            file.parent.mkdir(parents=True, exist_ok=True)

    def write(
        self, caller: Caller, what: str, *, flow: str | None, detail: str, code: str, milliseconds: float
    ) -> None:
        """Write down a request that has ended, with ``OK`` or the code of its error."""
        line = {
            "time": datetime.now(UTC).isoformat(timespec="milliseconds"),
            "who": caller.name,
            "role": caller.role.value,
            "token": caller.token_id,
            "peer": caller.peer,
            "what": what,
            "flow": flow,
            "detail": detail or None,
            "outcome": code,
            "ms": round(milliseconds, 1),
        }
        text = json.dumps({name: value for name, value in line.items() if value is not None})
        if self._file is None:
            _log.info("%s", text)
            return
        try:
            self._append(self._file, text.encode() + b"\n")
        except OSError as error:  # the request has happened, whatever becomes of its line
            _log.error("the audit log cannot be written (%s): %s", error.strerror, text)

    def _append(self, file: Path, line: bytes) -> None:
        with self._lock:
            if self._descriptor is None or _identity(file) != self._opened:
                self._open(file)
            assert self._descriptor is not None
            os.write(self._descriptor, line)

    def _open(self, file: Path) -> None:
        """Have the file open that has the name now: the one that had it was moved away."""
        descriptor = os.open(file, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
        before, self._descriptor = self._descriptor, descriptor
        self._opened = _identity(descriptor)
        if before is not None:
            os.close(before)

    def close(self) -> None:
        """Let go of the file. May be repeated; what is written after that opens it again."""
        with self._lock:
            before, self._descriptor = self._descriptor, None
            if before is not None:
                os.close(before)


def _identity(file: Path | int) -> tuple[int, int] | None:
    """Which file has a name, or is open; None if there is none."""
    try:
        found = os.stat(file)  # noqa: PTH116 - a file that is open has no path
    except FileNotFoundError:
        return None
    return found.st_dev, found.st_ino


def statement_shape(sql: str) -> str:
    """A statement without its literals, as the audit log and lists of operations may show it.

    >>> statement_shape("SELECT * FROM t WHERE card = '4111' AND  age > 42 -- mine")
    'SELECT * FROM t WHERE card = ? AND age > ?'
    """
    words: list[str] = []
    length = 0
    for lexeme in Lexer(sql):
        is_literal = lexeme.kind in (LexemeKind.TEXT, LexemeKind.OPEN) or lexeme.text[0].isdigit()
        word = "?" if is_literal else lexeme.text
        if word == "?" and words[-2:] == ["?", ","]:  # a list of values is as good as its first
            words.pop()
            continue
        words.append(word)
        length += len(word) + 1
        if length > _LONGEST_SHAPE:
            break
    return _joined(words)


def _joined(words: list[str]) -> str:
    text = ""
    for word in words:
        is_glued = not text or word in _WITHOUT_SPACE or text[-1] in ".(["
        text += word if is_glued else f" {word}"
    return text if len(text) <= _LONGEST_SHAPE else text[: _LONGEST_SHAPE - 1] + "…"
