"""Where the deltas of views are written to, each once and in order."""
