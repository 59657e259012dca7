"""The folder of a durable flow: its checkpoints, its log, its lock, and how it is repaired."""
