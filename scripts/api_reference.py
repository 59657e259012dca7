"""Write docs/api.md from the signatures and docstrings of what is public."""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "tests"))

from support.api_reference import document  # noqa: E402 - the path comes first

(ROOT / "docs" / "api.md").write_text(document())
