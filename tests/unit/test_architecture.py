"""docs/architecture.md names files that are there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import weirflow

SOURCES = Path(weirflow.__file__).parent
PAGE = (Path(__file__).parents[2] / "docs" / "architecture.md").read_text()


@pytest.mark.parametrize("name", sorted(set(re.findall(r"`([\w/]+\.py)`", PAGE))))
def test_a_file_that_is_named_is_there(name):
    assert any((SOURCES / folder / name).is_file() for folder in ("", "ivm"))


def test_every_folder_is_named():
    folders = {path.name for path in SOURCES.iterdir() if (path / "__init__.py").is_file()}
    assert {name for name in folders if f"| `{name}/` |" not in PAGE} == set()


def test_a_walk_passes_each_file_once():
    walks = re.findall(r"^\*\*[A-Z].*?(?=\n\n)", PAGE, re.MULTILINE | re.DOTALL)
    assert len(walks) == 8
    for walk in walks:
        files = re.findall(r"`([\w/]+\.py)`", walk)
        assert len(files) == len(set(files)), walk
