"""Window functions, by recomputing the partitions a delta touches."""
