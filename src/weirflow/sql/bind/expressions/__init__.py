"""Expressions of a clause: by syntax, by call, and those that the SELECT around them computes (``placeholders``)."""
