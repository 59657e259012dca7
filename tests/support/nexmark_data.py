"""The tables of Nexmark, small: some minutes of bids, most of them on a few hot auctions."""

from __future__ import annotations

import datetime as dt
import random
from typing import Any

from nexmark_world.schemas import SCHEMAS

Row = tuple[Any, ...]
Changes = dict[str, list[tuple[Row, int]]]

_START = dt.datetime(2026, 3, 28, 23, 57, tzinfo=dt.UTC)
_LENGTH = 300
_STATES = ["OR", "ID", "CA", "WA", "WY"]
_CHANNELS = ["Google", "Facebook", "Apple", "Baidu", "channel-7", "channel-8"]


class NexmarkData:
    """A seeded world: ``base()`` once, then any number of ``refresh()`` that add, change and take back rows."""

    def __init__(self, seed: int) -> None:
        self._dice = random.Random(seed)
        self._rows: dict[str, list[Row]] = {name: [] for name in SCHEMAS}
        self._changes: Changes = {}

    def base(self, bids: int) -> Changes:
        for key in range(1000, 1025):
            self._add("person", self._person(key))
        for key in range(1000, 1040):
            self._add("auction", self._auction(key))
        for key in range(1000, 1040, 2):
            self._add("side_input", (key, f"side {key}"))
        self._more_bids(bids)
        return self._taken()

    def refresh(self, bids: int) -> Changes:
        """So many bids come, half as many go, and a tenth of them get another price; people and auctions change."""
        self._more_bids(bids)
        for row in self._dice.sample(self._rows["bid"], bids // 2):
            self._drop("bid", row)
        for row in self._dice.sample(self._rows["bid"], bids // 10):
            self._drop("bid", row)
            self._add("bid", (*row[:2], self._price(), *row[3:]))
        for table, make in (("person", self._person), ("auction", self._auction)):
            for row in self._dice.sample(self._rows[table], 2):
                self._drop(table, row)
                self._add(table, make(row[0]))
            self._drop(table, self._dice.choice(self._rows[table]))
            self._add(table, make(max(row[0] for row in self._rows[table]) + 1))
        row = self._dice.choice(self._rows["side_input"])
        self._drop("side_input", row)
        self._add("side_input", (row[0], f"other {row[1]}"))
        return self._taken()

    def _more_bids(self, count: int) -> None:
        for _ in range(count):
            self._add("bid", self._bid())

    def _person(self, key: int) -> Row:
        dice = self._dice
        state = dice.choice(_STATES)
        card = f"{dice.randrange(10**16):016d}"
        return (key, f"Name {key}", f"{key}@example.org", card, f"City of {state}", state, self._time(), self._extra())

    def _auction(self, key: int) -> Row:
        dice = self._dice
        opened = self._time()
        expires = opened + dt.timedelta(seconds=dice.randint(20, 240))
        first = dice.randint(1, 100)
        seller = self._dice.choice(self._rows["person"])[0]
        words = (f"item {key}", "words")
        return (key, *words, first, 2 * first, opened, expires, seller, dice.randint(8, 12), self._extra())

    def _bid(self) -> Row:
        dice = self._dice
        auctions = self._rows["auction"]
        auction = auctions[int(len(auctions) * dice.random() ** 2)][0]
        bidder = dice.choice(self._rows["person"])[0]
        channel = dice.choice(_CHANNELS)
        tail = f"item.htm?query=1&channel_id={dice.randrange(99)}" if dice.random() < 0.7 else "item.htm"
        url = f"https://www.nexmark.example/{dice.choice('ab')}/{dice.choice('cd')}/{tail}"
        return (auction, bidder, self._price(), dice.choice([channel, None, ""]), url, self._time(), self._extra())

    def _price(self) -> int:
        return self._dice.choice([5, 10_000, 2_000_000, self._dice.randint(1, 10**7)])

    def _time(self) -> dt.datetime:
        return _START + dt.timedelta(milliseconds=self._dice.randrange(_LENGTH * 1000))

    def _extra(self) -> str:
        return "".join(self._dice.choice("abccd") for _ in range(self._dice.randint(0, 9)))

    def _add(self, table: str, row: Row) -> None:
        self._rows[table].append(row)
        self._changes.setdefault(table, []).append((row, 1))

    def _drop(self, table: str, row: Row) -> None:
        self._rows[table].remove(row)
        self._changes.setdefault(table, []).append((row, -1))

    def _taken(self) -> Changes:
        changes, self._changes = self._changes, {}
        return changes
