"""Times as texts in formats, and times made of their parts."""
