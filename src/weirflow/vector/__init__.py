"""Vector stores that hold the rows of a view: the interface, and pgvector, which implements it."""

from weirflow.types import VectorMetric
from weirflow.vector.choices import UnfitVectors, VectorIndex
from weirflow.vector.pgvector.store import PgVectorStore
from weirflow.vector.store import VectorChanges, VectorLayout, VectorStore

__all__ = [
    "PgVectorStore",
    "UnfitVectors",
    "VectorChanges",
    "VectorIndex",
    "VectorLayout",
    "VectorMetric",
    "VectorStore",
]
