"""``WITH (name = value, ...)`` of statements about flows and catalogs."""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn

from weirflow.errors import SqlPosition, did_you_mean

if TYPE_CHECKING:
    from weirflow.sql.statements.cursor import Cursor


class Options:
    """The options of a statement, each with its place in it. ``SqlSyntaxError`` for a value of the wrong kind."""

    def __init__(self, cursor: Cursor, found: dict[str, tuple[str | int | bool, SqlPosition]]) -> None:
        self._cursor = cursor
        self._found = found

    def text(self, name: str, expected: str) -> str | None:
        """A string, or None."""
        value = self._found.get(name, (None,))[0]
        if value is not None and not isinstance(value, str):
            self.refuse(name, f"The option {name!r} is {expected}")
        return value

    def number_or(self, name: str, word: str) -> int | str:
        """A whole number, or a word in quotes; true is 1, and false or no option 0."""
        value = self._found.get(name, (0,))[0]
        if value == word:
            return word
        if isinstance(value, str):
            near = did_you_mean(value, [word])
            self.refuse(name, f"The option {name!r} is true, false, a number or '{word}'", hint=near)
        return int(value)

    def count(self, name: str) -> int:
        """A whole number above 0; 0 without the option."""
        value = self._found.get(name, (0,))[0]
        if name in self._found and (isinstance(value, str | bool) or value < 1):
            self.refuse(name, f"The option {name!r} is a whole number above 0")
        return int(value)

    def flag(self, name: str, *, default: bool) -> bool:
        """True or false."""
        value = self._found.get(name, (default,))[0]
        if not isinstance(value, bool):
            self.refuse(name, f"The option {name!r} is true or false")
        return value

    def refuse(self, name: str, problem: str, *, hint: str | None = None) -> NoReturn:
        """Raise ``SqlSyntaxError`` at an option's value."""
        self._cursor.fail(problem, hint=hint, position=self._found[name][1])


def read_options(cursor: Cursor, known: tuple[str, ...]) -> Options:
    """Read the options if there are any; one that is not known is refused."""
    return Options(cursor, _read(cursor, known))


def read_any_options(cursor: Cursor) -> dict[str, str | int | bool]:
    """Read the options if there are any, whatever they are called: another than the grammar knows them."""
    return {name: value for name, (value, _) in _read(cursor, None).items()}


def _read(cursor: Cursor, known: tuple[str, ...] | None) -> dict[str, tuple[str | int | bool, SqlPosition]]:
    found: dict[str, tuple[str | int | bool, SqlPosition]] = {}
    if not cursor.accept("WITH"):
        return found
    cursor.expect("(")
    while True:
        place = cursor.here()
        name = cursor.name() if known is None else cursor.name().lower()
        if known is not None and name not in known:
            hint = did_you_mean(name, known)
            cursor.fail(f"No option is called {name!r}; there are {', '.join(known)}", hint=hint, position=place)
        if name in found:
            cursor.fail(f"The option {name!r} is given twice", position=place)
        cursor.expect("=")
        place = cursor.here()
        found[name] = (cursor.value(), place)
        if not cursor.accept(","):
            break
    cursor.expect(")")
    return found
