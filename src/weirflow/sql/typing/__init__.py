"""Spark's rules of types: casts, implicit casts, precision of decimals, types of literals."""
