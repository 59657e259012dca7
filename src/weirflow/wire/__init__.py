"""What a server and its clients say to each other: plain messages, errors, and rows as Arrow."""
