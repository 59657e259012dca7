"""Work of ours as jobs of Spark: marked, watched, stopped, in shards."""
