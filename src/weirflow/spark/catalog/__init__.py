"""The catalog that Spark keeps in its JVM: what is in it as plain data, and who is told of changes."""
