"""Orders in the three channels of TPC-DS: lines that were sold, and those of them that came back."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, Any

from support.tpcds.dice import money
from support.tpcds.dimensions import FIRST_DAY, LAST_DAY, key_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from support.tpcds.dice import Dice

Named = dict[str, Any]

# Where queries look for rows within some weeks.
_BUSY = [(dt.date(2000, 2, 1), 90), (dt.date(2000, 2, 1), 30), (dt.date(2000, 11, 1), 61)]
_LAST_SALE = LAST_DAY - dt.timedelta(days=130)
_PARTIES = ("customer_sk", "cdemo_sk", "hdemo_sk", "addr_sk")
_QUARTER_HOUR = 900


class Orders:
    """Draws orders of one channel after another; ``keys`` has the keys of each dimension, those used most first."""

    def __init__(self, dice: Dice, keys: Mapping[str, Sequence[int]]) -> None:
        self._dice = dice
        self._keys = keys

    def store(self, number: int) -> tuple[list[Named], list[Named]]:
        """A ticket; now and then a long one."""
        dice = self._dice
        day, time, party = self._day(), self._time(), self._party()
        place = self._any("store", 0.03)
        lines, back = [], []
        for item in self._items(dice.between(15, 18) if dice.chance(0.03) else dice.between(1, 5)):
            prices, cents = self._prices()
            common = {"item_sk": item, **party, "store_sk": place, "ticket_number": number}
            keys = {"sold_date_sk": dice.maybe(key_of(day)), "sold_time_sk": dice.maybe(time)}
            lines.append(_named("ss", common | keys | {"promo_sk": self._any("promotion")} | _store_prices(prices)))
            if dice.chance(0.3):
                returned = self._returned(day, cents)
                returned["return_time_sk"] = returned.pop("returned_time_sk")
                back.append(_named("sr", common | returned))
        return lines, back

    def catalog(self, number: int) -> tuple[list[Named], list[Named]]:
        dice = self._dice
        day, time, bill = self._day(), self._time(), self._party()
        ship = bill if dice.chance(0.7) else self._party()
        centre, page = self._any("call_center", 0.03), self._any("catalog_page", 0.03)
        lines, back = [], []
        for item in self._items(dice.between(1, 5)):
            prices, cents = self._prices()
            common = {"item_sk": item, "order_number": number, "call_center_sk": centre, "catalog_page_sk": page}
            common |= {"ship_mode_sk": self._any("ship_mode", 0.03), "warehouse_sk": self._any("warehouse", 0.03)}
            lines.append(_named("cs", common | self._sent(day, time, bill, ship) | prices))
            if dice.chance(0.3):
                returned = self._returned(day, cents) | self._returning(bill, ship)
                returned["return_amount"] = returned.pop("return_amt")
                back.append(_named("cr", common | returned))
        return lines, back

    def web(self, number: int) -> tuple[list[Named], list[Named]]:
        dice = self._dice
        day, time, bill = self._day(), self._time(), self._party()
        ship = bill if dice.chance(0.7) else self._party()
        site, page = self._any("web_site", 0.03), self._any("web_page", 0.03)
        lines, back = [], []
        for item in self._items(dice.between(1, 5)):
            prices, cents = self._prices()
            common = {"item_sk": item, "order_number": number, "web_page_sk": page}
            keys = {"web_site_sk": site, "ship_mode_sk": self._any("ship_mode", 0.03)}
            keys["warehouse_sk"] = self._any("warehouse", 0.03)
            lines.append(_named("ws", common | keys | self._sent(day, time, bill, ship) | prices))
            if dice.chance(0.3):
                returned = self._returned(day, cents) | self._returning(bill, ship)
                returned["account_credit"] = returned.pop("store_credit")
                back.append(_named("wr", common | returned))
        return lines, back

    def repriced(self, line: Named, prefix: str) -> Named:
        """The same line with another quantity and other prices."""
        prices, _ = self._prices()
        fresh = _named(prefix, _store_prices(prices) if prefix == "ss" else prices)
        return line | {name: value for name, value in fresh.items() if name in line}

    def _sent(self, day: dt.date, time: int, bill: Named, ship: Named) -> Named:
        dice = self._dice
        return {
            "sold_date_sk": dice.maybe(key_of(day)),
            "sold_time_sk": dice.maybe(time),
            "ship_date_sk": dice.maybe(key_of(day) + dice.early(range(1, 130))),
            "promo_sk": self._any("promotion"),
            **{f"bill_{name}": bill[name] for name in _PARTIES},
            **{f"ship_{name}": ship[name] for name in _PARTIES},
        }

    def _returning(self, bill: Named, ship: Named) -> Named:
        refunded = {f"refunded_{name}": bill[name] for name in _PARTIES}
        return refunded | {f"returning_{name}": ship[name] for name in _PARTIES}

    def _returned(self, day: dt.date, sold: tuple[int, int]) -> Named:
        dice = self._dice
        quantity, price = sold
        count = dice.between(1, quantity)
        amount, tax, fee, freight = count * price, count * price // 20, dice.between(50, 9000), dice.between(0, 9000)
        cash = amount * dice.between(0, 10) // 10
        values = {
            "return_amt": amount,
            "return_tax": tax,
            "return_amt_inc_tax": amount + tax,
            "fee": fee,
            "return_ship_cost": freight,
            "refunded_cash": cash,
            "reversed_charge": (amount - cash) // 2,
            "store_credit": amount - cash - (amount - cash) // 2,
            "net_loss": fee + freight + tax,
        }
        return {
            "returned_date_sk": dice.maybe(key_of(day) + dice.between(1, 60)),
            "returned_time_sk": dice.maybe(self._time()),
            "reason_sk": self._any("reason", 0.03),
            "return_quantity": dice.maybe(count),
            **{name: dice.maybe(money(value)) for name, value in values.items()},
        }

    def _prices(self) -> tuple[Named, tuple[int, int]]:
        """Those of a line, and its quantity and price in cents."""
        dice = self._dice
        quantity, cost = dice.between(1, 100), dice.between(100, 6000)
        listed = cost * dice.between(100, 200) // 100
        price = listed * dice.one([0, 20, 50, 80, 90, 100, 100]) // 100
        coupon = price * quantity * dice.one([0, 0, 0, 10, 50]) // 100
        paid = price * quantity - coupon
        tax, freight = paid * dice.between(0, 9) // 100, listed * quantity * dice.between(0, 30) // 100
        values = {
            "wholesale_cost": cost,
            "list_price": listed,
            "sales_price": price,
            "ext_discount_amt": (listed - price) * quantity,
            "ext_sales_price": price * quantity,
            "ext_wholesale_cost": cost * quantity,
            "ext_list_price": listed * quantity,
            "ext_tax": tax,
            "coupon_amt": coupon,
            "ext_ship_cost": freight,
            "net_paid": paid,
            "net_paid_inc_tax": paid + tax,
            "net_paid_inc_ship": paid + freight,
            "net_paid_inc_ship_tax": paid + freight + tax,
            "net_profit": paid - cost * quantity,
        }
        named: Named = {name: dice.maybe(money(cents), 0.02) for name, cents in values.items()}
        return {"quantity": dice.maybe(quantity, 0.02), **named}, (quantity, price)

    def _party(self) -> Named:
        sources = {"customer_sk": "customer", "cdemo_sk": "customer_demographics", "hdemo_sk": "household_demographics"}
        party: Named = {name: self._any(table, 0.03) for name, table in sources.items()}
        return party | {"addr_sk": self._any("customer_address", 0.03)}

    def _items(self, count: int) -> list[int]:
        return sorted({self._dice.early(self._keys["item"]) for _ in range(count)})

    def _any(self, table: str, missing: float = 0.2) -> int | None:
        return self._dice.maybe(self._dice.early(self._keys[table]), missing)

    def _day(self) -> dt.date:
        dice = self._dice
        if dice.chance(0.55):
            first, length = dice.one(_BUSY)
        else:
            first, length = FIRST_DAY, (_LAST_SALE - FIRST_DAY).days
        return first + dt.timedelta(days=dice.between(0, length))

    def _time(self) -> int:
        return self._dice.between(7 * 4, 21 * 4 - 1) * _QUARTER_HOUR


def _store_prices(prices: Named) -> Named:
    sent = {"ext_ship_cost", "net_paid_inc_ship", "net_paid_inc_ship_tax"}
    return {name: value for name, value in prices.items() if name not in sent}


def _named(prefix: str, values: Named) -> Named:
    return {f"{prefix}_{name}": value for name, value in values.items()}
