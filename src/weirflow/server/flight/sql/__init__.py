"""Arrow Flight SQL: its messages, statements, prepared statements, metadata and bulk ingest."""
