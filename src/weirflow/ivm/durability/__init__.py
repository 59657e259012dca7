"""What makes a flow survive its process: a log of ticks, and checkpoints of its state."""
