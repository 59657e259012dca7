"""The loops of the kernel, compiled by numba: what NumPy does in several passes, done in one.

Every function has a twin in NumPy that returns the same bits; tests compare them. Importing this module compiles them,
or loads them from numba's cache.
"""

from weirflow.ivm.compiled.firsts import first_values
from weirflow.ivm.compiled.groups import replace_groups
from weirflow.ivm.compiled.hashes import hash_bytes, hash_floats, hash_integers
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
    merge_sorted,
    overdrawn,
)
from weirflow.ivm.compiled.totals import add_rows, double_totals, encode_doubles, extremes, sum_groups
from weirflow.ivm.compiled.vectors import pair_sums

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
    "first_values",
    "gather",
    "group_table",
    "hash_bytes",
    "hash_floats",
    "hash_integers",
    "hash_table",
    "in_order",
    "keyed_codes",
    "merge_parts",
    "merge_sorted",
    "overdrawn",
    "pair_sums",
    "replace_groups",
    "sum_groups",
    "sums_before",
]
