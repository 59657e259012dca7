"""How a circuit is cut into stages, and where rows have to be."""
