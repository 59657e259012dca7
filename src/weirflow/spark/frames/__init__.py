"""Frames of Spark: Arrow in and out, plans, stages."""
