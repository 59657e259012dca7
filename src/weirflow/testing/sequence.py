"""``SequenceSource``: a stream whose batches a test decides, one by one."""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from weirflow.arguments import Folder, checked
from weirflow.checkpoint.storage.local.errors import os_errors
from weirflow.ivm.zset.ingest import read_table

if TYPE_CHECKING:
    from weirflow.session import Session
    from weirflow.streaming.frame import StreamingDataFrame

_FIRST_SECOND = 1_000_000_000


@checked
class SequenceSource(AbstractContextManager["SequenceSource"]):
    """A stream that has one batch for each call of ``add``, in that order, also after a restart of the query.

    The rows are kept as files, so that a query that goes on from its checkpoint finds those it has not read.

    >>> orders = SequenceSource(pa.schema({"at": pa.timestamp("us", "UTC"), "amount": pa.int64()}))
    >>> orders.add([])
    0
    >>> orders.close()

    Args:
        schema: the columns of the rows.
        folder: where rows are kept; None for a temporary folder that goes with ``close``, or with the process.
    """

    def __init__(self, schema: pa.Schema, folder: Folder | None = None) -> None:
        self.schema = schema
        self._temporary = folder is None
        self._folder = Path(tempfile.mkdtemp(prefix="weirflow-sequence-") if folder is None else folder)
        with os_errors("make", self._folder):
            self._folder.mkdir(parents=True, exist_ok=True)
        self._owner = os.getpid()
        if self._temporary:
            atexit.register(self.close)
        self._count = len(list(self._folder.glob("*.parquet")))

    def add(self, rows: Sequence[Mapping[str, Any]] | pa.Table) -> int:
        """Have the stream bring these rows as one batch, and return the batch's number in the sequence."""
        table = read_table(rows, self.schema)
        number = self._count
        aside = self._folder / f".{number}"
        with os_errors("write", aside):
            pq.write_table(table.cast(self.schema), aside)
            # Spark reads files by their age.
            moment = _FIRST_SECOND + number
            os.utime(aside, (moment, moment))
            aside.rename(self._folder / f"{number:09}.parquet")
        self._count += 1
        return number

    def stream(self, session: Session) -> StreamingDataFrame:
        """The stream, in a Session; several queries may read it, each from its beginning."""
        from weirflow.spark.frames.arrow import spark_schema  # noqa: PLC0415 - imports pyspark

        columns = spark_schema(self.schema)
        return session.read_stream("parquet", self._folder, schema=columns, maxFilesPerTrigger=1)

    def close(self) -> None:
        """Remove the temporary folder."""
        if self._temporary and os.getpid() == self._owner:  # a forked child has only borrowed it
            atexit.unregister(self.close)
            shutil.rmtree(self._folder, ignore_errors=True)

    def __exit__(self, *_: object) -> None:
        self.close()
