"""A server that is killed again and again: every acknowledged tick once, no watch with a gap or a repeat.

Writers tick with tokens over Flight and HTTP, readers watch over Flight and server-sent events, and meanwhile the
server's process is ended by ``kill -9`` at random moments and started again at the same addresses.
"""

from __future__ import annotations

import json
import random
import threading
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import httpx
import pytest
from support.server import ServedProcess, client, make_token, served_process

from weirflow import RemoteSession

Entry = tuple[int, int]
_PATIENCE = 120.0


@dataclass
class Reader:
    """What a watch was given: its epochs in the order of arrival, each with its entries."""

    name: str
    seen: list[tuple[int, list[tuple[int, int, int]]]] = field(default_factory=list)
    breaks: int = 0
    error: BaseException | None = None

    def take(self, epoch: int, rows: list[tuple[int, int, int]]) -> None:
        self.seen.append((epoch, sorted(rows)))

    def entries(self) -> Counter[Entry]:
        found: Counter[Entry] = Counter()
        for _, rows in self.seen:
            for writer, number, weight in rows:
                found[writer, number] += weight
        return found


@dataclass
class Writer:
    """What was acknowledged: the epoch of each number."""

    number: int
    acknowledged: dict[int, int] = field(default_factory=dict)
    replayed: int = 0
    error: BaseException | None = None


