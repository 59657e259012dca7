"""Jars of connectors: which they are, fetched once and kept."""
