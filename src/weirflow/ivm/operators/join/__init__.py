"""Joins: the operator, the split of rows by whether they have a match, and the pairs both go through in slices."""
