"""Spark SQL text to a syntax tree: what the parser reads otherwise than sqlglot, and where things are in the text."""
