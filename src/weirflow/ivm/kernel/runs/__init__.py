"""Sorted immutable runs: how they are made, merged in bounded slices, searched, and where they lie."""
