"""A small TPC-DS world and its refreshes."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, Any

from support.tpcds import dimensions
from support.tpcds.dice import Dice
from support.tpcds.dimensions import Dimensions, key_of
from support.tpcds.orders import Orders
from support.tpcds.schema import SCHEMAS

if TYPE_CHECKING:
    from collections.abc import Callable

Named = dict[str, Any]
Row = tuple[Any, ...]
Changes = dict[str, list[tuple[Row, int]]]
Order = tuple[list[Named], list[Named]]

_CHANNELS = {"store": "ss", "catalog": "cs", "web": "ws"}
_DEMOGRAPHICS, _HOUSEHOLDS, _ADDRESSES, _BANDS = 40, 20, 30, 5
_ITEMS, _CUSTOMERS, _PROMOTIONS = 40, 50, 6
_INVENTORIED = dt.date(2000, 1, 2)


class TpcdsData:
    """A seeded world: ``base()`` once, then any number of ``refresh()``.

    A refresh adds orders, takes others back with their returns, and corrects prices of lines; items, customers and
    other dimensions change, there is a new item, and a customer is forgotten with all of his orders.
    """

    def __init__(self, seed: int) -> None:
        self._dice = Dice(seed)
        self._draw = Dimensions(self._dice)
        self._rows: dict[str, dict[Any, Named]] = {name: {} for name in SCHEMAS}
        self._orders: dict[str, dict[int, Order]] = {channel: {} for channel in _CHANNELS}
        self._next_order = 1
        self._changes: Changes = {}

    def base(self, orders: int) -> Changes:
        """All dimensions, the inventory, and the first orders of each channel."""
        dice = self._dice
        makers: dict[str, tuple[int, Callable[[int], Named]]] = {
            "item": (_ITEMS, self._draw.item),
            "customer": (_CUSTOMERS, self._customer),
            "customer_address": (_ADDRESSES, self._draw.customer_address),
            "customer_demographics": (_DEMOGRAPHICS, self._draw.customer_demographics),
            "household_demographics": (_HOUSEHOLDS, self._household),
            "store": (5, self._draw.store),
            "warehouse": (4, self._draw.warehouse),
            "promotion": (_PROMOTIONS, self._promotion),
            "call_center": (3, self._draw.call_center),
            "catalog_page": (6, self._draw.catalog_page),
            "web_page": (6, self._draw.web_page),
            "web_site": (4, self._draw.web_site),
            "income_band": (_BANDS, _income_band),
            "reason": (4, _reason),
            "ship_mode": (5, _ship_mode),
        }
        for table, (count, make) in makers.items():
            for key in range(1, count + 1):
                self._put(table, key, make(key))
        for day in dimensions.days():
            self._put("date_dim", key_of(day), dimensions.date(day))
        for seconds in range(0, 86400, 900):
            self._put("time_dim", seconds, dimensions.time(seconds))
        for week in range(26):
            day = key_of(_INVENTORIED) + 7 * week
            for item in range(1, _ITEMS + 1):
                for warehouse in dice.some(range(1, 5), 1):
                    self._put("inventory", (day, item, warehouse), self._stock(day, item, warehouse))
        self._more_orders(orders)
        return self._taken()

    def refresh(self, inserted: int, deleted: int) -> Changes:
        dice = self._dice
        self._more_orders(inserted)
        for channel, orders in self._orders.items():
            for number in dice.some(sorted(orders), deleted):
                self._forget_order(channel, number)
            for number in dice.some(sorted(orders), deleted):
                self._correct(channel, orders[number])
        self._change_dimensions()
        self._put("item", len(self._rows["item"]) + 1, self._draw.item(len(self._rows["item"]) + 1))
        self._forget_customer(dice.one(sorted(self._rows["customer"])[15:]))
        for key in dice.some(sorted(self._rows["inventory"]), 25):
            self._put("inventory", key, self._stock(*key))
        self._drop("inventory", dice.one(sorted(self._rows["inventory"])))
        return self._taken()

    def _more_orders(self, count: int) -> None:
        maker = Orders(self._dice, {name: sorted(rows) for name, rows in self._rows.items()})
        for channel in _CHANNELS:
            for _ in range(count):
                number = self._next_order
                self._next_order += 1
                order = getattr(maker, channel)(number)
                self._orders[channel][number] = order
                self._record(channel, order, 1)

    def _forget_order(self, channel: str, number: int) -> None:
        self._record(channel, self._orders[channel].pop(number), -1)

    def _correct(self, channel: str, order: Order) -> None:
        lines, _ = order
        self._record(channel, (lines[:1], []), -1)
        lines[0] = Orders(self._dice, {}).repriced(lines[0], _CHANNELS[channel])
        self._record(channel, (lines[:1], []), 1)

    def _record(self, channel: str, order: Order, weight: int) -> None:
        for table, rows in zip((f"{channel}_sales", f"{channel}_returns"), order, strict=True):
            for row in rows:
                self._change(table, row, weight)

    def _change_dimensions(self) -> None:
        dice = self._dice
        for key in dice.some(sorted(self._rows["item"])[:20], 2):
            self._put("item", key, self._draw.item(key))
        for key in dice.some(sorted(self._rows["customer"]), 2):
            self._put("customer", key, self._customer(key))
        for table, make in (
            ("customer_address", self._draw.customer_address),
            ("customer_demographics", self._draw.customer_demographics),
            ("household_demographics", self._household),
            ("promotion", self._promotion),
        ):
            key = dice.one(sorted(self._rows[table]))
            self._put(table, key, make(key))
        key = dice.one(sorted(self._rows["store"]))
        self._put("store", key, self._rows["store"][key] | {"s_number_employees": dice.between(190, 300)})
        key = dice.one(sorted(self._rows["date_dim"]))
        self._put("date_dim", key, self._rows["date_dim"][key] | {"d_holiday": "Y"})

    def _forget_customer(self, key: int) -> None:
        self._drop("customer", key)
        names = {"store": "ss_customer_sk", "catalog": "cs_bill_customer_sk", "web": "ws_bill_customer_sk"}
        for channel, orders in self._orders.items():
            mine = [number for number, (lines, _) in orders.items() if lines[0][names[channel]] == key]
            for number in mine:
                self._forget_order(channel, number)

    def _customer(self, key: int) -> Named:
        return self._draw.customer(key, _DEMOGRAPHICS, _HOUSEHOLDS, _ADDRESSES)

    def _household(self, key: int) -> Named:
        return self._draw.household_demographics(key, _BANDS)

    def _promotion(self, key: int) -> Named:
        return self._draw.promotion(key, _ITEMS)

    def _stock(self, day: int, item: int, warehouse: int) -> Named:
        count = self._dice.maybe(self._dice.one([0, 3, 20, 80, 150, 300, 480, 900]), 0.03)
        return {
            "inv_date_sk": day,
            "inv_item_sk": item,
            "inv_warehouse_sk": warehouse,
            "inv_quantity_on_hand": count,
        }

    def _put(self, table: str, key: Any, row: Named) -> None:
        """In the place of the row with this key, if there is one."""
        if key in self._rows[table]:
            self._drop(table, key)
        self._rows[table][key] = row
        self._change(table, row, 1)

    def _drop(self, table: str, key: Any) -> None:
        self._change(table, self._rows[table].pop(key), -1)

    def _change(self, table: str, row: Named, weight: int) -> None:
        names = SCHEMAS[table].names
        if row.keys() != set(names):
            raise AssertionError(f"{table}: {row.keys() ^ set(names)}")
        self._changes.setdefault(table, []).append((tuple(row[name] for name in names), weight))

    def _taken(self) -> Changes:
        changes, self._changes = self._changes, {}
        return changes


def _income_band(key: int) -> Named:
    low = 10000 * (key - 1)
    return {"ib_income_band_sk": key, "ib_lower_bound": low + (key > 1), "ib_upper_bound": low + 10000}


def _reason(key: int) -> Named:
    return {"r_reason_sk": key, "r_reason_id": f"REASON{key:04d}", "r_reason_desc": f"reason {26 + key}"}


def _ship_mode(key: int) -> Named:
    return {
        "sm_ship_mode_sk": key,
        "sm_ship_mode_id": f"MODE{key:04d}",
        "sm_type": ["EXPRESS", "NEXT DAY", "OVERNIGHT", "REGULAR"][key % 4],
        "sm_code": ["AIR", "SURFACE", "SEA"][key % 3],
        "sm_carrier": ["DHL", "BARIAN", "UPS", "FEDEX"][key % 4],
        "sm_contract": f"contract {key}",
    }
