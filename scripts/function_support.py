"""Write docs/functions.md, and the table it is made of, from what Spark says of its functions and what a flow does.

Needs Spark, and takes a minute or two: ``python scripts/function_support.py``. Tests check that the table is true.
"""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "tests"))

from support.function_catalogue import TABLE, calls_of, document, dump, found_kinds  # noqa: E402 - the path comes first

from weirflow import Session  # noqa: E402 - as above

with Session.embedded(progress="off") as session:
    calls = calls_of(session.spark)
    entries = found_kinds(session, calls)
TABLE.write_text(dump(entries))
(ROOT / "docs" / "functions.md").write_text(document(entries))
