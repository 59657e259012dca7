"""Materialized views: Iceberg and Delta tables that are refreshed at the cost of what changed."""
