"""The queries of Nexmark, each in a file of its own."""

from __future__ import annotations

from pathlib import Path

FOLDER = Path(__file__).parent / "queries"

QUERIES: dict[str, str] = {path.stem: path.read_text() for path in sorted(FOLDER.glob("q*.sql"))}
