"""Java's ``StrictMath``: functions of doubles that give the same bits on every machine, for whole arrays."""
