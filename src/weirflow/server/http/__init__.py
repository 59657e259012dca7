"""HTTP: every noun of a server as JSON or Arrow, changes of views as server-sent events."""
