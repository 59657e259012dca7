"""Names of time zones as Spark reads them, by Java's ``ZoneId``: offsets, short names, and those of the tz database."""

from __future__ import annotations

import re
from typing import Final

SHORT_IDS: Final = {
    "ACT": "Australia/Darwin",
    "AET": "Australia/Sydney",
    "AGT": "America/Argentina/Buenos_Aires",
    "ART": "Africa/Cairo",
    "AST": "America/Anchorage",
    "BET": "America/Sao_Paulo",
    "BST": "Asia/Dhaka",
    "CAT": "Africa/Harare",
    "CNT": "America/St_Johns",
    "CST": "America/Chicago",
    "CTT": "Asia/Shanghai",
    "EAT": "Africa/Addis_Ababa",
    "ECT": "Europe/Paris",
    "EST": "-05:00",
    "HST": "-10:00",
    "IET": "America/Indiana/Indianapolis",
    "IST": "Asia/Kolkata",
    "JST": "Asia/Tokyo",
    "MIT": "Pacific/Apia",
    "MST": "-07:00",
    "NET": "Asia/Yerevan",
    "NST": "Pacific/Auckland",
    "PLT": "Asia/Karachi",
    "PNT": "America/Phoenix",
    "PRT": "America/Puerto_Rico",
    "PST": "America/Los_Angeles",
    "SST": "Pacific/Guadalcanal",
    "VST": "Asia/Ho_Chi_Minh",
    "SystemV/AST4": "-04:00",
    "SystemV/EST5": "-05:00",
    "SystemV/CST6": "-06:00",
    "SystemV/MST7": "-07:00",
    "SystemV/PST8": "-08:00",
    "SystemV/YST9": "-09:00",
    "SystemV/HST10": "-10:00",
}
"""What Java's ``ZoneId.SHORT_IDS`` stands for, and old names that no tz database has any more."""
_NOT_IN_JAVA = re.compile("ROC|Factory|localtime|posixrules|(?:posix|right)/.*")
_REGION = re.compile(r"[A-Za-z][A-Za-z0-9~/._+-]+")
_UTC = frozenset({"Z", "UTC", "GMT", "UT"})
_SINGLE_HOUR = re.compile(r"([+-])(\d):", re.ASCII)
_SINGLE_MINUTE = re.compile(r"([+-])(\d\d):(\d)$", re.ASCII)
_OFFSET = re.compile(r"(?:UTC|GMT|UT)?([+-])(?:(\d)|(\d\d)(?::(\d\d)(?::(\d\d))?|(\d\d)(\d\d)?)?)", re.ASCII)
_MOST_SECONDS = 18 * 3600
_LAST = 59


def fixed_offset(zone: str) -> int | None:
    """Seconds ahead of UTC, of a zone that is written as an offset; None for what is none.

    >>> fixed_offset("UTC+1:3"), fixed_offset("-0530"), fixed_offset("+18:01"), fixed_offset("UTC0")
    (3780, -19800, None, None)
    """
    if zone in _UTC:
        return 0
    spelled = _SINGLE_MINUTE.sub(r"\1\2:0\3", _SINGLE_HOUR.sub(r"\g<1>0\2:", zone, count=1), count=1)
    found = _OFFSET.fullmatch(spelled)
    if found is None:
        return None
    sign, hour, hours, minutes, seconds, short_minutes, short_seconds = found.groups()
    parts = [int(part or 0) for part in (hour or hours, minutes or short_minutes, seconds or short_seconds)]
    total = parts[0] * 3600 + parts[1] * 60 + parts[2]
    if parts[1] > _LAST or parts[2] > _LAST or total > _MOST_SECONDS:
        return None
    return -total if sign == "-" else total


def may_be_region(zone: str) -> bool:
    """Whether a name is spelled as Java's regions are, and is none of those that only this machine has.

    >>> may_be_region("Europe/Paris"), may_be_region("ROC"), may_be_region("so long"), may_be_region("z")
    (True, False, False, False)
    """
    return _REGION.fullmatch(zone) is not None and _NOT_IN_JAVA.fullmatch(zone) is None
