"""The reference of public names is current, and has every one of them."""

import importlib
import pkgutil
import re
from pathlib import Path

from support.api_reference import MODULES, document

import weirflow

PAGE = Path(__file__).parents[2] / "docs" / "api.md"
INSIDE = {"weirflow.arguments", "weirflow.checkpoint", "weirflow.cli", "weirflow.client", "weirflow.session"}
"""What they offer is public by ``weirflow``, is spoken of by signatures alone, or is a command."""


def test_the_page_is_what_the_docstrings_say():
    assert PAGE.read_text() == document(), "make docs-api writes it anew"


def test_every_public_name_has_a_heading():
    headings = set(re.findall(r"^### (.+)$", PAGE.read_text(), re.MULTILINE))
    names = {f"{module}.{name}" for module in MODULES for name in importlib.import_module(module).__all__}
    assert headings == {name for name in names if "__" not in name}


def test_every_public_method_of_a_session_and_a_flow_is_there():
    text = PAGE.read_text()
    for owner in (weirflow.Session, weirflow.IncrementalFlow, weirflow.DeltaBatch):
        methods = [name for name in dir(owner) if not name.startswith("_") and callable(getattr(owner, name))]
        assert [name for name in methods if f"`{owner.__name__}.{name}(" not in text] == []


def test_packages_that_say_what_is_public_are_known():
    packages = {f"weirflow.{one.name}" for one in pkgutil.iter_modules(weirflow.__path__) if one.ispkg}
    offering = {name for name in packages if getattr(importlib.import_module(name), "__all__", None)}
    assert offering - set(MODULES) == INSIDE
