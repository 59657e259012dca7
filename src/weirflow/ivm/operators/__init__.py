"""The operators of a circuit, one file each; a file's first line is the operator's definition."""
