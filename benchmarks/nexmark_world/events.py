"""Nexmark's events in the proportions of its generator: of 50, one is a person, three are auctions, the rest bids.

Every event is a function of its number, so any part of the stream can be made by itself. Half of the bids are on the
auction that is hot at that time, three of four are by the hot bidder; the others meet auctions and people of late.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from ticking.data import mixed

from nexmark_world.schemas import SCHEMAS

EVENTS_OF_A_PERSON = 50
RATE = 10_000  # events in a second of their own time
START_US = 1_774_742_400_000_000  # 2026-03-29T00:00:00Z
SIDE_ROWS = 10_000

_AUCTIONS = 3
_FIRST_ID = 1000
_FIRST_CATEGORY, _CATEGORIES = 10, 5
_ACTIVE_PEOPLE, _OPEN_AUCTIONS = 1000, 100
_HOT_EVERY = 100  # of so many people or auctions, one is hot while they are the latest
_HOT_AUCTION_RATIO, _HOT_PERSON_RATIO = 2, 4
_OPEN_US = _OPEN_AUCTIONS * EVENTS_OF_A_PERSON // _AUCTIONS * 1_000_000 // RATE  # while so many auctions open
_CHANNELS = 10_000
_STATES = ["AZ", "CA", "ID", "OR", "WA", "WY"]
_CITIES = ["Phoenix", "Los Angeles", "San Francisco", "Boise", "Portland", "Bend", "Redmond", "Seattle", "Cheyenne"]
_FIRST_NAMES = ["Peter", "Paul", "Luke", "John", "Saul", "Vicky", "Kate", "Julie", "Sarah", "Deiter", "Walter"]
_LAST_NAMES = ["Shultz", "Abrams", "Spencer", "White", "Bartels", "Walton", "Smith", "Jones", "Noris"]
_HOT_CHANNELS = ["Google", "Facebook", "Baidu", "Apple"]


class Events:
    """The stream, and the table that one query joins it with."""

    def __init__(self) -> None:
        numbers = np.arange(_CHANNELS + len(_HOT_CHANNELS))
        folders = [_letters(mixed(numbers, salt), 5) for salt in range(3)]
        paths = ["/".join(parts) for parts in zip(*folders, strict=True)]
        urls = [f"https://www.nexmark.example/{path}/item.htm?query=1" for path in paths]
        self._channels = pa.array([*(f"channel-{number}" for number in range(_CHANNELS)), *_HOT_CHANNELS])
        self._urls = pa.array([*(f"{url}&channel_id={n}" for n, url in enumerate(urls[:_CHANNELS])), *urls[_CHANNELS:]])
        self._names = pa.array([f"{first} {last}" for first in _FIRST_NAMES for last in _LAST_NAMES])
        words = mixed(np.arange(4096), 7)
        self._words = pa.array(_letters(words, 12))
        self._texts = pa.array([f"{one} {other}" for one, other in zip(_letters(words, 8), self._words, strict=True)])

    def side_input(self) -> dict[str, pa.RecordBatch]:
        """The table of q13."""
        keys = np.arange(SIDE_ROWS)
        return {"side_input": _batch("side_input", keys, pa.array([f"value {key}" for key in keys]))}

    def between(self, first: int, last: int) -> dict[str, pa.RecordBatch]:
        """The events with numbers from ``first`` up to ``last``, which is not among them."""
        numbers = np.arange(first, last)
        kinds = numbers % EVENTS_OF_A_PERSON
        return {
            "person": self._people(numbers[kinds == 0]),
            "auction": self._auctions(numbers[(kinds > 0) & (kinds <= _AUCTIONS)]),
            "bid": self._bids(numbers[kinds > _AUCTIONS]),
        }

    def _people(self, numbers: Any) -> pa.RecordBatch:
        ids = _FIRST_ID + numbers // EVENTS_OF_A_PERSON
        cards = mixed(numbers, 1) % np.uint64(10**16)
        return _batch(
            "person",
            ids,
            _drawn(self._names, numbers, 0),
            pa.array([f"{word}@example.org" for word in _drawn(self._words, numbers, 2).to_pylist()], pa.string()),
            pa.array([f"{card:016d}" for card in cards], pa.string()),
            _drawn(pa.array(_CITIES), numbers, 3),
            _drawn(pa.array(_STATES), numbers, 4),
            _times(numbers),
            _drawn(self._texts, numbers, 5),
        )

    def _auctions(self, numbers: Any) -> pa.RecordBatch:
        persons = numbers // EVENTS_OF_A_PERSON
        ids = _FIRST_ID + persons * _AUCTIONS + numbers % EVENTS_OF_A_PERSON - 1
        prices = _prices(numbers)
        open_for = 1000 + _up_to(numbers, 1, 2 * _OPEN_US)
        return _batch(
            "auction",
            ids,
            _drawn(self._words, numbers, 2),
            _drawn(self._texts, numbers, 3),
            prices,
            prices + _prices(numbers * 2 + 1),
            _times(numbers),
            _times(numbers, open_for),
            _FIRST_ID + _person(numbers, persons, 0),
            _FIRST_CATEGORY + _up_to(numbers, 5, _CATEGORIES),
            _drawn(self._texts, numbers, 6),
        )

    def _bids(self, numbers: Any) -> pa.RecordBatch:
        persons = numbers // EVENTS_OF_A_PERSON
        latest = persons * _AUCTIONS + _AUCTIONS - 1
        auctions = _recent(numbers, latest, salt=1, active=_OPEN_AUCTIONS, hot_ratio=_HOT_AUCTION_RATIO, offset=0)
        hot = _up_to(numbers, 3, len(_HOT_CHANNELS))
        channels = np.where(_up_to(numbers, 4, 2) > 0, _CHANNELS + hot, _up_to(numbers, 5, _CHANNELS))
        return _batch(
            "bid",
            _FIRST_ID + auctions,
            _FIRST_ID + _person(numbers, persons, 1),
            _prices(numbers),
            self._channels.take(pa.array(channels)),
            self._urls.take(pa.array(channels)),
            _times(numbers),
            _drawn(self._texts, numbers, 6),
        )


def _person(numbers: Any, latest: Any, offset: int) -> Any:
    return _recent(numbers, latest, salt=2, active=_ACTIVE_PEOPLE, hot_ratio=_HOT_PERSON_RATIO, offset=offset)


def _recent(numbers: Any, latest: Any, *, salt: int, active: int, hot_ratio: int, offset: int) -> Any:
    """The hot one, but for one time of ``hot_ratio``: then it is any of the last ``active``."""
    bits = mixed(numbers, salt)
    hot = np.minimum(latest // _HOT_EVERY * _HOT_EVERY + offset, latest)
    back = ((bits >> np.uint64(8)) % np.minimum(latest + 1, active).astype(np.uint64)).astype(np.int64)
    return np.where(bits % np.uint64(hot_ratio) > 0, hot, latest - back)


def _prices(numbers: Any) -> Any:
    """From 100 to 100 millions, as many of each magnitude."""
    uniform = (mixed(numbers, 7) >> np.uint64(11)) / 2.0**53
    return np.round(10 ** (uniform * 6) * 100).astype(np.int64)


def _times(numbers: Any, later_us: Any = 0) -> pa.Array:
    return pa.array(START_US + numbers * 1_000_000 // RATE + later_us, pa.timestamp("us", "UTC"))


def _up_to(numbers: Any, salt: int, bound: int) -> Any:
    return (mixed(numbers, salt) % np.uint64(bound)).astype(np.int64)


def _drawn(values: pa.Array, numbers: Any, salt: int) -> pa.Array:
    return values.take(pa.array(_up_to(numbers, salt, len(values)), pa.int64()))


def _letters(bits: Any, length: int) -> list[str]:
    """Words of small letters, five bits for each."""
    return ["".join(chr(97 + (int(one) >> 5 * at & 31) % 26) for at in range(length)) for one in bits]


def _batch(table: str, *columns: Any) -> pa.RecordBatch:
    schema = SCHEMAS[table]
    arrays = [pa.array(column, kind) for column, kind in zip(columns, schema.types, strict=True)]
    return pa.record_batch(arrays, schema=schema)
