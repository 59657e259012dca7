"""``SequenceSource``: its temporary folder goes with the process that made it, and not with a child of that process."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

PROGRAM = """
import os
import pyarrow as pa
from weirflow.testing.sequence import SequenceSource

source = SequenceSource(pa.schema({"n": pa.int64()}))
source.add([{"n": 1}])
child = os.fork()
if child == 0:
    source.close()
    raise SystemExit(0)
os.waitpid(child, 0)
print(source._folder, len(list(source._folder.glob("*.parquet"))))
"""


def test_the_folder_goes_with_the_process_and_not_with_a_child() -> None:
    told = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True, timeout=60)
    folder, files = told.stdout.split()
    assert files == "1"
    assert not Path(folder).exists()
