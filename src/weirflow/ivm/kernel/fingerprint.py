"""Fingerprints of operators: equal for what computes the same from the same sources, in any process."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import fields, is_dataclass
from enum import Enum
from typing import Any


def fingerprint(spec: Any, inputs: Iterable[str]) -> str:
    """A digest of what an operator does and of the fingerprints of its inputs, in order.

    Part of every checkpoint: a change of how something is written down here makes old state unknown.
    """
    digest = hashlib.sha256("\n".join(_written(spec)).encode())
    for one in inputs:
        digest.update(one.encode())
    return digest.hexdigest()[:32]


def _written(value: Any) -> Iterable[str]:
    """The value as lines that tell it from any other; positions in SQL text, which do not compare, are left out."""
    ahead = [value]
    while ahead:
        part = ahead.pop()
        if is_dataclass(part) and not isinstance(part, type):
            compared = [field.name for field in fields(part) if field.compare]
            yield f"{type(part).__name__} {len(compared)}"
            ahead += [getattr(part, name) for name in reversed(compared)]
        elif isinstance(part, tuple | list):
            yield f"[{len(part)}"
            ahead += reversed(part)
        elif isinstance(part, Enum):
            yield f"{type(part).__name__}.{part.name}"
        else:
            yield f"{type(part).__name__} {part!r}"
