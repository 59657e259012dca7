"""Flows whose circuit runs in shards: how it is cut into stages, what a shard's task does, who commits."""
