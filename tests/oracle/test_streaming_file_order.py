"""In which order a stream reads files: by their times, and those of one instant as their folder lists them."""

import os
from datetime import UTC, datetime, timedelta

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from weirflow import Trigger
from weirflow.errors import UserCodeError

START = datetime(2024, 1, 1, tzinfo=UTC)
SCHEMA = "at TIMESTAMP, minute BIGINT"
FILES = 4


@pytest.fixture
def inbox(tmp_path):
    folder = tmp_path / "in"
    folder.mkdir()
    return folder


def fill(path, minute, instant=0):
    """Write a file with one row; the name stays where the folder lists it."""
    pq.write_table(pa.table({"at": [START + timedelta(minutes=minute)], "minute": [minute]}), path)
    moment = (START + timedelta(seconds=instant)).timestamp()
    os.utime(path, (moment, moment))


def land(inbox, name, minute, instant=0):
    """Have a file arrive whole."""
    fill(inbox.parent / name, minute, instant)
    (inbox.parent / name).rename(inbox / name)


def listed(inbox):
    """The names as the file system has them, which is the order that Spark finds them in."""
    return os.listdir(inbox)  # noqa: PTH208 - pathlib promises no order


def land_at_once(inbox):
    """Files of one instant, whose times of events run against the order in which the folder lists them."""
    for number in range(FILES):
        (inbox / f"{number}.parquet").touch()
    names = listed(inbox)
    for at, name in enumerate(names):
        fill(inbox / name, FILES - 1 - at)
    assert listed(inbox) == names


def stream(session, inbox):
    return session.read_stream("parquet", inbox, schema=SCHEMA, maxFilesPerTrigger=1)


class Reading:
    """Keeps the minutes in the order in which they are read; fails once at a batch."""

    def __init__(self, fails_at=None):
        self.minutes = []
        self.fails_at = fails_at

    def __call__(self, frame, number):
        if number == self.fails_at:
            self.fails_at = None
            raise ValueError("once")
        self.minutes += frame.to_arrow()["minute"].to_pylist()


@pytest.mark.parametrize("pattern", [None, "*.parquet"])
def test_files_of_one_instant_come_as_listed_or_by_name_and_a_restart_keeps_the_order(
    session, inbox, tmp_path, pattern
):
    land_at_once(inbox)
    names = listed(inbox) if pattern is None else sorted(listed(inbox))
    take = Reading(fails_at=2)
    found = stream(session, inbox if pattern is None else inbox / pattern)
    writer = found.write_stream().foreach_batch(take).trigger(Trigger.available_now())
    writer.option("checkpointLocation", tmp_path / "saved")
    with pytest.raises(UserCodeError, match="once"), writer.start() as query:
        query.await_termination(60)
    with writer.start() as query:
        query.await_termination(60)
    assert take.minutes == [pq.read_table(inbox / name)["minute"][0].as_py() for name in names]


def test_a_query_from_a_savepoint_reads_again_by_the_folder_what_came_one_by_one(session, inbox, tmp_path):
    first, again = Reading(), Reading()
    land(inbox, "first.parquet", -1, instant=-1)
    writer = stream(session, inbox).write_stream().foreach_batch(first)
    with writer.option("checkpointLocation", tmp_path / "saved").start() as query:
        query.process_all_available()
        query.savepoint("before", tmp_path / "points")
        for minute in range(FILES):
            land(inbox, f"{minute}.parquet", minute)
            query.process_all_available()
    writer = stream(session, inbox).write_stream().foreach_batch(again).trigger(Trigger.available_now())
    writer.option("checkpointLocation", tmp_path / "restored").from_savepoint("before", tmp_path / "points")
    with writer.start() as query:
        query.await_termination(60)
    assert first.minutes == [-1, *range(FILES)]
    assert again.minutes == [int(name[0]) for name in listed(inbox) if name != "first.parquet"]


@pytest.mark.parametrize(
    ("watermark", "counted", "late"), [("0 seconds", [2, 3], [0, 1]), ("4 minutes", [0, 1, 2, 3], [])]
)
def test_rows_of_one_instant_are_late_unless_the_watermark_is_as_long_as_they_span(
    session, inbox, tmp_path, watermark, counted, late
):
    land_at_once(inbox)
    land(inbox, "last.parquet", 60, instant=1)
    windows = stream(session, inbox).with_event_time("at", watermark).key_by("minute").tumbling_window(60_000)
    made = windows.late_rows(tmp_path / "late").agg("count(*) AS n").select("minute", "n")
    writer = made.write_stream().format("memory").trigger(Trigger.available_now())
    with writer.option("checkpointLocation", tmp_path / "saved").start() as query:
        query.await_termination(60)
        found = pa.Table.from_batches(query.memory_batches()).sort_by("minute").to_pylist()
    files = (tmp_path / "late").glob("*.parquet")
    kept = sorted(minute for path in files for minute in pq.read_table(path)["minute"].to_pylist())
    assert (found, kept) == ([{"minute": minute, "n": 1} for minute in counted], late)


def test_a_file_much_older_than_the_newest_is_not_read(session, inbox):
    take = Reading()
    land(inbox, "new.parquet", 1)
    with stream(session, inbox).write_stream().foreach_batch(take).start() as query:
        query.process_all_available()
        land(inbox, "older.parquet", 2, instant=-6 * 86_400)
        land(inbox, "oldest.parquet", 3, instant=-8 * 86_400)
        query.process_all_available()
    assert take.minutes == [1, 2]
