"""The loops of the kernel, compiled by numba: what NumPy does in several passes, done in one.

Every function has a twin in NumPy that returns the same bits; tests compare them. Importing this module compiles them,
or loads them from numba's cache.
"""

from weirflow.ivm.compiled.hashes import hash_bytes, hash_integers
from weirflow.ivm.compiled.keys import equal_bytes, equal_integers, find_ranges
from weirflow.ivm.compiled.orders import code_order, in_order
from weirflow.ivm.compiled.ranks import find_words, sums_before
from weirflow.ivm.compiled.tables import (
    add_found,
    equal_pairs,
    find_rows,
    gather,
    group_table,
    hash_table,
    keyed_codes,
    merge_parts,
    overdrawn,
)
from weirflow.ivm.compiled.totals import add_rows, double_totals, encode_doubles, extremes, sum_groups

__all__ = [
    "add_found",
    "add_rows",
    "code_order",
    "double_totals",
    "encode_doubles",
    "equal_bytes",
    "equal_integers",
    "equal_pairs",
    "extremes",
    "find_ranges",
    "find_rows",
    "find_words",
    "gather",
    "group_table",
    "hash_bytes",
    "hash_integers",
    "hash_table",
    "in_order",
    "keyed_codes",
    "merge_parts",
    "overdrawn",
    "sum_groups",
    "sums_before",
]
