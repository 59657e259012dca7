"""What a server costs: a tick, a large result, a hundred clients at once, a thousand watches that wait.

    python benchmarks/server.py [--minutes N] [--rows N] [--clients N] [--watches N]

The server is the real command in a process of its own, and so is plain pyarrow.flight, which serves the same files;
what is compared runs side by side, in turns. Writes benchmarks/results/server.json.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import random
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pyarrow as pa
import pyarrow.flight as fl

from weirflow import IncrementalFlow, RemoteSession
from weirflow.errors import WeirflowError

RESULTS = Path(__file__).parent / "results" / "server.json"
KEYS = 10_000
TICK_ROWS = 100
PROCESSES = 4
VIEW = "SELECT k, COUNT(*) AS n, SUM(v) AS total FROM numbers GROUP BY k"
LIMITS = {
    "remote tick of 100 rows - in process, ms": 2.0,
    "plain Flight / fetching a result, MB/s": 1 / 0.7,
    "server's memory, after / before a result is fetched": 1.2,
    "errors under load": 0.0,
    "idle watches over SSE, MB": 100.0,
}
"""What each figure has to stay under."""


@contextlib.contextmanager
def server(path: Path) -> Iterator[tuple[RemoteSession, str, psutil.Process]]:
    """``weirflow serve`` for the block: a session of it, where HTTP is, and its process."""
    command = [sys.executable, "-m", "weirflow", "serve", "--path", str(path), "--insecure", "--json"]
    process = subprocess.Popen(
        [*command, "--flight", "127.0.0.1:0", "--http", "127.0.0.1:0"], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    try:
        ready = json.loads(process.stdout.readline())["ready"]
        with RemoteSession(ready["flight"], connect_timeout=60) as session:
            session.sql("SELECT 1").to_arrow()  # Spark runs
            yield session, ready["http"], psutil.Process(process.pid)
    finally:
        process.terminate()
        process.wait()


def rows(generator: np.random.Generator, count: int) -> pa.Table:
    """Random rows; the doubles are exact, so that sums are the same in any order."""
    return pa.table({"k": generator.integers(0, KEYS, count), "v": generator.integers(0, 1 << 20, count) / 1024})


def memory(process: psutil.Process) -> float:
    """Megabytes that the server's own process holds; its JVM is a process of its own."""
    return float(process.memory_info().rss) / 1e6


def used(process: psutil.Process) -> dict[str, float]:
    """The CPU time of the server's own process, and of those that it has started: Spark's."""
    spark = 0.0
    for child in process.children(recursive=True):
        with contextlib.suppress(psutil.NoSuchProcess):
            spark += sum(child.cpu_times()[:2])
    return {"server": sum(process.cpu_times()[:2]), "Spark": spark}


def overhead(session: RemoteSession, folder: Path, ticks: int = 400) -> dict[str, float]:
    """Milliseconds of a tick here and there, in turns, each flow kept on disk."""
    here, there = IncrementalFlow("here", path=folder / "here"), session.flow("there")
    generator = np.random.default_rng(1)
    took: dict[str, list[float]] = {"in process": [], "remote": []}
    first = rows(generator, 100_000)
    for flow in (here, there):
        flow.register_source("numbers", "k BIGINT, v DOUBLE")
        flow.register_view("totals", VIEW)
        flow.tick("numbers", first)
    for number in range(ticks):
        delta = rows(generator, TICK_ROWS)
        for name, flow in (("in process", here), ("remote", there)):
            started = time.perf_counter()
            flow.tick("numbers", delta)
            if number >= ticks // 4:
                took[name].append((time.perf_counter() - started) * 1000)
    found = [flow.snapshot("totals").sort_by("k") for flow in (here, there)]
    if not found[0].equals(found[1]):
        raise SystemExit("the views differ")
    here.close()
    return {name: statistics.median(times) for name, times in took.items()}


PLAIN = """
import sys, pyarrow as pa, pyarrow.flight as fl

class Plain(fl.FlightServerBase):
    def do_get(self, context, ticket):
        return fl.RecordBatchStream(pa.ipc.open_stream(pa.memory_map(ticket.ticket.decode())))

server = Plain("grpc://127.0.0.1:0")
print(server.port, flush=True)
server.serve()
"""


