"""Indexes that find near vectors approximately: lists around centres (faiss) and graphs (usearch).

An index lives in memory beside the state, and is made anew from the documents when it is not there. It may still know
documents that are gone: whoever asks leaves them out.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import numpy as np
from typing_extensions import override

from weirflow.errors import DependencyMissing
from weirflow.types import VectorIndexKind, VectorMetric

if TYPE_CHECKING:
    from weirflow.ivm.kernel.vectors.vectors import Floats
    from weirflow.ivm.zset.batch import Int64s
    from weirflow.sql.plan import VectorIndex

_MODULES = {VectorIndexKind.IVF: "faiss", VectorIndexKind.HNSW: "usearch"}
_TRAINED_BY = 48
"""Vectors for each list from which its centre is learned."""
_LEAST_PROBES = 8
_PROBED = 16
"""One in so many lists is searched at first."""
_FIRST_EXPANSION = 64
_MOST_EXPANSION = 4096


def require_index(index: VectorIndex) -> None:
    """Raise ``DependencyMissing`` if what makes the index is not installed."""
    if find_spec(_MODULES[index.kind]) is None:
        raise DependencyMissing.extra("vector", needed_for=f"A vector view with index={index.kind.value!r}")  # noqa: S610 - no Django


def made_index(index: VectorIndex, metric: VectorMetric, matrix: Floats, ids: Int64s) -> SearchIndex:
    """A new index over the rows of a matrix."""
    kind = IvfSearch if index.kind is VectorIndexKind.IVF else HnswSearch
    return kind(dict(index.parameters), metric, _prepared(matrix, metric), ids)


def _prepared(matrix: Floats, metric: VectorMetric) -> Floats:
    """Vectors as indexes want them: of single precision, and for the cosine of length 1."""
    found = np.ascontiguousarray(matrix, np.float32)
    if metric is VectorMetric.COSINE:
        found = found / np.linalg.norm(found, axis=1, keepdims=True)
    return found


class SearchIndex(ABC):
    """An index over vectors with numbers; the same number may be there more than once.

    Attributes:
        size: how many vectors it holds, those that are gone included.
    """

    def __init__(self, metric: VectorMetric) -> None:
        self._metric = metric
        self.size = 0

    def add(self, ids: Int64s, matrix: Floats) -> None:
        """Take in vectors."""
        if len(ids):
            self._add(ids, _prepared(matrix, self._metric))
            self.size += len(ids)

    def search(self, matrix: Floats, count: int) -> Int64s:
        """For each row the numbers of vectors near to it, -1 where there are not so many."""
        return self._search(_prepared(matrix, self._metric), min(count, self.size))

    @abstractmethod
    def more(self) -> bool:
        """Search longer from now on, to find more; False if it does not: all is searched, or effort was prescribed."""

    @property
    @abstractmethod
    def reach(self) -> int:
        """How much is searched for a query, which can be set to what it was."""

    @reach.setter
    @abstractmethod
    def reach(self, reach: int) -> None: ...

    @property
    @abstractmethod
    def effort(self) -> str:
        """What is searched for a query, for people."""

    @abstractmethod
    def _add(self, ids: Int64s, matrix: Floats) -> None: ...

    @abstractmethod
    def _search(self, matrix: Floats, count: int) -> Int64s: ...


class IvfSearch(SearchIndex):
    """Lists of vectors around centres, of which the nearest are searched."""

    def __init__(self, parameters: dict[str, int], metric: VectorMetric, matrix: Floats, ids: Int64s) -> None:
        import faiss  # noqa: PLC0415 - optional, and slow to import

        super().__init__(metric)
        self._lists = min(parameters.get("lists") or max(1, int(4 * len(ids) ** 0.5)), max(1, len(ids)))
        kind = faiss.METRIC_L2 if metric is VectorMetric.L2 else faiss.METRIC_INNER_PRODUCT
        centres = faiss.IndexFlatL2(matrix.shape[1]) if kind == faiss.METRIC_L2 else faiss.IndexFlatIP(matrix.shape[1])
        self._index: Any = faiss.IndexIVFFlat(centres, matrix.shape[1], self._lists, kind)
        self._centres = centres  # which faiss does not keep alive
        self._index.cp.niter = 10
        self._index.cp.min_points_per_centroid = 1
        chosen = np.random.default_rng(len(ids)).permutation(len(ids))[: _TRAINED_BY * self._lists]
        self._index.train(matrix[np.sort(chosen)])
        self._fixed = "probes" in parameters
        self._index.nprobe = min(self._lists, parameters.get("probes") or max(_LEAST_PROBES, self._lists // _PROBED))
        self.add(ids, matrix)

    @override
    def more(self) -> bool:
        if self._fixed or self.reach >= self._lists:
            return False
        self.reach = min(self._lists, 2 * self.reach)
        return True

    @property
    @override
    def reach(self) -> int:
        return int(self._index.nprobe)

    @reach.setter
    @override
    def reach(self, reach: int) -> None:
        self._index.nprobe = reach

    @property
    @override
    def effort(self) -> str:
        return f"{self.reach:,} of {self._lists:,} lists"

    @override
    def _add(self, ids: Int64s, matrix: Floats) -> None:
        self._index.add_with_ids(matrix, ids)

    @override
    def _search(self, matrix: Floats, count: int) -> Int64s:
        found: Int64s = self._index.search(matrix, count)[1]
        return found


class HnswSearch(SearchIndex):
    """A graph of near vectors that is walked."""

    def __init__(self, parameters: dict[str, int], metric: VectorMetric, matrix: Floats, ids: Int64s) -> None:
        from usearch.index import Index  # noqa: PLC0415 - optional, and slow to import

        super().__init__(metric)
        self._fixed = "expansion_search" in parameters
        self._index: Any = Index(
            ndim=matrix.shape[1],
            metric="l2sq" if metric is VectorMetric.L2 else "ip",
            dtype="f32",
            connectivity=parameters["connectivity"],
            expansion_add=parameters["expansion_add"],
            expansion_search=parameters.get("expansion_search", _FIRST_EXPANSION),
            multi=True,
        )
        self.add(ids, matrix)

    @override
    def more(self) -> bool:
        if self._fixed or self.reach >= _MOST_EXPANSION:
            return False
        self.reach = 2 * self.reach
        return True

    @property
    @override
    def reach(self) -> int:
        return int(self._index.expansion_search)

    @reach.setter
    @override
    def reach(self, reach: int) -> None:
        self._index.expansion_search = reach

    @property
    @override
    def effort(self) -> str:
        return f"{self.reach:,} candidates"

    @override
    def _add(self, ids: Int64s, matrix: Floats) -> None:
        self._index.add(ids.view(np.uint64), matrix)

    @override
    def _search(self, matrix: Floats, count: int) -> Int64s:
        matches = self._index.search(matrix, count)
        keys = np.atleast_2d(matches.keys).astype(np.uint64).view(np.int64)
        counts = np.atleast_1d(getattr(matches, "counts", np.full(len(keys), keys.shape[1])))
        found: Int64s = np.where(np.arange(keys.shape[1]) < counts[:, np.newaxis], keys, -1)
        return found
