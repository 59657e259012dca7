"""The types of a function's parameters, as its signature names them."""

from __future__ import annotations

import ast
import functools
import inspect
import sys
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from types import ModuleType

_PARSING = threading.Lock()
"""Python 3.11 counts the depth of all syntax trees that are being made in one place, and threads disturb each other."""


def parameter_types(function: Callable[..., Any]) -> tuple[dict[str, Any], tuple[str, ...]]:
    """The type of each annotated parameter of a function, and the names of those whose type cannot be told.

    An annotation may use what its module imports for type checkers only. That is imported now: by the time of a first
    call, modules that need each other are loaded.
    """
    function = inspect.unwrap(function)
    names = _Names(sys.modules.get(function.__module__), function.__globals__)
    found: dict[str, Any] = {}
    unknown = []
    for parameter, annotation in function.__annotations__.items():
        if parameter != "return":
            try:
                found[parameter] = names.meaning(annotation)
            except (NameError, AttributeError, ImportError, TypeError):
                unknown.append(parameter)
    return found, tuple(unknown)


class _Names(dict[str, Any]):
    """What annotations of a module may name besides its globals: imports and aliases for type checkers only."""

    def __init__(self, module: ModuleType | None, scope: dict[str, Any]) -> None:
        super().__init__()
        self._scope = scope
        self._statements = {} if module is None else _for_type_checkers(module)

    def __missing__(self, name: str) -> Any:
        statement = self._statements[name]
        # The statement is a line of this package's own source, in a block that type checkers read.
        exec(compile(ast.Module([statement], []), "<annotations>", "exec"), self._scope, self)  # noqa: S102
        return self[name]

    def meaning(self, annotation: Any) -> Any:
        if not isinstance(annotation, str):
            return annotation
        return eval(annotation, self._scope, self)  # noqa: S307 - an annotation in this package's own source


@functools.cache
def _for_type_checkers(module: ModuleType) -> dict[str, ast.stmt]:
    """What each name stands for that a module binds under ``if TYPE_CHECKING``; nothing if its source is not there."""
    try:
        source = inspect.getsource(module)
        with _PARSING:
            tree = ast.parse(source)
    except (OSError, TypeError):
        return {}
    found: dict[str, ast.stmt] = {}
    for block in tree.body:
        if isinstance(block, ast.If) and isinstance(block.test, ast.Name) and block.test.id == "TYPE_CHECKING":
            for statement in block.body:
                if isinstance(statement, ast.Import | ast.ImportFrom):
                    found |= {alias.asname or alias.name.partition(".")[0]: statement for alias in statement.names}
                elif isinstance(statement, ast.Assign):
                    found |= {name.id: statement for name in statement.targets if isinstance(name, ast.Name)}
    return found
