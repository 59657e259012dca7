"""Objects in a folder of this machine."""