class Campaign:
    """Writers, readers, and a server that is killed."""

    def __init__(self, served: ServedProcess, token: str, rng: random.Random) -> None:
        self.served = served
        self.token = token
        self.rng = rng
        self.stop = threading.Event()
        self.finished = threading.Event()
        self.writers = [Writer(number) for number in range(4)]
        self.readers = [Reader("flight 1"), Reader("flight 2"), Reader("events")]
        self._threads: list[threading.Thread] = []

    def run(self, kills: int) -> None:
        http_url, flight_url = self.served.http_url, self.served.flight_url
        for reader in self.readers[:2]:
            self._start(reader, lambda reader=reader: self._watch(flight_url, reader))
        self._start(self.readers[2], lambda: self._follow(http_url, self.readers[2]))
        for writer in self.writers[:3]:
            self._start(writer, lambda writer=writer: self._write(flight_url, writer))
        self._start(self.writers[3], lambda: self._post(http_url, self.writers[3]))
        for _ in range(kills):
            time.sleep(self.rng.uniform(0.05, 1.2))
            self.served.kill()
            time.sleep(self.rng.uniform(0.0, 0.3))
            self.served.start()
        time.sleep(0.5)
        self.stop.set()
        for thread in self._threads[3:]:
            thread.join(_PATIENCE)
        self._await_readers()
        self.finished.set()
        for thread in self._threads[:3]:
            thread.join(_PATIENCE)

    def _await_readers(self) -> None:
        """Every acknowledged tick is seen by everyone in the end, or it is missing."""
        last = max(epoch for writer in self.writers for epoch in writer.acknowledged.values())
        deadline = time.monotonic() + _PATIENCE
        while any(not one.seen or one.seen[-1][0] < last for one in self.readers) and time.monotonic() < deadline:
            if any(one.error for one in self.readers):
                return
            time.sleep(0.05)

    def _start(self, who: Writer | Reader, work: Callable[[], None]) -> None:
        def run() -> None:
            try:
                work()
            except BaseException as error:  # noqa: BLE001 - looked at by the test
                who.error = error

        thread = threading.Thread(target=run, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _session(self, url: str) -> RemoteSession:
        return RemoteSession(url, self.token, connect_timeout=_PATIENCE, retry_timeout=_PATIENCE)

    def _write(self, url: str, writer: Writer) -> None:
        with self._session(url) as session:
            flow, number = session.flow("shop"), 0
            while not self.stop.is_set():
                number += 1
                done = flow.tick("entries", [{"writer": writer.number, "n": number}])
                writer.acknowledged[number] = done.epoch
                writer.replayed += done.replayed

    def _post(self, url: str, writer: Writer) -> None:
        number = 0
        with client(url, self.token) as http:
            while not self.stop.is_set():
                number += 1
                row, headers = {"writer": writer.number, "n": number}, {"Idempotency-Key": f"post-{number}"}
                while True:
                    with suppress(httpx.TransportError):
                        answer = http.post("/v1/flows/shop/sources/entries/ticks", json=[row], headers=headers)
                        if answer.status_code == 200:
                            break
                        assert answer.status_code in (429, 503), answer.text
                    time.sleep(0.02)
                writer.acknowledged[number] = answer.json()["epoch"]
                writer.replayed += answer.json()["replayed"]

    def _watch(self, url: str, reader: Reader) -> None:
        with self._session(url) as session, session.flow("shop").watch_output("all", from_epoch=0) as watch:
            while not self.finished.is_set():
                item = watch.get(0.2)
                if item is not None:
                    reader.take(item[0], [(row["writer"], row["n"], weight) for row, weight in item[1]])

    def _follow(self, url: str, reader: Reader) -> None:
        """As a browser does: connects again, and says which id it had last."""
        last = "0"
        with client(url, self.token) as http:
            while not self.finished.is_set():
                with suppress(httpx.TransportError):
                    last = self._read_events(http, reader, last)
                reader.breaks += 1
                last = str(reader.seen[-1][0]) if reader.seen else "0"
                time.sleep(0.02)

    def _read_events(self, http: httpx.Client, reader: Reader, last: str) -> str:
        with http.stream("GET", "/v1/flows/shop/views/all/changes", headers={"Last-Event-ID": last}) as answer:
            if answer.status_code != 200:
                answer.read()
                assert answer.status_code in (429, 503), answer.text
                return last
            kind, data = "message", ""
            rows: list[tuple[int, int, int]] = []
            for line in answer.iter_lines():
                if self.finished.is_set():
                    break
                if line.startswith("event: "):
                    kind = line.removeprefix("event: ")
                elif line.startswith("data: "):
                    data += line.removeprefix("data: ")
                elif not line and data:
                    found: dict[str, Any] = json.loads(data)
                    if kind == "delta":
                        rows += [(row["writer"], row["n"], row["_weight"]) for row in found["rows"]]
                        if found["last"]:
                            reader.take(found["epoch"], rows)
                            last, rows = str(found["epoch"]), []
                    kind, data = "message", ""
        return last


def check(campaign: Campaign) -> None:
    everyone: list[Writer | Reader] = [*campaign.writers, *campaign.readers]
    assert [one.error for one in everyone if one.error] == [], campaign.served.log_text()
    acknowledged = {
        (writer.number, number): epoch for writer in campaign.writers for number, epoch in writer.acknowledged.items()
    }
    with RemoteSession(campaign.served.flight_url, campaign.token) as session:
        flow = session.flow("shop")
        held = Counter((row["writer"], row["n"]) for row in flow.snapshot("all").to_pylist())
        totals = {row["writer"]: (row["n"], row["total"]) for row in flow.snapshot("totals").to_pylist()}
        epoch = flow.epoch
    assert held == Counter(acknowledged.keys())
    for writer in campaign.writers:
        most = len(writer.acknowledged)
        assert totals[writer.number] == (most, most * (most + 1) // 2)
    assert sorted(acknowledged.values()) == list(range(1, epoch + 1))
    for reader in campaign.readers:
        epochs = [number for number, _ in reader.seen]
        assert epochs == list(range(1, epoch + 1)), (reader.name, _around_gap(epochs))
        assert reader.entries() == held, reader.name
        for number, rows in reader.seen:
            assert [acknowledged[who, n] for who, n, _ in rows] == [number], reader.name


def _around_gap(epochs: list[int]) -> list[int]:
    for place, (one, expected) in enumerate(zip(epochs, range(1, len(epochs) + 1), strict=True)):
        if one != expected:
            return epochs[max(place - 3, 0) : place + 3]
    return epochs[-3:]


def run(tmp_path, kills: int, seed: int) -> Campaign:
    token = make_token(tmp_path / "data")
    with served_process(tmp_path / "data") as served:
        with RemoteSession(served.flight_url, token, connect_timeout=_PATIENCE) as session:
            flow = session.flow("shop", checkpoint_every=40)
            flow.register_source("entries", "writer BIGINT, n BIGINT")
            flow.register_view("all", "SELECT writer, n FROM entries", mode="incremental")
            flow.register_view("totals", "SELECT writer, count(*) AS n, sum(n) AS total FROM entries GROUP BY writer")
            flow.snapshot("totals")  # what was registered is compiled and written down
        campaign = Campaign(served, token, random.Random(seed))
        campaign.run(kills)
        check(campaign)
        return campaign


def test_a_killed_server_loses_and_doubles_nothing(tmp_path):
    campaign = run(tmp_path, kills=3, seed=1)
    assert sum(len(writer.acknowledged) for writer in campaign.writers) > 20
    assert campaign.readers[2].breaks >= 3


@pytest.mark.campaign
def test_a_server_that_is_killed_fifty_times(tmp_path):
    campaign = run(tmp_path, kills=50, seed=random.randrange(10**6))
    assert campaign.readers[2].breaks >= 50
    assert sum(writer.replayed for writer in campaign.writers) > 0
