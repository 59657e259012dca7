"""What is done to a bound plan before it is compiled; ``optimize`` says in which order."""
