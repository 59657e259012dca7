"""Files that ``--table NAME=PATH`` makes known to SQL."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from weirflow.cli.options import nearest_file
from weirflow.errors import ConfigError, PathNotFound, UnsupportedError
from weirflow.types import Placement

if TYPE_CHECKING:
    from weirflow.session import Session

_NAME = re.compile(r"[A-Za-z_]\w*")
_FORMATS = {
    ".parquet": "parquet",
    ".csv": "csv",
    ".json": "json",
    ".jsonl": "json",
    ".ndjson": "json",
}
_COMPRESSED = (".gz", ".bz2", ".zst")
_GLOB = re.compile(r"([\\*?\[\]{}])")
_SNIFFED_CHARS = 1 << 20


@dataclass(frozen=True)
class TableFile:
    """A name for SQL and the file or folder behind it, as the user wrote it."""

    name: str
    path: str


def parse_tables(texts: Sequence[str]) -> list[TableFile]:
    """The tables of ``--table`` options; ``ConfigError`` for what cannot be one."""
    tables: dict[str, TableFile] = {}
    for text in texts:
        name, equals, path = text.partition("=")
        if not equals or not path:
            raise ConfigError(
                f"--table takes NAME=PATH, not {text!r}.", hint=f"write --table {_suggested_name(text)}={text}"
            )
        if not _NAME.fullmatch(name):
            raise ConfigError(
                f"{name!r} cannot be the name of a table.",
                hint=f"use letters, digits and underscores: --table {_suggested_name(path)}={path}",
            )
        if name.lower() in tables:
            raise ConfigError(f"Two tables are called {name!r}.", hint="give each --table a name of its own")
        tables[name.lower()] = TableFile(name, path)
    return list(tables.values())


def check_tables(session: Session, tables: Sequence[TableFile]) -> None:
    """Find files that are missing or of unknown format, before Spark is started for them."""
    for table in tables:
        _source(session, table)


def register_tables(session: Session, tables: Sequence[TableFile]) -> None:
    """Register the tables with a Session. On an endpoint, paths are those of its machines."""
    for table in tables:
        source, path, options = _source(session, table)
        read = {"parquet": session.read_parquet, "csv": session.read_csv, "json": session.read_json}[source]
        session.register(table.name, read(path, **options))


def _source(session: Session, table: TableFile) -> tuple[str, str, dict[str, Any]]:
    """The format, the path as Spark wants it, and the reader's options."""
    elsewhere = session.settings.placement is Placement.DISTRIBUTED or "://" in table.path
    return (_format_by_name(table.path), table.path, {}) if elsewhere else _local_source(table.path)


def _local_source(text: str) -> tuple[str, str, dict[str, Any]]:
    path = Path(text).expanduser().absolute()
    if not path.exists():
        if _GLOB.search(text) and any(path.parent.glob(path.name)):
            return _format_by_name(text), str(path), {}
        raise PathNotFound(f"There is no file {text}.", hint=nearest_file(path))
    source = _format_of_folder(path) if path.is_dir() else _format_by_name(text)
    options = {"multiLine": True} if source == "json" and path.is_file() and _is_one_document(path) else {}
    return source, _GLOB.sub(r"\\\1", str(path)), options


def _format_by_name(text: str) -> str:
    suffixes = [suffix.lower() for suffix in Path(text).suffixes]
    if suffixes and suffixes[-1] in _COMPRESSED:
        suffixes.pop()
    source = _FORMATS.get(suffixes[-1] if suffixes else "")
    if source is None:
        raise UnsupportedError(
            f"The name of {text} does not say what it holds.", hint=f"files end in {', '.join(_FORMATS)}"
        )
    return source


def _format_of_folder(folder: Path) -> str:
    if (folder / "_delta_log").is_dir():
        raise UnsupportedError(
            f"{folder} is a Delta table; its files alone are not its rows.",
            hint=f"run with --package delta and write FROM delta.`{folder}`",
        )
    files = (file for file in folder.rglob("*") if file.is_file() and not file.name.startswith((".", "_")))
    found = {_format_by_name(file.name) for file in files}
    if len(found) != 1:
        holds = " and ".join(sorted(found)) if found else "no data"
        raise UnsupportedError(
            f"{folder} holds {holds} files.", hint="name a folder whose files are all parquet, all csv or all json"
        )
    return found.pop()


def _is_one_document(file: Path) -> bool:
    """Whether a JSON file is one value over several lines rather than one value in each line."""
    if file.suffix.lower() in _COMPRESSED:
        return False
    with file.open(encoding="utf-8", errors="replace") as lines:
        first = next((line for line in iter(lambda: lines.readline(_SNIFFED_CHARS), "") if line.strip()), "")
    try:
        json.loads(first)
    except ValueError:
        return first.lstrip().startswith(("[", "{")) and len(first) < _SNIFFED_CHARS
    return False


def _suggested_name(path: str) -> str:
    return re.sub(r"\W+", "_", Path(path).name.partition(".")[0]).strip("_") or "t"
