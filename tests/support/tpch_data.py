"""Small TPC-H data: the values the queries look for, skewed so that every query finds rows, and refresh batches."""

from __future__ import annotations

import datetime as dt
import random
from decimal import Decimal
from typing import Any

Row = tuple[Any, ...]
Changes = dict[str, list[tuple[Row, int]]]

_REGIONS = ["EUROPE", "ASIA", "AMERICA"]
_NATIONS = [("FRANCE", 0), ("GERMANY", 0), ("INDIA", 1), ("SAUDI ARABIA", 1), ("BRAZIL", 2), ("CANADA", 2)]
_TYPES = ["LARGE BRASS", "PROMO BRASS", "ECONOMY ANODIZED STEEL", "MEDIUM POLISHED TIN", "STANDARD BRASS"]
_CONTAINERS = ["SM CASE", "MED BAG", "LG BOX", "MED BOX", "JUMBO PKG"]
_BRANDS = ["Brand#12", "Brand#23", "Brand#34", "Brand#45"]
_COLOURS = ["forest green", "green lace", "blue sky", "almond rose"]
_MODES = ["MAIL", "SHIP", "AIR", "AIR REG", "TRUCK"]
_PRIORITIES = ["1-URGENT", "2-HIGH", "3-MEDIUM", "5-LOW"]
_COMMENTS = ["quick", "special packages requests", "Customer gave Complaints", "plain"]


class TpchData:
    """A seeded world: ``base()`` once, then any number of ``refresh()``, each a mix of insertions and deletions."""

    def __init__(self, seed: int) -> None:
        self._dice = random.Random(seed)
        self._next_order = 1
        self._orders: dict[int, tuple[Row, list[Row]]] = {}
        self._partsupp: list[Row] = []

    def base(self, orders: int) -> Changes:
        """All the small tables and the first orders."""
        dice = self._dice
        changes: Changes = {
            "region": [((key, name, "r"), 1) for key, name in enumerate(_REGIONS)],
            "nation": [((key, name, region, "n"), 1) for key, (name, region) in enumerate(_NATIONS)],
            "supplier": [
                ((key, f"Supplier#{key}", f"street {key}", key % 6, f"{10 + key}-1", *self._account()), 1)
                for key in range(12)
            ],
            "customer": [((key, *self._customer(key)), 1) for key in range(30)],
            "part": [((key, *self._part()), 1) for key in range(20)],
            "partsupp": [],
        }
        for part in range(20):
            for supplier in dice.sample(range(12), 4):
                row = (part, supplier, dice.randint(1, 9999), self._money(100), "ps")
                self._partsupp.append(row)
                changes["partsupp"].append((row, 1))
        return changes | self._new_orders(orders)

    def refresh(self, inserted: int, deleted: int) -> Changes:
        """New orders with their lines, and old ones gone with theirs."""
        changes = self._new_orders(inserted)
        for key in self._dice.sample(sorted(self._orders), deleted):
            order, lines = self._orders.pop(key)
            changes["orders"].append((order, -1))
            changes["lineitem"] += [(line, -1) for line in lines]
        return changes

    def _new_orders(self, count: int) -> Changes:
        dice = self._dice
        changes: Changes = {"orders": [], "lineitem": []}
        for _ in range(count):
            key = self._next_order
            self._next_order += 1
            date = dt.date(1993, 1, 1) + dt.timedelta(days=dice.randrange(1500))
            order = (
                key,
                dice.randrange(25),
                dice.choice("FOP"),
                self._money(400000),
                date,
                dice.choice(_PRIORITIES),
                f"Clerk#{dice.randrange(9)}",
                0,
                dice.choice(_COMMENTS),
            )
            lines = [self._line(key, number, date) for number in range(1, dice.randint(2, 7))]
            self._orders[key] = (order, lines)
            changes["orders"].append((order, 1))
            changes["lineitem"] += [(line, 1) for line in lines]
        return changes

    def _line(self, order: int, number: int, date: dt.date) -> Row:
        dice = self._dice
        shipped = date + dt.timedelta(days=dice.randint(1, 120))
        part, supplier, *_ = dice.choice(self._partsupp)
        return (
            order,
            part,
            supplier,
            number,
            Decimal(dice.choice([1, 5, 15, 23, 40, 50])),
            self._money(90000),
            Decimal(dice.randint(4, 8)) / 100,
            Decimal(dice.randint(0, 8)) / 100,
            dice.choice("RAN"),
            dice.choice("OF"),
            shipped,
            date + dt.timedelta(days=dice.randint(30, 90)),
            shipped + dt.timedelta(days=dice.randint(1, 30)),
            dice.choice(["DELIVER IN PERSON", "NONE"]),
            dice.choice(_MODES),
            "l",
        )

    def _customer(self, key: int) -> Row:
        dice = self._dice
        phone = f"{dice.choice([13, 31, 23, 29, 30, 18, 17, 11])}-{key}"
        balance, comment = self._account()
        return (f"Customer#{key}", "road", key % 6, phone, balance, dice.choice(["BUILDING", "MACHINERY"]), comment)

    def _part(self) -> Row:
        dice = self._dice
        size = dice.choice([1, 3, 5, 9, 14, 15, 19, 23, 36, 45, 49])
        kind, brand, container = dice.choice(_TYPES), dice.choice(_BRANDS), dice.choice(_CONTAINERS)
        return (dice.choice(_COLOURS), "Manufacturer#1", brand, kind, size, container, self._money(2000), "p")

    def _account(self) -> Row:
        return (Decimal(self._dice.randint(-90000, 900000)) / 100, self._dice.choice(_COMMENTS))

    def _money(self, most: int) -> Decimal:
        return Decimal(self._dice.randint(100, most * 100)) / 100
