"""Vectors: arrays of floats, how far they are from each other, and bounds of that by matrix products."""
