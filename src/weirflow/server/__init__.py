"""The server: a coordinator that owns a Session, and the doors through which others reach it."""
