"""Writes what ``recovery/test_stored_views.py`` opens: a flow whose views Spark has read, under several settings.

To store what another version writes, check it out elsewhere and run, with its own code and this file::

    PYTHONPATH=<checkout>/src python tests/support/stored_views.py tests/recovery/stored/views.zip
"""

from __future__ import annotations

import sys
import tempfile
import zipfile
from datetime import UTC, datetime
from pathlib import Path

from pyspark.sql import functions

from weirflow import Session

NAME = "visits"
SOURCES = {"visits": "at TIMESTAMP, page STRING, seconds INT", "pages": "page STRING, title STRING"}
NEW_YORK = {
    "days": "SELECT to_date(at) AS day, COUNT(*) AS n FROM visits GROUP BY ALL",
    "hours": "SELECT date_trunc('HOUR', at) AS hour, hour(at) AS h, SUM(seconds) AS s FROM visits GROUP BY ALL",
}
NOT_ANSI = {"wrapped": "SELECT page, seconds + 2147483647 AS more, seconds / (seconds - 1) AS ratio FROM visits"}
USUAL = {
    "pipes": "FROM visits |> AGGREGATE MAX(seconds) AS m GROUP BY page |> WHERE m > 1",
    "titled": "SELECT title, (SELECT MAX(seconds) FROM visits v WHERE v.page = p.page) AS m FROM pages p",
    "nulls": "SELECT page, NULLIF(seconds, 1) AS s, TRY_CAST(page AS INT) AS i FROM visits",
    "longest": "SELECT page, at FROM visits ORDER BY seconds DESC NULLS LAST, at LIMIT 2",
}
AT = datetime(2024, 3, 10, 6, 59, tzinfo=UTC)
"""A minute before New York's clocks are put forward."""
VISITS = [
    {"at": AT, "page": "/", "seconds": 1},
    {"at": AT.replace(hour=7), "page": "/", "seconds": 3},
    {"at": AT.replace(hour=3), "page": "12", "seconds": None},
]
PAGES = [{"page": "/", "title": "Home"}, {"page": "/cart", "title": "Cart"}]


def write(session: Session, folder: Path) -> None:
    """The flow, with a checkpoint and a log behind it."""
    with session.flow(NAME, path=folder / "flow") as flow:
        for name, ddl in SOURCES.items():
            flow.register_source(name, ddl)
        for name, sql in USUAL.items():
            flow.register_view(name, sql, mode="incremental")
        table = flow.table("visits")
        flow.register_view("frame", table.groupBy("page").agg(functions.sum("seconds").alias("s")))
        flow.tick("visits", VISITS[:1])
        flow.checkpoint()
        flow.tick({"visits": VISITS[1:], "pages": PAGES})
        for key, value, views in (
            ("spark.sql.session.timeZone", "America/New_York", NEW_YORK),
            ("spark.sql.ansi.enabled", "false", NOT_ANSI),
        ):
            before = session.spark.conf.get(key)
            session.spark.conf.set(key, value)
            for name, sql in views.items():
                flow.register_view(name, sql, mode="incremental")
            session.spark.conf.set(key, before)


def main(target: Path) -> None:
    """Write the flow into an archive."""
    with tempfile.TemporaryDirectory() as made, Session(cores=2, driver_memory="1g", progress="off") as session:
        write(session, Path(made))
        with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as stored:
            for path in sorted(Path(made).rglob("*")):
                if path.is_file():
                    stored.write(path, path.relative_to(made))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
