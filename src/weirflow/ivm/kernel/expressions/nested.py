"""Being written."""

from __future__ import annotations

FUNCTIONS = {}
