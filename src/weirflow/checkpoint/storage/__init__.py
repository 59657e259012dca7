"""Whole objects under names: the contract, and what keeps it."""
