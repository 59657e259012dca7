"""The names of months, days and quarters that Spark writes and reads, in short and in full."""

from __future__ import annotations

_FULL_MONTHS = [
    *("January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
]
_FULL_DAYS = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"]

MONTHS = ([name[:3] for name in _FULL_MONTHS], _FULL_MONTHS)
DAYS = ([name[:3] for name in _FULL_DAYS], _FULL_DAYS)
QUARTERS = (["Q1", "Q2", "Q3", "Q4"], ["1st quarter", "2nd quarter", "3rd quarter", "4th quarter"])
