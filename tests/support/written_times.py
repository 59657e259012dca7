"""Texts of times, dates and numbers as nobody should write them, in JSON documents and alone."""
# ruff: noqa: E501 - tables of texts read better in long lines

from __future__ import annotations

import json

import pyarrow as pa

ZONES = [
    "EST", "PST", "MST", "HST", "IST", "BST", "ACT", "VST", "ROC", "CET", "WET", "EST5EDT", "GMT+0", "GMT-0", "GMT0", "UTC0", "Etc/GMT+5", "SystemV/EST5", "posixrules", "localtime", "Factory",
    "z", "Z", "utc", "UT", "Foo/Bar", "Europe", "Europe/Berlin", "europe/berlin", "Asia/Kolkata GMT", "posix/Europe/Paris", "right/Europe/Paris", "Europe/../Europe/Paris", "leapseconds", "+1", "+1:3", "+130", "+01:3",
    "+0130", "+01:30:15", "-18", "+18:01", "-00:00", "UT+1:30", "UTC-2", "GMT+", "GMTGMT", "GMT+02:00", "  EST ", " \u00a0EST", "EST\x7f", "EDT", "CEST", "Universal", "PRC", "NZ", "+05:30 IST", "−05:00", "+٠١:٠٠", ".5", ".EST", ".123456789EST",
]  # fmt: skip
TIMES = [
    "", " ", "T", " T12", "12:", "25:00", "12:60", "1:2:60", "12:30:45Foo", "T1:2 Z", "+12:30", "-12:30", "12:30x", "12", "2024", "2024-", "2024-7", "2024-07-", "2024-07-01T", "2024-07-01 10", "2024-07-01 10:", "2024-07-01 10:0",
    "2024-07-01 24:00:00", "2024-07-01  10:00:00", "2024-07-01t10:00:00", "2024-07-01X10:00:00", "2024-02-30", "2024-02-30 10:00:00", "2023-02-29", "0000-00-00", "0000-01-01", "0001-01-01", "1582-10-10", "1582-10-10 10:00:00", "-0044-03-15",
    "-0044-03-15 10:00:00 Europe/Rome", "1883-11-18 12:03:57", "1883-11-18 12:03:58 America/New_York", "1900-01-01 00:00:00 EST", "1900-01-01 00:00:00 MST", "9999-12-31 23:59:59.9999999", "10000-01-01", "+10000-01-01 00:00:00Z", "999999-01-01", "1234567-01-01", "5881580-07-11", "5881580-07-12", "-5877641-06-23",
    "2024-03-10 02:30:00", "2024-03-10 02:30:00 PST", "2024-11-03 01:30:00 CST", "2024-04-07 01:45:00 Australia/Lord_Howe", "2100-03-28 02:30:00 ECT", "2600-07-01 10:00:00 PST", "GMT2024-01-01GMT 10:00:00", "2024-07-01T10:00:00GMTZ", "2024-07-01GMT",
    "+294247-01-10 04:00:54.775807Z", "+294247-01-10 04:00:54.775808Z", "+294247-01-10 04:00:54.775807", "+294247-01-09 23:00:54.775807", "+294247-01-10 09:30:54.775807 IST", "-290308-12-21 19:59:05.224192Z", "-290308-12-21 19:59:05.224191Z", "-290308-12-21 14:59:05.224192 EST",
    "today", "now", "epoch", "yesterday", "null", "NaN", "Infinity", "-INF", "+Infinity", "1e3", "1E400", "-0", "007", "0x10", "1_000", "1,000.5", "1.", ".5", "+5", "--5", "٣", "12345678901234567890123456789012345678", "99999999999999999999.5", "true", "TRUE", "t", "1709251199",
]  # fmt: skip
TEXTS = [
    None,
    *(f"2024-07-01 10:00:00 {zone}" for zone in ZONES),
    *(f"2024-07-01 10:00:00{zone}" for zone in ZONES[::7]),
    *TIMES,
]
_BARE = [
    "01", "-01", "1.50", "1e3", "1E-400", "NaN", "-NaN", "Infinity", "+Infinity", "-Infinity", "INF", "+1", "0x1", "1_0", ".5", "1.", "-", "true", "True", "nul", "null", "9223372036854775807", "9223372036854775808", "1709251199.5", "-99999999999999",
    "1" * 39, "1" * 1001, "[]", "{}", "[[1]]", '{"a": 1, "a": "x"}', "'x'", "/* */ 1",
]  # fmt: skip
DOCUMENTS = [
    *(json.dumps({"a": text, "b": [text, None]}, ensure_ascii=False) for text in TEXTS),
    *(f'{{"a": {bare}, "b": [{bare}]}}' for bare in _BARE),
    '{"a": "2024-01-01", "a": "x"}', '{"a": "x", "a": "2024-01-01"}', '{"a": "2024-01-01 00:00:00 PST", "a": null}',
    '{"a": "x\\ud83dy", "b": ["\\udc00", "\\ude00\\ud83d"]}', '{"a": {"b": "\\ud83d", "\\udc00": 1}}', '{"\\ud83d": 1, "a": 2}', '"\\ud83d"',
    *(f"{'[' * deep}{']' * deep}" for deep in (400, 1000, 1001)), *(f'{{"a": {"[" * deep}1{"]" * deep}}}' for deep in (999, 1000)), '{"a":' * 999 + "{}" + "}" * 999, '{"a":' * 1001 + "1" + "}" * 1001,
    '{"a": ["😀", {"é😀": ["x😀"]}], "b": ["😀"]}', '{"a": [[{"b": "😀"}]], "b": [{"😀": "\\ud83d\\ude00"}, "é"]}', '{"a": -INF, "b": [+INF, +Infinity, 1]}', '{"a": +Infinityx}', '{"a": +INFINITY}',
    '{"b": ' + "[" * 1001 + '], "a": "2024-01-01"}', '{"a": ' + str([[]] * 1001) + "}",
]  # fmt: skip
"""Each with a text as a field and in an array, then what is no text, and what is no document."""


def rows() -> pa.Table:
    """A document and a text in each row."""
    texts = [*TEXTS, *(None for _ in range(len(DOCUMENTS) - len(TEXTS)))]
    numbers = pa.array(range(len(DOCUMENTS)), pa.int64())
    return pa.table([numbers, pa.array(DOCUMENTS, pa.string()), pa.array(texts, pa.string())], names=["id", "j", "s"])
