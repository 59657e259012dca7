"""Results of statements as files that executors write and clients fetch by tickets, until they expire."""
