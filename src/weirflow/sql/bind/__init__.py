"""From a syntax tree to a typed plan: each kind of clause and expression has its module."""
