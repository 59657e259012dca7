"""Incremental view maintenance: SQL views kept current at the cost of the change.

Bottom-up: ``zset`` (weighted batches), ``kernel`` (hashes, arrangements, expressions), ``operators`` (one file each),
``circuit`` (the delta program of all views), ``compiler`` (plans to circuits).
"""
