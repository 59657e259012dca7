"""Where the rows of streaming queries go: one file for each kind of sink, with its record, its checks and its code."""
