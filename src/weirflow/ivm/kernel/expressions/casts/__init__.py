"""CAST and TRY_CAST between all types; ``dispatch`` chooses."""
