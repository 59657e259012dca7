"""A server is started with what its first requests need, which may come all at once."""

from __future__ import annotations

import subprocess
import sys

SCRIPT = """
import sys
from weirflow import Server

with Server({}, http="127.0.0.1:0", flight="off", insecure=True, warm=False):
    assert "pyspark.sql" in sys.modules
"""


def test_pyspark_is_imported_before_requests_are_taken():
    """Its modules need each other: two threads that begin with different ones find them half imported."""
    subprocess.run([sys.executable, "-c", SCRIPT], check=True)
