"""The reference of public names, made of their signatures and docstrings."""

from __future__ import annotations

import ast
import enum
import importlib
import inspect
import re
import textwrap
from functools import cache
from types import ModuleType
from typing import Any

MODULES = (
    "weirflow",
    "weirflow.state",
    "weirflow.process",
    "weirflow.process.joins",
    "weirflow.metadata",
    "weirflow.vector",
    "weirflow.testing",
    "weirflow.extending",
)
_OPENING = """# Reference

Every public name, with its signature and what it says of itself; written by `make docs-api`.
[Errors](troubleshooting.md) have a page of their own.
"""
_SECTION = re.compile(r"^(Args|Attributes|Returns|Raises|Yields):$")


def document() -> str:
    """The page."""
    return _OPENING + "".join(_module(importlib.import_module(name)) for name in MODULES)


def _module(module: ModuleType) -> str:
    names = [name for name in module.__all__ if not name.startswith("__")]
    opening = inspect.getdoc(module) or ""
    return f"\n## {module.__name__}\n{_prose(opening)}\n" + "".join(_entry(module, name) for name in names)


def _entry(module: ModuleType, name: str) -> str:
    value = getattr(module, name)
    heading = f"\n### {module.__name__}.{name}\n"
    if inspect.isclass(value):
        return heading + _class(name, value)
    if inspect.isroutine(value):
        return heading + _function(name, value)
    return heading + f"`{value!r}`\n"


def _class(name: str, kind: type) -> str:
    text = _prose(inspect.getdoc(kind) or "") + "\n"
    if issubclass(kind, enum.Enum):
        return text + "\n" + "".join(f"- `{name}.{one.name}`: `{one.value!r}`\n" for one in kind)
    return text + "".join(_member(name, attribute, value) for attribute, value in _members(kind))


def _members(kind: type) -> list[tuple[str, Any]]:
    """What is public of a class, and of the classes of this package that it is made of, in the order of the source."""
    found: dict[str, Any] = {}
    for one in reversed(kind.__mro__):
        if one.__module__.startswith("weirflow"):
            found.update({name: value for name, value in vars(one).items() if not name.startswith("_")})
    return [(name, value) for name, value in found.items() if _is_documented(value)]


def _is_documented(value: object) -> bool:
    return bool(getattr(value, "__doc__", None)) and (
        inspect.isfunction(value) or isinstance(value, classmethod | staticmethod | property)
    )


def _member(owner: str, name: str, value: Any) -> str:
    summary = " ".join((inspect.getdoc(value) or "").split("\n\n")[0].split())
    shown = f"{owner}.{name}" if isinstance(value, property) else f"{owner}.{name}{_signature(value)}"
    return f"\n- `{shown}`: {_plain(summary)}\n"


def _function(name: str, function: Any) -> str:
    return f"`{name}{_signature(function)}`\n\n{_prose(inspect.getdoc(function) or '')}\n"


def _signature(value: Any) -> str:
    """The arguments as the source has them, without what they are annotated with."""
    function = inspect.unwrap(getattr(value, "__func__", value))
    arguments = _definition(function).args
    for one in [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, arguments.vararg, arguments.kwarg]:
        if one is not None:
            one.annotation = None
    whole = ast.unparse(arguments)
    return f"({re.sub(r'^(self|cls)(, |$)', '', whole)})"


@cache
def _source(function: Any) -> str:
    return textwrap.dedent(inspect.getsource(function))


def _definition(function: Any) -> ast.FunctionDef:
    (definition,) = ast.parse(_source(function)).body
    assert isinstance(definition, ast.FunctionDef)
    return definition


def _prose(doc: str) -> str:
    """A docstring as Markdown: sections as lists, examples and drawings as blocks."""
    lines: list[str] = []
    for block in doc.split("\n\n"):
        lines += ["", *_block(block)]
    return "\n".join(lines)


def _block(block: str) -> list[str]:
    first, _, rest = block.partition("\n")
    if _SECTION.match(first):
        return [f"**{first}**", "", *_items(rest)]
    if first.startswith(">>>"):
        return ["```pycon", *block.split("\n"), "```"]
    if first.startswith("    "):
        return ["```text", *textwrap.dedent(block).split("\n"), "```"]
    return [_plain(block)]


def _items(text: str) -> list[str]:
    """The lines of a section, each item as one."""
    items: list[str] = []
    for line in textwrap.dedent(text).split("\n"):
        if line.startswith("    ") and items:
            items[-1] += " " + line.strip()
        else:
            items.append(line)
    return [f"- {_plain(one)}" for one in items if one]


def _plain(text: str) -> str:
    """Names that docstrings have in double backquotes, as Markdown has them."""
    return text.replace("``", "`")
