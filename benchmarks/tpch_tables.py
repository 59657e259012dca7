"""TPC-H tables of any scale. Every row is a function of its key; the values are those that the queries look for.

Sizes, keys, dates and the shares of values follow the specification; comments and addresses are shorter.
"""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from ticking.data import mixed

from weirflow.sql.typing.type_syntax import parse_ddl

_TPCH = runpy.run_path(str(Path(__file__).parents[1] / "tests" / "support" / "tpch.py"))
QUERIES: dict[int, str] = _TPCH["QUERIES"]
SCHEMAS: dict[str, pa.Schema] = {name: parse_ddl(ddl) for name, ddl in _TPCH["SCHEMAS"].items()}

_REGIONS = ["AFRICA", "AMERICA", "ASIA", "EUROPE", "MIDDLE EAST"]
_NATIONS = {
    "ALGERIA": 0, "ARGENTINA": 1, "BRAZIL": 1, "CANADA": 1, "EGYPT": 4, "ETHIOPIA": 0, "FRANCE": 3, "GERMANY": 3,
    "INDIA": 2, "INDONESIA": 2, "IRAN": 4, "IRAQ": 4, "JAPAN": 2, "JORDAN": 4, "KENYA": 0, "MOROCCO": 0,
    "MOZAMBIQUE": 0, "PERU": 1, "CHINA": 2, "ROMANIA": 3, "SAUDI ARABIA": 4, "VIETNAM": 2, "RUSSIA": 3,
    "UNITED KINGDOM": 3, "UNITED STATES": 1,
}  # fmt: skip
_SEGMENTS = ["AUTOMOBILE", "BUILDING", "FURNITURE", "HOUSEHOLD", "MACHINERY"]
_PRIORITIES = ["1-URGENT", "2-HIGH", "3-MEDIUM", "4-NOT SPECIFIED", "5-LOW"]
_INSTRUCTIONS = ["COLLECT COD", "DELIVER IN PERSON", "NONE", "TAKE BACK RETURN"]
_MODES = ["AIR", "AIR REG", "FOB", "MAIL", "RAIL", "SHIP", "TRUCK"]
_COLOURS = ["almond", "blue", "chiffon", "forest", "green", "ivory", "lace", "navy", "rose", "sky"]
_BRANDS = [f"Brand#{maker}{number}" for maker in range(1, 6) for number in range(1, 6)]
_TYPES = [
    f"{size} {finish} {metal}"
    for size in ("ECONOMY", "LARGE", "MEDIUM", "PROMO", "SMALL", "STANDARD")
    for finish in ("ANODIZED", "BRUSHED", "BURNISHED", "PLATED", "POLISHED")
    for metal in ("BRASS", "COPPER", "NICKEL", "STEEL", "TIN")
]
_CONTAINERS = [
    f"{size} {kind}"
    for size in ("JUMBO", "LG", "MED", "SM", "WRAP")
    for kind in ("BAG", "BOX", "CAN", "CASE", "DRUM", "JAR", "PACK", "PKG")
]
_ORDER_COMMENTS = ["quick deposits", "special packages requests", *(f"plain words {n}" for n in range(78))]
_SUPPLIER_COMMENTS = ["Customer gave Complaints", *(f"blithe words {n}" for n in range(99))]
_FIRST_DAY, _DAYS, _CURRENT_DAY = 8035, 2406, 9298  # 1992-01-01, as many days of orders, 1995-06-17
_SUPPLIERS_OF_A_PART = 4
_MOST_LINES = 7


