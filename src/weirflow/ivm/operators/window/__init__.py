"""Window functions, over the stretches of partitions that a delta reaches."""
