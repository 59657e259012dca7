"""The spool: results that are written once and fetched as often as is wanted, until they expire or there is no room."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import psutil
import pyarrow as pa
import pytest

from weirflow.errors import ConfigError, QueryError, ResultTooLarge, SpoolFull, StorageError, TicketExpired
from weirflow.server.results.parts import BATCH_BYTES, PartWriter
from weirflow.server.results.place import Place
from weirflow.server.results.spool import Spool, SpoolLimits
from weirflow.server.results.tickets import ResultTicket, read_ticket

SCHEMA = pa.schema([("n", pa.int64()), ("word", pa.string())])


class Clock:
    def __init__(self) -> None:
        self.now = 1_000_000.0

    def __call__(self) -> float:
        return self.now


def rows(start: int, count: int) -> pa.RecordBatch:
    numbers = list(range(start, start + count))
    return pa.record_batch([pa.array(numbers), pa.array([f"w{n}" for n in numbers])], schema=SCHEMA)


def partitions(*parts: list[pa.RecordBatch]) -> object:
    """What runs a writer on partitions, as Spark does, in any order."""

    def spread(_: object, writer: PartWriter) -> list[bytes]:
        return [report for number in reversed(range(len(parts))) for report in writer(number, iter(parts[number]))]

    return spread


def write(spool: Spool, owner: str, *parts: list[pa.RecordBatch], is_ordered: bool = False) -> object:
    return spool.write_frame(owner, None, SCHEMA, partitions(*parts), lambda: None, is_ordered=is_ordered)


def fetched(spool: Spool, owner: str, ticket: ResultTicket) -> list[int]:
    return spool.fetch(owner, ticket).read_all().column("n").to_pylist()


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def spool(tmp_path: Path, clock: Clock) -> Iterator[Spool]:
    limits = SpoolLimits(seconds=100.0, total_bytes=1 << 20, owner_bytes=1 << 19, result_bytes=1 << 18)
    opened = Spool(str(tmp_path / "spool"), limits, now=clock)
    yield opened
    opened.close()


@pytest.fixture(params=["folder", "objects"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return str(tmp_path / "place") if request.param == "folder" else f"memory://spool-{os.urandom(8).hex()}"


def test_every_partition_with_rows_has_a_ticket(place: str) -> None:
    spool = Spool(place)
    made = write(spool, "ann", [rows(0, 3)], [], [rows(3, 1), rows(4, 1)])
    tickets = spool.tickets(made)
    assert [fetched(spool, "ann", ticket) for ticket in tickets] == [[0, 1, 2], [3, 4]]
    assert made.rows == 5
    spool.close()


def test_an_ordered_result_has_one_ticket_that_gives_its_parts_in_order(place: str) -> None:
    spool = Spool(place)
    made = write(spool, "ann", [rows(0, 3)], [rows(3, 2)], is_ordered=True)
    (ticket,) = spool.tickets(made)
    assert fetched(spool, "ann", ticket) == [0, 1, 2, 3, 4]
    spool.close()


def test_a_result_without_rows_has_its_columns(spool: Spool) -> None:
    made = write(spool, "ann", [], [])
    (ticket,) = spool.tickets(made)
    assert spool.fetch("ann", ticket).read_all() == SCHEMA.empty_table()


def test_a_ticket_is_good_many_times_and_for_many_at_once(spool: Spool) -> None:
    made = spool.write_rows("ann", SCHEMA, [rows(0, 1000)])
    found: list[list[int]] = []
    readers = [
        threading.Thread(target=lambda: found.append(fetched(spool, "ann", ResultTicket(made.id)))) for _ in range(8)
    ]
    for reader in readers:
        reader.start()
    for reader in readers:
        reader.join()
    assert found == [list(range(1000))] * 8


def test_a_result_is_its_owners_alone(spool: Spool) -> None:
    made = spool.write_rows("ann", SCHEMA, [rows(0, 1)])
    with pytest.raises(TicketExpired):
        spool.fetch("bob", ResultTicket(made.id))
    assert not spool.drop("bob", made.id)
    assert fetched(spool, "ann", ResultTicket(made.id)) == [0]


def test_a_result_expires_and_its_files_go(spool: Spool, clock: Clock) -> None:
    made = spool.write_rows("ann", SCHEMA, [rows(0, 1)])
    clock.now += 99
    assert fetched(spool, "ann", ResultTicket(made.id)) == [0]
    clock.now += 2
    with pytest.raises(TicketExpired):
        spool.fetch("ann", ResultTicket(made.id))
    spool.sweep()
    assert (list(Place(spool.uri).list(made.id)), spool.size) == ([], 0)


def test_a_result_that_is_renewed_lives_on(spool: Spool, clock: Clock) -> None:
    made = spool.write_rows("ann", SCHEMA, [rows(0, 1)])
    clock.now += 99
    spool.renew("ann", made.id)
    clock.now += 99
    spool.sweep()
    assert fetched(spool, "ann", ResultTicket(made.id)) == [0]


def test_a_result_that_is_dropped_is_gone_at_once(spool: Spool) -> None:
    made = spool.write_rows("ann", SCHEMA, [rows(0, 1)])
    assert spool.drop("ann", made.id)
    assert not spool.drop("ann", made.id)
    with pytest.raises(TicketExpired):
        spool.fetch("ann", ResultTicket(made.id))


def test_the_share_of_an_owner_is_bounded_and_says_when_to_come_again(spool: Spool, clock: Clock) -> None:
    def fill() -> None:
        for start in range(0, 80_000, 4_000):
            spool.write_rows("ann", SCHEMA, [rows(start, 4_000)])

    with pytest.raises(SpoolFull) as full:
        fill()
    assert 0 < full.value.retry_after <= 100
    assert spool.write_rows("bob", SCHEMA, [rows(0, 10)]).rows == 10
    clock.now += 101
    spool.sweep()
    assert spool.write_rows("ann", SCHEMA, [rows(0, 10)]).rows == 10


def test_what_did_not_fit_leaves_nothing(spool: Spool) -> None:
    with pytest.raises(ResultTooLarge):
        spool.write_rows("ann", SCHEMA, [rows(0, 20_000)])
    assert (spool.size, len(spool), [found.name for found in Place(spool.uri).list()]) == (0, 0, [".lock"])


def test_a_result_that_grows_too_large_is_stopped_while_it_is_written(tmp_path: Path) -> None:
    limits = SpoolLimits(result_bytes=1 << 18)
    stopped = threading.Event()

    def spread(_: object, writer: PartWriter) -> list[bytes]:
        for number in range(1000):
            list(writer(number, [rows(0, 4_000)]))  # each part alone would do
            if stopped.wait(0.05):
                raise QueryError("stopped")
        return []

    spool = Spool(str(tmp_path), limits)
    with pytest.raises(ResultTooLarge):
        spool.write_frame("ann", None, SCHEMA, spread, stopped.set, is_ordered=False)
    assert stopped.is_set()
    assert spool.size == 0
    spool.close()


def test_a_failure_of_spark_is_raised_as_it_is_and_leaves_nothing(spool: Spool) -> None:
    def spread(_: object, writer: PartWriter) -> list[bytes]:
        list(writer(0, [rows(0, 10)]))
        raise QueryError("a task has failed")

    with pytest.raises(QueryError, match="a task has failed"):
        spool.write_frame("ann", None, SCHEMA, spread, lambda: None, is_ordered=False)
    assert [found.name for found in Place(spool.uri).list()] == [".lock"]


@pytest.mark.parametrize("damage", ["flip", "cut", "remove"])
def test_a_damaged_file_is_noticed(spool: Spool, damage: str) -> None:
    made = spool.write_rows("ann", SCHEMA, [rows(0, 1000)])
    file = Path(spool.uri) / made.parts[0].name
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    if damage == "remove":
        file.unlink()
    else:
        file.write_bytes(content if damage == "flip" else content[:-100])
    with pytest.raises(StorageError):
        spool.fetch("ann", ResultTicket(made.id))


def test_parts_that_the_server_does_not_see_are_refused(spool: Spool, tmp_path: Path) -> None:
    def elsewhere(_: object, writer: PartWriter) -> list[bytes]:
        there = PartWriter(str(tmp_path / "other"), writer.folder, writer.schema, writer.limit)
        return list(there(0, [rows(0, 1)]))

    with pytest.raises(StorageError, match="does not see"):
        spool.write_frame("ann", None, SCHEMA, elsewhere, lambda: None, is_ordered=False)


def test_the_next_server_has_what_was_finished_and_removes_what_was_not(tmp_path: Path) -> None:
    program = f"""
