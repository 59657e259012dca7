"""Keyed state of operators in a storage: checkpoints, savepoints, and the files they share."""
