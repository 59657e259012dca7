"""Starting Spark, or connecting to one: Java, the driver's JVM, masters and Connect servers."""
