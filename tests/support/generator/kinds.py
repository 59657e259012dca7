"""Kinds: what the generator knows of a column's type, enough to write SQL that binds."""

from __future__ import annotations

from enum import StrEnum


class Kind(StrEnum):
    """Types between which the generator makes a difference."""

    BOOL = "bool"
    INT = "int"
    """Whole numbers up to 32 bits."""
    BIGINT = "bigint"
    DECIMAL = "decimal"
    FLOAT = "float"
    DOUBLE = "double"
    """Doubles of few binary digits: sums of them are exact, so they do not depend on the order of rows."""
    REAL = "real"
    """Doubles of any digits: every function of one row is exact, a sum of several is not."""
    INEXACT = "inexact"
    """Doubles that depend on the order of rows in other engines. Nothing reads them; they are compared rounded."""
    STRING = "string"
    NUMERAL = "numeral"
    """Strings that mostly read as small numbers."""
    BINARY = "binary"
    DATE = "date"
    TIMESTAMP = "timestamp"
    NTZ = "ntz"
    INTS = "ints"
    STRINGS = "strings"
    STRUCT = "struct"
    MAP = "map"
    WINDOW = "window"
    """What window() and session_window() make. Nothing reads it."""


NESTED = frozenset({Kind.INTS, Kind.STRINGS, Kind.STRUCT, Kind.MAP, Kind.WINDOW})
UNREAD = frozenset({Kind.INEXACT, Kind.WINDOW})
SCALAR = tuple(kind for kind in Kind if kind not in NESTED and kind is not Kind.INEXACT)
KEYS = (*SCALAR, Kind.INTS, Kind.STRINGS, Kind.STRUCT)
"""What can be grouped, joined and ordered by."""
COMPARED = tuple(kind for kind in SCALAR if kind not in (Kind.BOOL, Kind.NUMERAL))
"""What is compared with ``<``."""
