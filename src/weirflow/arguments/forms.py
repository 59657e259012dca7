"""What a signature can say about an argument besides its type, and the forms that many signatures share."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Protocol

from typing_extensions import override

_LONGEST_NAME = 255
_LONGEST_PLACE = 4096
_LONGEST_WAIT = 10**9
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")


class Form(Protocol):
    """What a value must be besides being of its type; stands in ``Annotated``."""

    def lacks(self, value: Any) -> str | None:
        """What the value must be and is not; None if it is."""


@dataclass(frozen=True)
class AtLeast(Form):
    """Not less than a bound."""

    bound: Any

    @override
    def lacks(self, value: Any) -> str | None:
        return None if value >= self.bound else f"at least {self.bound}"


@dataclass(frozen=True)
class MoreThan(Form):
    """Greater than a bound."""

    bound: Any

    @override
    def lacks(self, value: Any) -> str | None:
        return None if value > self.bound else f"more than {self.bound}"


@dataclass(frozen=True)
class AtMost(Form):
    """Not greater than a bound."""

    bound: Any

    @override
    def lacks(self, value: Any) -> str | None:
        return None if value <= self.bound else f"at most {self.bound}"


@dataclass(frozen=True)
class NotEmpty(Form):
    """Holds something: text other than blanks, or at least one element."""

    @override
    def lacks(self, value: Any) -> str | None:
        held = value.strip() if isinstance(value, str) else value
        return None if len(held) else "something that is not empty"


@dataclass(frozen=True)
class Text(Form):
    """Text of some length, without NUL, which neither files nor Spark could hold."""

    what: str
    longest: int

    @override
    def lacks(self, value: str) -> str | None:
        if value.isidentifier() and len(value) <= self.longest:  # most are
            return None
        if not value or value.isspace():
            return f"{self.what} that is not empty"
        if len(value) > self.longest:
            return f"{self.what} of at most {self.longest} characters"
        return f"{self.what} without NUL characters" if "\0" in value else None


@dataclass(frozen=True)
class Location(Form):
    """A path or URI."""

    @override
    def lacks(self, value: str | os.PathLike[str]) -> str | None:
        text = os.fspath(value)
        if not text or text.isspace():
            return "a path that is not empty"
        if len(text) > _LONGEST_PLACE:
            return f"a path of at most {_LONGEST_PLACE} characters"
        if any(len(part.encode(errors="replace")) > _LONGEST_NAME for part in text.split("/")):
            return f"a path whose parts have at most {_LONGEST_NAME} bytes"
        return "a path without NUL characters" if "\0" in text else None


@dataclass(frozen=True)
class Local(Form):
    """A path on this machine, passed on as an absolute ``Path``: it stays the same when the process moves."""

    @override
    def lacks(self, value: str | os.PathLike[str]) -> str | None:
        if _SCHEME.match(os.fspath(value)):
            return "a path on this machine, not a URI"
        try:
            self.settled(value)
        except RecursionError:  # not the value's fault
            raise
        except RuntimeError:
            return "a path in the home of a user that there is"
        return None

    def settled(self, value: str | os.PathLike[str]) -> Path:
        """What is passed on."""
        return Path(value).expanduser().absolute()


@dataclass(frozen=True)
class Secret(Form):
    """Never shown, not even when it is wrong."""

    @override
    def lacks(self, _: Any) -> None:
        return


@dataclass(frozen=True)
class AnySize(Form):
    """An int that need not fit in 64 bits."""

    @override
    def lacks(self, _: Any) -> None:
        return


@dataclass(frozen=True)
class Hint(Form):
    """What to do about a value that is wrong, where what it must be does not say it."""

    text: str

    @override
    def lacks(self, _: Any) -> None:
        return


Count = Annotated[int, AtLeast(0)]
"""How many; 0 is a number too."""
Positive = Annotated[int, AtLeast(1)]
"""How many, and not none."""
Shards = Annotated[int, AtLeast(1), AtMost(10_000)]
"""How many shards a flow may have: each is a task of every tick."""
Seconds = Annotated[float, AtLeast(0), AtMost(_LONGEST_WAIT)]
"""A stretch of time to wait or to hold something, in seconds."""
Lifetime = Annotated[float, MoreThan(0), AtMost(_LONGEST_WAIT)]
"""For how many seconds something holds, and not for none."""
Name = Annotated[str, Text("a name", _LONGEST_NAME)]
"""What a user calls something, or a column."""
Token = Annotated[str, Text("a token", 256), Hint("use a hash of what names the tick")]
"""What names a tick."""
Sql = str
"""Text of a query; what is wrong with it, its reader says, and where."""
Place = Annotated[str | os.PathLike[str], Location()]
"""A path, or the URI of a store."""
Folder = Annotated[str | os.PathLike[str], Location(), Local()]
"""A path on this machine; ``~`` is the user's home."""
Uri = Annotated[str | Path, Location(), Secret()]
"""A path or the URI of a store; it may hold a password, so errors do not show it."""
