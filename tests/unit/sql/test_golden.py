"""Golden files: SQL, and the text of the plan it becomes; bound, or (``== optimized``) after all passes.

``WEIRFLOW_WRITE_GOLDEN=1 pytest tests/unit/sql/test_golden.py`` writes the plans anew; read the difference before
you keep it.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from weirflow.sql.bind.query import bind_query
from weirflow.sql.passes.optimize import logical_plan
from weirflow.sql.print import print_plan

if TYPE_CHECKING:
    from weirflow.sql.plan import Field

FOLDER = Path(__file__).parent / "golden"
FILES = sorted(FOLDER.glob("*.txt"))
BOUND, OPTIMIZED = "== bound", "== optimized"


def entries(text: str) -> list[tuple[str, str, str]]:
    """The SQL, the kind of plan and the plan's text of each entry; entries are apart by an empty line."""
    found = []
    for block in text.strip().split("\n\n"):
        mark = OPTIMIZED if f"\n{OPTIMIZED}" in block else BOUND
        sql, _, plan = block.partition(f"\n{mark}")
        found.append((sql.strip(), mark, plan.strip("\n")))
    return found


def planned(sql: str, mark: str, catalog: dict[str, tuple[Field, ...]]) -> str:
    bind = logical_plan if mark == OPTIMIZED else bind_query
    return print_plan(bind(sql, catalog))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_plans_are_as_written(path: Path, catalog: dict[str, tuple[Field, ...]]) -> None:
    written = entries(path.read_text("utf-8"))
    made = [(sql, mark, planned(sql, mark, catalog)) for sql, mark, _ in written]

    if os.environ.get("WEIRFLOW_WRITE_GOLDEN"):
        path.write_text("\n\n".join(f"{sql}\n{mark}\n{plan}" for sql, mark, plan in made) + "\n", "utf-8")
    assert made == written or os.environ.get("WEIRFLOW_WRITE_GOLDEN")
