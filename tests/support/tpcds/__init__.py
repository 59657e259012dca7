"""TPC-DS: its 24 tables, its 99 queries in words of our own, and a small, skewed world that answers them."""