def fetching(session: RemoteSession, path: Path, process: psutil.Process, count: int) -> dict[str, float]:
    """MB/s of a result from its server and from plain pyarrow.flight over the same files, in turns."""
    result = session.sql(
        f"SELECT id, id * 3 AS a, CAST(id AS DOUBLE) / 7 AS b, id % 1000 AS c FROM range({count})"
    ).run()
    files = sorted(one for one in (path / "spool").rglob("*") if one.is_file() and one.stat().st_size > 1 << 16)
    tickets = [endpoint.ticket for endpoint in result._info.endpoints]  # noqa: SLF001 - what is measured
    plain = subprocess.Popen([sys.executable, "-c", PLAIN], stdout=subprocess.PIPE, text=True)
    assert plain.stdout is not None
    client = fl.connect(f"grpc://127.0.0.1:{plain.stdout.readline().strip()}")
    speeds: dict[str, list[float]] = {"server": [], "plain Flight": []}
    before = 0.0
    try:
        for turn in range(5):
            ways: list[tuple[str, Callable[[], list[pa.Table]]]] = [
                ("server", lambda: [session._connection.rows(one) for one in tickets]),  # noqa: SLF001 - as above
                ("plain Flight", lambda: [client.do_get(fl.Ticket(str(one).encode())).read_all() for one in files]),
            ]
            for name, fetch in ways:
                started = time.perf_counter()
                tables = fetch()
                took = time.perf_counter() - started
                if sum(table.num_rows for table in tables) != count:
                    raise SystemExit(f"{name}: rows are missing")
                if turn:  # the first one reads what nobody has read
                    speeds[name].append(sum(table.nbytes for table in tables) / 1e6 / took)
                del tables
            before = before or memory(process)
    finally:
        client.close()
        plain.terminate()
        plain.wait()
    found = {f"{name}, MB/s": statistics.median(times) for name, times in speeds.items()}
    return {**found, "memory before, MB": before, "memory after, MB": memory(process)}


def one_client(url: str, number: int, seconds: float) -> tuple[dict[str, list[float]], list[str]]:
    """What one client of a hundred does, and how long each call took."""
    took: dict[str, list[float]] = {}
    errors: list[str] = []
    dice = random.Random(number)
    generator = np.random.default_rng(number)
    kind = ("tick", "tick", "snapshot", "snapshot", "watch")[number % 5] if number % 20 else "sql"
    until = time.monotonic() + seconds
    with RemoteSession(url, connect_timeout=60) as session:
        flow = session.flow("there")
        watch = flow.watch_output("totals", capacity=100_000) if kind == "watch" else None
        calls: dict[str, Callable[[], Any]] = {
            "tick": lambda: flow.tick("numbers", rows(generator, TICK_ROWS)),
            "snapshot": lambda: flow.snapshot("totals"),
            "watch": lambda: watch.get(5) if watch is not None else None,
            "sql": lambda: session.sql("SELECT count(*) AS n, sum(total) AS t FROM there.totals").to_arrow(),
        }
        name = f"first {kind}"  # of a hundred that all begin at once
        while time.monotonic() < until:
            started = time.perf_counter()
            try:
                calls[kind]()
            except WeirflowError as error:
                errors.append(f"{kind}: {error.code}")
                time.sleep(1)
            took.setdefault(name, []).append((time.perf_counter() - started) * 1000)
            name = kind
            if kind != "watch":
                time.sleep(dice.uniform(0.5, 1.5))
        if watch is not None:
            watch.close()
    return took, errors


