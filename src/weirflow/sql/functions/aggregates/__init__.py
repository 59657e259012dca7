"""Aggregate functions: their types, what some of them mean in terms of others, and what is left open."""
