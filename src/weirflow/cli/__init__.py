"""The ``weirflow`` command: SQL, plans, and what is wrong with this machine."""

from weirflow.cli.app import main

__all__ = ["main"]
