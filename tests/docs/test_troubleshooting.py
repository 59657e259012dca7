"""The page on troubleshooting has a heading for each code of an error, and none besides."""

import re
from pathlib import Path

from weirflow import WeirflowError

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "troubleshooting.md"
SOURCE = ROOT / "src" / "weirflow"


def codes():
    """The codes of all classes of errors, wherever they are, as their statements say them."""
    text = "".join(path.read_text() for path in SOURCE.rglob("*.py"))
    return {WeirflowError.code, *re.findall(r'^class \w+\([^:]*code="(\w+)"', text, re.MULTILINE)}


def test_each_code_is_a_heading_in_alphabetical_order():
    assert re.findall(r"^## (.+)$", PAGE.read_text(), re.MULTILINE) == sorted(codes())


def test_each_heading_has_advice_of_its_own():
    texts = [part.partition("\n")[2].strip() for part in PAGE.read_text().split("\n## ")[1:]]
    assert all(len(text) > 40 for text in texts)
    assert len(set(texts)) == len(texts)
