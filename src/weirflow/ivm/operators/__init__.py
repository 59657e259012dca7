"""The operators of a circuit, one file or folder each; a file's first line is the operator's definition."""
