"""The delta program of a flow: operators, how they are wired, and the tick that runs them."""
