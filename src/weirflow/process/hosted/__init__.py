"""Process functions as another engine runs them: key by key, on that engine's state and timers."""
