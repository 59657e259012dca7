"""Where checkpoints live: whole objects under names, behind one small protocol and opened by URI."""

from weirflow.checkpoint.open import open_checkpoint_storage
from weirflow.checkpoint.storage import CheckpointStorage, ObjectInfo

__all__ = ["CheckpointStorage", "ObjectInfo", "open_checkpoint_storage"]
