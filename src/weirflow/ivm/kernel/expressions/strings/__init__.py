"""Functions of texts, patterns and regular expressions."""
