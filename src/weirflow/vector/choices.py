"""Closed choices about vectors in stores."""

from __future__ import annotations

from enum import StrEnum


class VectorIndex(StrEnum):
    """The index with which a store searches."""

    NONE = "none"
    """Nothing: every search compares all vectors, and is exact."""
    HNSW = "hnsw"
    """A graph of neighbours: fast and nearly exact, slow to build."""
    IVFFLAT = "ivfflat"
    """Lists around centres, which are chosen from the rows that are there when it is built."""


class UnfitVectors(StrEnum):
    """What to do with a vector that a store cannot hold: of another length, with NULL, NaN or too large numbers."""

    RAISE = "raise"
    """The write fails, and nothing is written."""
    NULL = "null"
    """Its row is written without a vector, and a warning is logged."""
