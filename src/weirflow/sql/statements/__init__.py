"""Statements beside queries, cut into their parts token by token."""
