"""Streaming queries of Spark."""