def some_clients(url: str, numbers: list[int], seconds: float) -> tuple[dict[str, list[float]], list[str]]:
    """The clients of one process, each with a thread and a connection of its own."""
    found: list[tuple[dict[str, list[float]], list[str]]] = []

    def work(number: int) -> None:
        try:
            found.append(one_client(url, number, seconds))
        except Exception as error:  # noqa: BLE001 - counted
            found.append(({}, [f"{type(error).__name__}: {error}"]))

    threads = [threading.Thread(target=work, args=(number,)) for number in numbers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    took: dict[str, list[float]] = {}
    for times, _ in found:
        for kind, some in times.items():
            took.setdefault(kind, []).extend(some)
    return took, [error for _, errors in found for error in errors]


def load(url: str, process: psutil.Process, clients: int, minutes: float) -> dict[str, float]:
    """p50 and p99 of each kind of call while all clients are at work, and the errors that they met."""
    before = memory(process)
    spent = used(process)
    with ProcessPoolExecutor(PROCESSES, mp_context=get_context("spawn")) as pool:
        shares = [list(range(clients))[one::PROCESSES] for one in range(PROCESSES)]
        done = list(pool.map(some_clients, [url] * PROCESSES, shares, [minutes * 60] * PROCESSES))
    took: dict[str, list[float]] = {}
    for times, _ in done:
        for kind, some in times.items():
            took.setdefault(kind, []).extend(some)
    errors = [error for _, met in done for error in met]
    for error in sorted(set(errors)):
        print(f"  {errors.count(error)} x {error}")
    figures: dict[str, float] = {"errors": float(len(errors))}
    for kind, calls in sorted(took.items()):
        figures[f"{kind}: calls"] = float(len(calls))
        figures[f"{kind}: p50 ms"] = float(np.percentile(np.array(calls), 50))
        figures[f"{kind}: p99 ms"] = float(np.percentile(np.array(calls), 99))
    for name, seconds in used(process).items():
        figures[f"{name}, cores"] = (seconds - spent.get(name, 0.0)) / (minutes * 60)
    figures["load of the machine"] = psutil.getloadavg()[0]
    return {**figures, "memory before, MB": before, "memory after, MB": memory(process)}


async def idle_watches(url: str, process: psutil.Process, flow: Any, count: int) -> dict[str, float]:
    """Megabytes that watches over server-sent events cost which wait for something to happen."""
    host, _, port = url.removeprefix("http://").partition(":")
    request = f"GET /v1/flows/there/views/totals/changes HTTP/1.1\r\nHost: {host}\r\nAccept: text/event-stream\r\n\r\n"
    before = memory(process)
    opened = []
    for _ in range(count):
        reader, writer = await asyncio.open_connection(host, int(port))
        writer.write(request.encode())
        opened.append((reader, writer))
    for reader, _ in opened:
        status = await reader.readline()
        if b" 200 " not in status:
            raise SystemExit(f"a watch was refused: {status!r}")
    await asyncio.sleep(2)
    after = memory(process)
    started = time.perf_counter()
    await asyncio.to_thread(flow.tick, "numbers", pa.table({"k": [1], "v": [1.0]}))

    async def told(reader: asyncio.StreamReader) -> None:
        while b"event: delta" not in await reader.readline():
            pass

    await asyncio.wait_for(asyncio.gather(*(told(reader) for reader, _ in opened)), 60)
    reached = time.perf_counter() - started
    for _, writer in opened:
        writer.close()
    return {"watches": float(count), "MB": after - before, "all told of a tick after, s": reached}


def main() -> None:
    """Print the figures and write the JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=5.0, help="of load")
    parser.add_argument("--rows", type=int, default=10_000_000, help="of the result that is fetched")
    parser.add_argument("--clients", type=int, default=100, help="at once")
    parser.add_argument("--watches", type=int, default=1000, help="over server-sent events, that wait")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=Path.cwd()) as name:
        folder = Path(name)
        with server(folder / "data") as (session, http, process):
            ticks = overhead(session, folder)
            fetched = fetching(session, folder / "data", process, arguments.rows)
            waiting = asyncio.run(idle_watches(http, process, session.flow("there"), arguments.watches))
            loaded = load(session.describe().address, process, arguments.clients, arguments.minutes)
    ratios = {
        "remote tick of 100 rows - in process, ms": ticks["remote"] - ticks["in process"],
        "plain Flight / fetching a result, MB/s": fetched["plain Flight, MB/s"] / fetched["server, MB/s"],
        "server's memory, after / before a result is fetched": fetched["memory after, MB"]
        / fetched["memory before, MB"],
        "errors under load": loaded["errors"],
        "idle watches over SSE, MB": waiting["MB"],
    }
    titles = {
        "tick of 100 rows, ms": ticks,
        f"{arguments.rows:,} rows": fetched,
        "idle watches": waiting,
        "load": loaded,
    }
    for title, figures in titles.items():
        for what, figure in figures.items():
            print(f"{title:24}{what:32}{figure:>12.2f}")
    for what, ratio in ratios.items():
        print(f"{what:56}{ratio:>8.2f}  <= {LIMITS[what]:<6.3g}{'ok' if ratio <= LIMITS[what] else 'not met'}")
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(json.dumps({**titles, "ratios": ratios}, indent=2))
    if any(ratio > LIMITS[what] for what, ratio in ratios.items()):
        raise SystemExit("a limit is not met")


if __name__ == "__main__":
    main()
