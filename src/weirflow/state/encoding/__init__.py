"""Keys and values as bytes, and where each of them goes."""
