"""Aggregates that give a sketch of a group's values, or an estimate made of one, as Spark makes it."""
