"""The queries of TPC-DS, each in a file of its own; those that are two have their second one in ``qNNb``."""

from __future__ import annotations

from pathlib import Path

FOLDER = Path(__file__).parent / "queries"

QUERIES: dict[str, str] = {path.stem: path.read_text() for path in sorted(FOLDER.glob("q*.sql"))}
