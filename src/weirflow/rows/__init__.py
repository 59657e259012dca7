"""Rows as users give them: Python values and Arrow, pandas and Polars data become Arrow columns exactly, or not at all.

``tabular`` finds the columns of whatever is given, ``values`` converts Python values, ``casts`` converts Arrow arrays;
what a value must be to fit a type is in ``exact`` (with ``numbers`` and ``times``) alone.
"""
