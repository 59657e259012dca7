"""The rows of the dimensions, with few values in each column, so that filters over several of them find rows."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from support.tpcds.dice import money

if TYPE_CHECKING:
    from support.tpcds.dice import Dice

Named = dict[str, Any]

FIRST_DAY, LAST_DAY = dt.date(1999, 1, 1), dt.date(2001, 12, 31)
_EPOCH = dt.date(1900, 1, 1)
_JULIAN = 2415021

_DAYS = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"]
CATEGORIES = {
    "Books": ["fiction", "history", "computers"],
    "Music": ["rock", "pop"],
    "Home": ["decor", "bedding"],
    "Electronics": ["audio", "portable"],
    "Sports": ["golf", "fishing"],
    "Women": ["dresses", "fragrances"],
    "Jewelry": ["rings", "birdal"],
    "Shoes": ["mens", "womens"],
}
COLORS = ["slate", "blanched", "powder", "khaki", "pale", "chiffon", "snow", "orchid"]
_UNITS = ["Ounce", "Oz", "Bunch", "Ton", "N/A", "Dozen", "Pound", "Each"]
_SIZES = ["medium", "extra large", "N/A", "small", "petite", "large"]
STATES = ["TN", "GA", "TX", "KY", "OH", "VA", "IN", "CA"]
_CITIES = ["Midway", "Fairview", "Oak Grove", "Edgewood", "Pleasant Hill"]
_COUNTIES = ["Williamson County", "Walker County", "Ziebach County", "Rush County", "Barrow County"]
ZIPS = ["24128", "76232", "65084", "87816", "83926", "85669", "85460", "31904"]
_EDUCATIONS = ["College", "4 yr Degree", "Advanced Degree", "2 yr Degree", "Secondary", "Primary", "Unknown"]
_POTENTIALS = [">10000", "Unknown", "1001-5000", "0-500", "501-1000", "5001-10000"]
_STORES = ["ese", "ought", "able", "bar", "cally"]
_LOCATIONS = ["single family", "apartment", "condo"]


def key_of(day: dt.date) -> int:
    """The key of a day in ``date_dim``."""
    return _JULIAN + (day - _EPOCH).days


def days() -> list[dt.date]:
    return [FIRST_DAY + dt.timedelta(days=number) for number in range((LAST_DAY - FIRST_DAY).days + 1)]


def date(day: dt.date) -> Named:
    months = (day.year - 1900) * 12 + day.month - 1
    weeks = ((day - _EPOCH).days + 1) // 7 + 1
    quarter = (day.month + 2) // 3
    first = day.replace(day=1)
    weekday = (day.weekday() + 1) % 7
    return {
        "d_date_sk": key_of(day),
        "d_date_id": f"AAAA{key_of(day):012d}",
        "d_date": day,
        "d_month_seq": months,
        "d_week_seq": weeks,
        "d_quarter_seq": months // 3 + 1,
        "d_year": day.year,
        "d_dow": weekday,
        "d_moy": day.month,
        "d_dom": day.day,
        "d_qoy": quarter,
        "d_fy_year": day.year,
        "d_fy_quarter_seq": months // 3 + 1,
        "d_fy_week_seq": weeks,
        "d_day_name": _DAYS[weekday],
        "d_quarter_name": f"{day.year}Q{quarter}",
        "d_holiday": "Y" if (day.month, day.day) in {(1, 1), (7, 4), (12, 25)} else "N",
        "d_weekend": "Y" if weekday in {0, 6} else "N",
        "d_following_holiday": "N",
        "d_first_dom": key_of(first),
        "d_last_dom": key_of(first + dt.timedelta(days=27)),
        "d_same_day_ly": key_of(day) - 365,
        "d_same_day_lq": key_of(day) - 91,
        **{f"d_current_{part}": "N" for part in ("day", "week", "month", "quarter", "year")},
    }


def time(seconds: int) -> Named:
    hour = seconds // 3600
    meals = {7: "breakfast", 8: "breakfast", 12: "lunch", 13: "lunch", 18: "dinner", 19: "dinner"}
    return {
        "t_time_sk": seconds,
        "t_time_id": f"AAAA{seconds:012d}",
        "t_time": seconds,
        "t_hour": hour,
        "t_minute": seconds // 60 % 60,
        "t_second": seconds % 60,
        "t_am_pm": "AM" if hour < 12 else "PM",
        "t_shift": ("third", "first", "second")[hour // 8],
        "t_sub_shift": ("night", "morning", "afternoon", "evening")[hour // 6],
        "t_meal_time": meals.get(hour),
    }


class Dimensions:
    """Draws rows of the dimensions by their keys."""

    def __init__(self, dice: Dice) -> None:
        self._dice = dice

    def item(self, key: int) -> Named:
        dice = self._dice
        category = dice.early(list(CATEGORIES))
        number = list(CATEGORIES).index(category) + 1
        kind = dice.early(CATEGORIES[category])
        kinds = CATEGORIES[category].index(kind) + 1
        brand = dice.between(1, 3)
        maker = dice.early([128, 436, 677, 694, 808, 941])
        price = dice.between(90, 9900)
        return {
            "i_item_sk": key,
            # As slowly changing dimensions have it, two versions of an item share an id.
            "i_item_id": f"ITEM{key // 2:08d}" if key % 5 == 1 else f"ITEM{key:08d}x",
            "i_rec_start_date": dice.maybe(dt.date(1997, 10, 27)),
            "i_rec_end_date": None,
            "i_item_desc": dice.maybe(f"A thing of sort {key % 9}, well made"),
            "i_current_price": dice.maybe(money(price)),
            "i_wholesale_cost": dice.maybe(money(price * 6 // 10)),
            "i_brand_id": number * 1000000 + kinds * 1000 + brand,
            "i_brand": dice.maybe(f"{category.lower()}{kind} #{brand}", 0.02),
            "i_class_id": kinds,
            "i_class": dice.maybe(kind, 0.02),
            "i_category_id": number,
            "i_category": dice.maybe(category, 0.02),
            "i_manufact_id": maker,
            "i_manufact": f"maker{maker}",
            "i_size": dice.early(_SIZES),
            "i_formulation": f"{key}slate{key * 7}",
            "i_color": dice.early(COLORS),
            "i_units": dice.early(_UNITS),
            "i_container": "Unknown",
            "i_manager_id": dice.early([1, 8, 28, 36, 40]),
            "i_product_name": dice.maybe(f"product{key:04d}"),
        }

    def customer(self, key: int, demographics: int, households: int, addresses: int) -> Named:
        dice = self._dice
        first = dice.one(["Ann", "Bob", "Carl", "Dora", "Emil", "Fay"])
        last = dice.one(["Smith", "Jones", "Brown", "White", "Green"])
        return {
            "c_customer_sk": key,
            "c_customer_id": f"CUST{key:012d}",
            "c_current_cdemo_sk": dice.maybe(dice.between(1, demographics)),
            "c_current_hdemo_sk": dice.maybe(dice.between(1, households)),
            "c_current_addr_sk": dice.between(1, addresses),
            "c_first_shipto_date_sk": dice.maybe(key_of(FIRST_DAY) + dice.between(30, 600)),
            "c_first_sales_date_sk": dice.maybe(key_of(FIRST_DAY) + dice.between(0, 500)),
            "c_salutation": dice.maybe(dice.one(["Mr.", "Mrs.", "Dr."])),
            "c_first_name": dice.maybe(first),
            "c_last_name": dice.maybe(last),
            "c_preferred_cust_flag": dice.maybe("Y" if dice.chance(0.6) else "N"),
            "c_birth_day": dice.maybe(dice.between(1, 28)),
            "c_birth_month": dice.maybe(dice.between(1, 12)),
            "c_birth_year": dice.maybe(dice.between(1930, 1990)),
            "c_birth_country": dice.maybe(dice.early(["UNITED STATES", "TOGO", "GREECE", "CHILE"])),
            "c_login": None,
            "c_email_address": dice.maybe(f"{first}.{last}.{key}@example.org"),
            "c_last_review_date_sk": dice.maybe(key_of(FIRST_DAY) + dice.between(0, 900)),
        }

    def customer_address(self, key: int) -> Named:
        return {
            "ca_address_sk": key,
            "ca_address_id": f"ADDR{key:012d}",
            **self._address("ca"),
            "ca_location_type": self._dice.maybe(self._dice.one(_LOCATIONS)),
        }

    def customer_demographics(self, key: int) -> Named:
        dice = self._dice
        return {
            "cd_demo_sk": key,
            "cd_gender": "M" if dice.chance(0.55) else "F",
            "cd_marital_status": dice.early(["M", "S", "W", "D", "U"]),
            "cd_education_status": dice.early(_EDUCATIONS),
            "cd_purchase_estimate": 500 * dice.between(1, 6),
            "cd_credit_rating": dice.one(["Good", "Low Risk", "High Risk", "Unknown"]),
            "cd_dep_count": dice.between(0, 4),
            "cd_dep_employed_count": dice.between(0, 3),
            "cd_dep_college_count": dice.between(0, 2),
        }

    def household_demographics(self, key: int, bands: int) -> Named:
        dice = self._dice
        return {
            "hd_demo_sk": key,
            "hd_income_band_sk": dice.between(1, bands),
            "hd_buy_potential": dice.early(_POTENTIALS),
            "hd_dep_count": dice.early([4, 3, 2, 6, 1, 0, 9]),
            "hd_vehicle_count": dice.early([3, 1, 2, 4, 0, -1]),
        }

    def store(self, key: int) -> Named:
        dice = self._dice
        return {
            "s_store_sk": key,
            "s_store_id": f"STORE{key // 2:04d}",
            "s_rec_start_date": dt.date(1997, 3, 13),
            "s_rec_end_date": None,
            "s_closed_date_sk": None,
            "s_store_name": _STORES[key % len(_STORES)],
            "s_number_employees": dice.between(190, 300),
            "s_floor_space": dice.between(5000000, 9000000),
            "s_hours": "8AM-8PM",
            "s_manager": "Sam Hill",
            "s_market_id": dice.early([8, 5, 10]),
            "s_geography_class": "Unknown",
            "s_market_desc": "far away",
            "s_market_manager": "Dean Low",
            "s_division_id": 1,
            "s_division_name": "Unknown",
            "s_company_id": 1,
            "s_company_name": "Unknown",
            **self._address("s", STATES[:4]),
            "s_gmt_offset": Decimal("-5.00"),
            "s_tax_precentage": money(dice.between(0, 11)),
        }

    def warehouse(self, key: int) -> Named:
        name = ["Conventional childr", "Important issues liv", "Doors canno", None][key % 4]
        return {
            "w_warehouse_sk": key,
            "w_warehouse_id": f"WARE{key:04d}",
            "w_warehouse_name": name,
            "w_warehouse_sq_ft": self._dice.maybe(self._dice.between(50000, 990000)),
            **self._address("w"),
        }

    def promotion(self, key: int, items: int) -> Named:
        dice = self._dice
        flags = {f"p_channel_{name}": dice.maybe("Y" if dice.chance(0.4) else "N", 0.02) for name in _CHANNELS}
        return {
            "p_promo_sk": key,
            "p_promo_id": f"PROMO{key:04d}",
            "p_start_date_sk": key_of(FIRST_DAY),
            "p_end_date_sk": key_of(LAST_DAY),
            "p_item_sk": dice.between(1, items),
            "p_cost": Decimal("1000.00"),
            "p_response_target": 1,
            "p_promo_name": dice.one(["anti", "bar", "ese"]),
            **flags,
            "p_channel_details": "Words",
            "p_purpose": "Unknown",
            "p_discount_active": "N",
        }

    def call_center(self, key: int) -> Named:
        dice = self._dice
        return {
            "cc_call_center_sk": key,
            "cc_call_center_id": f"CALL{key:04d}",
            "cc_rec_start_date": dt.date(1998, 1, 1),
            "cc_rec_end_date": None,
            "cc_closed_date_sk": None,
            "cc_open_date_sk": key_of(FIRST_DAY),
            "cc_name": ["NY Metro", "Mid Atlantic", "North Midwest"][key % 3],
            "cc_class": dice.one(["small", "medium", "large"]),
            "cc_employees": dice.between(100, 600),
            "cc_sq_ft": dice.between(1000, 9000),
            "cc_hours": "8AM-4PM",
            "cc_manager": dice.one(["Bob Belcher", "Felipe Perkins"]),
            "cc_mkt_id": dice.between(1, 6),
            "cc_mkt_class": "plain",
            "cc_mkt_desc": "words",
            "cc_market_manager": "Julius Tran",
            "cc_division": 1,
            "cc_division_name": "pri",
            "cc_company": 1,
            "cc_company_name": "pri",
            **self._address("cc"),
            "cc_county": _COUNTIES[key % 2],
            "cc_tax_percentage": money(dice.between(0, 11)),
        }

    def catalog_page(self, key: int) -> Named:
        return {
            "cp_catalog_page_sk": key,
            "cp_catalog_page_id": f"PAGE{key // 2:04d}",
            "cp_start_date_sk": key_of(FIRST_DAY),
            "cp_end_date_sk": key_of(LAST_DAY),
            "cp_department": "DEPARTMENT",
            "cp_catalog_number": 1,
            "cp_catalog_page_number": key,
            "cp_description": self._dice.maybe("words", 0.1),
            "cp_type": self._dice.one(["bi-annual", "quarterly", "monthly"]),
        }

    def web_page(self, key: int) -> Named:
        dice = self._dice
        return {
            "wp_web_page_sk": key,
            "wp_web_page_id": f"WEBP{key:04d}",
            "wp_rec_start_date": dt.date(1997, 9, 3),
            "wp_rec_end_date": None,
            "wp_creation_date_sk": key_of(FIRST_DAY),
            "wp_access_date_sk": key_of(FIRST_DAY) + dice.between(0, 90),
            "wp_autogen_flag": "N",
            "wp_customer_sk": None,
            "wp_url": "http://www.example.org",
            "wp_type": dice.one(["order", "general", "welcome"]),
            "wp_char_count": dice.early([5050, 5100, 4980, 3000]),
            "wp_link_count": dice.between(2, 25),
            "wp_image_count": dice.between(1, 7),
            "wp_max_ad_count": dice.between(0, 4),
        }

    def web_site(self, key: int) -> Named:
        dice = self._dice
        return {
            "web_site_sk": key,
            "web_site_id": f"SITE{key // 2:04d}",
            "web_rec_start_date": dt.date(1997, 8, 16),
            "web_rec_end_date": None,
            "web_name": f"site_{key % 3}",
            "web_open_date_sk": key_of(FIRST_DAY),
            "web_close_date_sk": None,
            "web_class": "Unknown",
            "web_manager": "Ron Chapman",
            "web_mkt_id": dice.between(1, 6),
            "web_mkt_class": "plain",
            "web_mkt_desc": "words",
            "web_market_manager": "Albert Lee",
            "web_company_id": key % 2 + 1,
            "web_company_name": ["pri", "able"][key % 2],
            **self._address("web"),
            "web_tax_percentage": money(dice.between(0, 11)),
        }

    def _address(self, prefix: str, states: list[str] = STATES) -> Named:
        dice = self._dice
        parts = {
            "street_number": str(dice.between(1, 999)),
            "street_name": dice.maybe(dice.one(["Main", "Oak", "Park 1st", "Lake"])),
            "street_type": dice.one(["Street", "Avenue", "Blvd", "Ct."]),
            "suite_number": f"Suite {dice.between(1, 40)}",
            "city": dice.maybe(dice.early(_CITIES), 0.02),
            "county": dice.maybe(dice.early(_COUNTIES), 0.02),
            "state": dice.maybe(dice.early(states), 0.02),
            "zip": dice.maybe(dice.early(ZIPS), 0.02),
            "country": "United States",
            "gmt_offset": Decimal("-5.00") if dice.chance(0.7) else Decimal("-6.00"),
        }
        return {f"{prefix}_{name}": value for name, value in parts.items()}


_CHANNELS = ["dmail", "email", "catalog", "tv", "radio", "press", "event", "demo"]
