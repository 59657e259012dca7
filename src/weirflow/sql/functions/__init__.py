"""The functions a view may call: names, argument rules, result types, and the refusals of all others."""
