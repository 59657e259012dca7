"""The page about supported SQL says what the compiler does."""

from pathlib import Path

import pytest
from support.sql_catalogue import CONSTRUCTS, document, outcome

PAGE = Path(__file__).parents[4] / "docs" / "sql-support.md"


@pytest.mark.parametrize("construct", CONSTRUCTS, ids=lambda one: one.name)
def test_every_construct_is_maintained_as_the_page_says(construct):
    assert outcome(construct.sql) == construct.outcome


def test_the_page_is_the_catalogue():
    assert PAGE.read_text() == document(), "run: make docs-sql"
