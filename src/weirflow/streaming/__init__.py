"""Streaming queries on Structured Streaming: frames, writers, queries and what watches over them."""
