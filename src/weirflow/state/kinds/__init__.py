"""The kinds of state that a slot may hold."""
