"""Process functions on Spark's ``transformWithState``."""
