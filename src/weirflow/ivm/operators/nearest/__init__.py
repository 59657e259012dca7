"""The nearest vectors for each of those that ask, kept exact while both come and go."""
