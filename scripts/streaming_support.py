"""Write docs/streaming-support.md from the catalogue that the tests check."""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "tests"))

from support.streaming_catalogue import document  # noqa: E402 - the path comes first

(ROOT / "docs" / "streaming-support.md").write_text(document())
