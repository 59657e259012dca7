"""Streaming queries: what starts one, what watches over it, what is told about it."""
