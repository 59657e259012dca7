"""Who may do what: callers and their roles, tokens, limits, what statements need, and the audit log."""
