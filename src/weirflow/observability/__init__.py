"""What Weirflow shows of itself while it works."""
