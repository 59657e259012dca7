"""Who is told what a tick changed, and what is remembered of it."""
