"""The archive of Spark's classes, without which a JVM takes twice as long to start; dozens of tests start one.

A JVM writes it as it exits, and the first one of a run is that which most tests share: no other would have it.
"""

from __future__ import annotations

import fcntl
import subprocess
import sys
from pathlib import Path

JAVA_OPTIONS = "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=192m -XX:+UseSerialGC"
"""No JVM of a test lives long enough for the optimising compiler to pay, and two cores are few.

Without that compiler Java keeps little room for code: what most tests share would throw code away and compile it again.
"""


def prepare(folder: Path) -> None:
    """Have it written if there is none; of processes with the same folder one does it, and the others wait."""
    script = Path(__file__).with_name("archive_writer.py")
    with (folder / "archive").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        # Without it tests are slower, that is all.
        subprocess.run([sys.executable, script], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
