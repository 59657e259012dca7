"""What a Python function raised that Spark ran, as one sentence out of the traceback that Spark hands on.

Spark's text holds the tracebacks of an exception and of what caused it, frames of PySpark's own code, and often Java's
stack behind them. A user wants the function, the exception and the line of their own code.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from weirflow.errors import UserCodeError

_TRACEBACK = "Traceback (most recent call last)"
_END = re.compile(r"\n\s*at [\w$.]+\(|\n\nJVM stacktrace|\n\nDriver stacktrace|\s+SQLSTATE: \w{5}\s*$")
_CHAINED = re.compile(
    r"\n\n(?:The above exception was the direct cause of the following exception"
    r"|During handling of the above exception, another exception occurred):\n\n"
)
_FRAME = re.compile(r'^  File "(?P<file>[^"\n]*)", line (?P<line>\d+), in (?P<function>.+)$', re.MULTILINE)
_OURS = re.compile(
    r"^weirflow\.errors\.UserCodeError: \[USER_CODE_FAILED\] (?P<message>[^\n]*)(?:\n  hint: (?P<hint>.*))?"
)
_PACKAGE = re.escape(str(Path(__file__).parents[1]))
_LIBRARIES = re.compile(rf"/(?:site|dist)-packages/|/python3\.\d+/|^{_PACKAGE}/|^<frozen |\.zip/")


@dataclass(frozen=True)
class _Frame:
    file: str
    line: int
    function: str
    code: str

    @property
    def is_users(self) -> bool:
        return _LIBRARIES.search(self.file) is None


def user_code_error(text: str) -> UserCodeError:
    """The error for what Spark says of a Python function that raised.

    >>> print(user_code_error('''Traceback (most recent call last):
    ...   File "/home/ann/shop.py", line 7, in half
    ...     return 1 / amount
    ... ZeroDivisionError: division by zero
    ...
    ... 	at org.apache.spark.api.python.BasePythonRunner(PythonRunner.scala:645)'''))
    [USER_CODE_FAILED] half() raised ZeroDivisionError: division by zero at /home/ann/shop.py, line 7: return 1 / amount
    """
    start = text.find(_TRACEBACK)
    if start < 0:
        return UserCodeError(f"A Python function that Spark ran raised {text.strip()}")
    trace = _END.split(text[start:], maxsplit=1)[0].strip()
    parts = _CHAINED.split(trace)
    raised = _raised(parts[-1])
    # Of an error that ours was made of, the first part has the line; otherwise the exception's own.
    told_by = parts[:1] if _OURS.match(raised) else parts[::-1]
    users = next((own for part in told_by if (own := [one for one in _frames(part) if one.is_users])), [])
    error = _told(raised, users)
    error.traceback = trace
    return error


def _told(raised: str, users: list[_Frame]) -> UserCodeError:
    where = "" if not users else f" at {users[-1].file}, line {users[-1].line}: {users[-1].code}".removesuffix(": ")
    if (ours := _OURS.match(raised)) is not None:
        return UserCodeError(f"{ours['message']}{where}", hint=ours["hint"])
    function = users[0].function if users else ""
    named = "A lambda function" if function == "<lambda>" else f"{function}()" if function else "A Python function"
    return UserCodeError(f"{named} raised {raised.splitlines()[0]}{where}")


def _raised(part: str) -> str:
    """The exception of a traceback: what stands behind its frames, whose lines are all indented."""
    lines = part.splitlines()
    first = next((at for at, line in enumerate(lines) if line[:1].strip() and _TRACEBACK not in line), len(lines) - 1)
    return "\n".join(lines[first:])


def _frames(part: str) -> Iterator[_Frame]:
    for found in _FRAME.finditer(part):
        behind = part[found.end() + 1 :].partition("\n")[0]
        code = behind.strip() if behind.startswith("    ") else ""
        yield _Frame(found["file"], int(found["line"]), found["function"], code)
