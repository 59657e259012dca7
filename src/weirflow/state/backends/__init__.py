"""Where state is kept: the contract, and what keeps it."""
