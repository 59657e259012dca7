"""The plan that Spark's analyzer made of a query, as data."""