import os, signal, sys
sys.path.insert(0, {str(Path(__file__).parent)!r})
from test_spool import SCHEMA, Spool, rows
spool = Spool({str(tmp_path)!r})
print(spool.write_rows("ann", SCHEMA, [rows(0, 5)]).id, flush=True)
def spread(_, writer):
    list(writer(0, [rows(0, 5)]))
    os.kill(os.getpid(), signal.SIGKILL)
spool.write_frame("ann", None, SCHEMA, spread, lambda: None, is_ordered=False)
"""
    killed = subprocess.run([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True, check=False)
    assert killed.returncode == -9
    assert len({found.name.partition("/")[0] for found in Place(str(tmp_path)).list()}) == 3  # two results, the lock
    spool = Spool(str(tmp_path))
    assert fetched(spool, "ann", ResultTicket(killed.stdout.strip())) == [0, 1, 2, 3, 4]
    assert {found.name.partition("/")[0] for found in Place(str(tmp_path)).list()} == {".lock", killed.stdout.strip()}
    spool.close()


def test_a_folder_is_one_servers(spool: Spool) -> None:
    with pytest.raises(ConfigError, match="Another server"):
        Spool(spool.uri)


def test_batches_are_of_a_good_size_whatever_they_were(spool: Spool, tmp_path: Path) -> None:
    wide = pa.schema([("text", pa.string())])
    batch = pa.record_batch([pa.array(["x" * 1000] * 20_000)], schema=wide)
    large = Spool(str(tmp_path / "large"))
    made = large.write_rows("ann", wide, [batch, *(batch.slice(n, 1) for n in range(2000))])
    sizes = [one.nbytes for one in large.fetch("ann", ResultTicket(made.id))]
    assert max(sizes) <= 2 * BATCH_BYTES
    assert len(sizes) < 20
    assert made.rows == 22_000
    large.close()


def test_memory_does_not_grow_with_the_result(tmp_path: Path) -> None:
    wide = pa.schema([("n", pa.int64()), ("text", pa.string())])
    batch = pa.record_batch([pa.array(range(10_000)), pa.array(["x" * 200] * 10_000)], schema=wide)
    spool = Spool(str(tmp_path))

    def peak_of(count: int) -> int:
        made = spool.write_rows("ann", wide, (batch for _ in range(count)))
        peak = 0
        for one in spool.fetch("ann", ResultTicket(made.id)):
            peak = max(peak, psutil.Process().memory_info().rss)
            del one
        return peak

    before = peak_of(5)  # 10 MB
    assert peak_of(150) - before < 60 << 20  # of 315 MB
    spool.close()


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"result/",
        b"result/../../etc/passwd/0",
        b"result/" + b"0" * 32 + b"/-1",
        b"result/" + b"0" * 32,
        b"\xff\xfe",
    ],
)
def test_a_ticket_that_nobody_made_is_refused(spool: Spool, content: bytes) -> None:
    with pytest.raises(TicketExpired):
        spool.fetch("ann", read_ticket(content))


def test_a_ticket_says_what_it_is_for() -> None:
    ticket = ResultTicket("0123456789abcdef" * 2, 7)
    assert read_ticket(bytes(ticket)) == ticket


def test_an_object_store_keeps_what_others_write_until_it_is_old() -> None:
    place = f"memory://spool-{os.urandom(8).hex()}"
    Place(place).write("somebody/000000-x.arrow", [b"unfinished"])
    Spool(place, SpoolLimits(seconds=100.0)).close()
    assert [found.name for found in Place(place).list()] == ["somebody/000000-x.arrow"]
    Spool(place, SpoolLimits(seconds=0.0)).close()
    assert list(Place(place).list()) == []
