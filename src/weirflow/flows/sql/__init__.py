"""Statements about flows: sources and views made, described and changed by SQL."""
