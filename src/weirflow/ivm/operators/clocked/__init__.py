"""Filters and projections that follow the clock."""
