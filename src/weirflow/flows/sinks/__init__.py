"""Tables that the deltas of views are written to."""
