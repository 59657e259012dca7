"""Typed logical plans to circuits."""
