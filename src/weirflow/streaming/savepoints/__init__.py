"""States of streaming queries that somebody gave a name."""
