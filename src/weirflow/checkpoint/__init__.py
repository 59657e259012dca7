"""Where checkpoints live: whole objects under names, behind one small protocol and opened by URI."""

from weirflow.checkpoint.storage.contract import CheckpointStorage, ObjectInfo
from weirflow.checkpoint.storage.open import open_checkpoint_storage, open_checkpoint_storage_from_uri

__all__ = ["CheckpointStorage", "ObjectInfo", "open_checkpoint_storage", "open_checkpoint_storage_from_uri"]
