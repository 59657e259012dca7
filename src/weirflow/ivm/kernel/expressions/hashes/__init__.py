"""Hashes: digests of binaries, and the two of Spark's that take values of any type."""
