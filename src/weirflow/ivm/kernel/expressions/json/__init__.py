"""JSON texts, read as leniently and written exactly as Spark does."""
