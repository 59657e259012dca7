"""A query's result in a file, written as it arrives. The file appears whole, or not at all."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq

from weirflow.cli.options import nearest_file
from weirflow.cli.output import write_csv, write_jsonl
from weirflow.errors import ConfigError, PathNotFound, UnsupportedError

if TYPE_CHECKING:
    from weirflow.cli.result import Result


def check_output(path: Path) -> None:
    """Refuse a file that could not be written, before Spark works for it."""
    if path.suffix.lower() not in _WRITERS:
        raise UnsupportedError(
            f"The name of {path} does not say how to write it.", hint=f"let it end in {', '.join(_WRITERS)}"
        )
    if not path.absolute().parent.is_dir():
        folder = path.absolute().parent
        raise PathNotFound(f"There is no folder {folder}.", hint=nearest_file(folder))
    if path.is_dir():
        raise ConfigError(f"{path} is a folder.", hint="name a file in it")


def write_file(result: Result, path: Path) -> None:
    """Write all rows to ``path`` in the format its suffix says, replacing what was there."""
    try:
        with _replacing(path) as draft:
            _WRITERS[path.suffix.lower()](result, draft)
    except (OSError, pa.ArrowException) as error:
        raise ConfigError(f"{path} cannot be written: {error}.") from error


@contextlib.contextmanager
def _replacing(path: Path) -> Iterator[Path]:
    handle, name = tempfile.mkstemp(dir=path.absolute().parent, prefix=f".{path.name}.")
    os.close(handle)
    draft = Path(name)
    try:
        yield draft
        mask = os.umask(0)
        os.umask(mask)
        draft.chmod(0o666 & ~mask)  # temporary files are private, this one need not stay so
        draft.replace(path.resolve())
    finally:
        draft.unlink(missing_ok=True)


def _write_parquet(result: Result, draft: Path) -> None:
    result.require_distinct_names("a parquet file")
    with pq.ParquetWriter(draft, result.schema) as writer:
        for batch in result:
            writer.write_batch(batch)


def _write_arrow(result: Result, draft: Path) -> None:
    with pa.OSFile(str(draft), "wb") as file, pa.ipc.new_file(file, result.schema) as writer:
        for batch in result:
            writer.write_batch(batch)


def _write_csv(result: Result, draft: Path) -> None:
    with draft.open("w", encoding="utf-8", newline="") as file:
        write_csv(result, file)


def _write_jsonl(result: Result, draft: Path) -> None:
    with draft.open("w", encoding="utf-8", newline="") as file:
        write_jsonl(result, file)


_WRITERS: dict[str, Callable[[Result, Path], None]] = {
    ".parquet": _write_parquet,
    ".csv": _write_csv,
    ".jsonl": _write_jsonl,
    ".arrow": _write_arrow,
}
