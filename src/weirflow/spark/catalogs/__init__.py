"""Catalogs by name: what an address means, the Spark settings it becomes, and what is said when it does not work."""
