"""The one place that holds Weirflow's version."""

__version__ = "0.1.0"
