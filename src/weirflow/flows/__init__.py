"""Incremental flows on Spark: opened by name, in this process or in shards, fed by streams and tables, told by SQL."""
