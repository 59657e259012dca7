"""Z-sets: rows with integer weights, their equality, and the public ``DeltaBatch``."""

from weirflow.ivm.zset.batch import Batch
from weirflow.ivm.zset.delta import DeltaBatch

__all__ = ["Batch", "DeltaBatch"]