class TpchTables:
    """The tables of one scale factor. Orders and lines are made for any keys of orders, the others for all keys."""

    def __init__(self, scale: float) -> None:
        self.orders = round(1_500_000 * scale)
        self._customers = round(150_000 * scale)
        self._parts = round(200_000 * scale)
        self._suppliers = max(20, round(10_000 * scale))

    def small(self) -> dict[str, pa.RecordBatch]:
        """The six tables that refreshes leave alone."""
        return {
            "region": _batch("region", np.arange(len(_REGIONS)), pa.array(_REGIONS), _same("r", len(_REGIONS))),
            "nation": _batch(
                "nation",
                np.arange(len(_NATIONS)),
                pa.array(list(_NATIONS)),
                np.array(list(_NATIONS.values())),
                _same("n", len(_NATIONS)),
            ),
            "supplier": self._supplier(),
            "customer": self._customer(),
            "part": self._part(),
            "partsupp": self._partsupp(),
        }

    def of_orders(self, keys: Any) -> dict[str, pa.RecordBatch]:
        """The orders with these keys, and their lines."""
        customers = _up_to(keys, 1, self._customers)
        customers -= (customers % 3 == 0) & (customers > 0)  # a third of the customers never order
        dates = _order_dates(keys)
        orders = _batch(
            "orders",
            keys,
            customers,
            _drawn(["F", "O", "P"], keys, 3),
            _money(_up_to(keys, 4, 50_000_000) + 100_000),
            _dates(dates),
            _drawn(_PRIORITIES, keys, 5),
            _drawn([f"Clerk#{number:09d}" for number in range(1000)], keys, 6),
            np.zeros(len(keys), np.int32),
            _drawn(_ORDER_COMMENTS, keys, 7),
        )
        return {"orders": orders, "lineitem": self._lines(keys)}

    def _lines(self, orders: Any) -> pa.RecordBatch:
        counts = _up_to(orders, 8, _MOST_LINES) + 1
        keys = np.repeat(orders, counts)
        numbers = np.arange(len(keys)) - np.repeat(np.cumsum(counts) - counts, counts) + 1
        lines = keys * (_MOST_LINES + 1) + numbers
        parts = _up_to(lines, 9, self._parts)
        quantities = _up_to(lines, 10, 50) + 1
        ordered = _order_dates(keys)
        shipped = ordered + _up_to(lines, 11, 121) + 1
        received = shipped + _up_to(lines, 12, 30) + 1
        returned = pa.array(["R", "A", "N"]).take(pa.array(np.where(received <= _CURRENT_DAY, _up_to(lines, 13, 2), 2)))
        return _batch(
            "lineitem",
            keys,
            parts,
            self._supplier_of(parts, _up_to(lines, 14, _SUPPLIERS_OF_A_PART)),
            numbers.astype(np.int32),
            _money(quantities * 100),
            _money(quantities * _prices(parts)),
            _money(_up_to(lines, 15, 11)),
            _money(_up_to(lines, 16, 9)),
            returned,
            pa.array(["F", "O"]).take(pa.array((shipped > _CURRENT_DAY).astype(np.int64))),
            _dates(shipped),
            _dates(ordered + _up_to(lines, 17, 61) + 30),
            _dates(received),
            _drawn(_INSTRUCTIONS, lines, 18),
            _drawn(_MODES, lines, 19),
            _same("l", len(lines)),
        )

    def _supplier(self) -> pa.RecordBatch:
        keys = np.arange(self._suppliers)
        nations = _up_to(keys, 20, len(_NATIONS))
        names = pa.array([f"Supplier#{key:09d}" for key in keys])
        comments = _drawn(_SUPPLIER_COMMENTS, keys, 21)
        addresses = pa.array([f"street {key}" for key in keys])
        return _batch(
            "supplier", keys, names, addresses, nations, _phones(nations, keys), _balances(keys, 22), comments
        )

    def _customer(self) -> pa.RecordBatch:
        keys = np.arange(self._customers)
        nations = _up_to(keys, 23, len(_NATIONS))
        return _batch(
            "customer",
            keys,
            pa.array([f"Customer#{key:09d}" for key in keys]),
            pa.array([f"road {key}" for key in keys]),
            nations,
            _phones(nations, keys),
            _balances(keys, 24),
            _drawn(_SEGMENTS, keys, 25),
            _same("c", len(keys)),
        )

    def _part(self) -> pa.RecordBatch:
        keys = np.arange(self._parts)
        names = [f"{one} {other}" for one in _COLOURS for other in _COLOURS]
        return _batch(
            "part",
            keys,
            _drawn(names, keys, 26),
            _drawn([f"Manufacturer#{number}" for number in range(1, 6)], keys, 27),
            _drawn(_BRANDS, keys, 28),
            _drawn(_TYPES, keys, 29),
            (_up_to(keys, 30, 50) + 1).astype(np.int32),
            _drawn(_CONTAINERS, keys, 31),
            _money(_prices(keys)),
            _same("p", len(keys)),
        )

    def _partsupp(self) -> pa.RecordBatch:
        parts = np.repeat(np.arange(self._parts), _SUPPLIERS_OF_A_PART)
        places = np.tile(np.arange(_SUPPLIERS_OF_A_PART), self._parts)
        pairs = parts * _SUPPLIERS_OF_A_PART + places
        return _batch(
            "partsupp",
            parts,
            self._supplier_of(parts, places),
            (_up_to(pairs, 32, 9999) + 1).astype(np.int32),
            _money(_up_to(pairs, 33, 99_901) + 100),
            _same("ps", len(pairs)),
        )

    def _supplier_of(self, parts: Any, places: Any) -> Any:
        return (parts + places * (self._suppliers // _SUPPLIERS_OF_A_PART)) % self._suppliers


def _up_to(keys: Any, salt: int, most: int) -> Any:
    """A number below ``most`` for each key; another one for each salt below 64."""
    return (mixed(keys * 8 + salt // 8, salt % 8) % np.uint64(most)).astype(np.int64)


def _drawn(values: list[str], keys: Any, salt: int) -> pa.Array:
    return pa.array(values).take(pa.array(_up_to(keys, salt, len(values))))


def _same(value: str, count: int) -> pa.Array:
    return pa.array([value]).take(pa.array(np.zeros(count, np.int64)))


def _order_dates(keys: Any) -> Any:
    return _FIRST_DAY + _up_to(keys, 2, _DAYS)


def _dates(days: Any) -> pa.Array:
    return pa.array(days.astype(np.int32)).cast(pa.date32())


def _prices(parts: Any) -> Any:
    """The retail price of a part, in cents."""
    return 90_000 + (parts // 10) % 20_001 + 100 * (parts % 1000)


def _balances(keys: Any, salt: int) -> pa.Array:
    return _money(_up_to(keys, salt, 1_099_999) - 99_999)


def _phones(nations: Any, keys: Any) -> pa.Array:
    return pa.array([f"{nation + 10}-{key}" for nation, key in zip(nations, keys, strict=True)])


def _money(cents: Any) -> pa.Array:
    """Whole cents as DECIMAL(15, 2), without a detour over Python's decimals."""
    words = np.stack([cents.astype(np.int64), cents.astype(np.int64) >> 63], axis=1)
    return pa.Array.from_buffers(pa.decimal128(15, 2), len(cents), [None, pa.py_buffer(words.tobytes())])


def _batch(name: str, *columns: Any) -> pa.RecordBatch:
    schema = SCHEMAS[name]
    arrays = [pa.array(column, kind) for column, kind in zip(columns, schema.types, strict=True)]
    return pa.record_batch(arrays, schema=schema)
