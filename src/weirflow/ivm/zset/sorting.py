"""Sorting rows by their codes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from weirflow.ivm import compiled

if TYPE_CHECKING:
    from weirflow.ivm.zset.batch import Int64s, UInt64s

_CHUNK = 1 << 16


def sorted_codes(codes: UInt64s) -> tuple[Int64s, UInt64s, Int64s]:
    """The stable order that sorts codes, the codes in it, and the places in it whose code is that of the one before."""
    order = sort_order(codes)
    if compiled.kernels is not None:
        return order, *compiled.kernels.in_order(codes, order)
    ordered = codes[order]
    return order, ordered, np.flatnonzero(ordered[1:] == ordered[:-1]) + 1


def sort_order(codes: UInt64s) -> Int64s:
    """The stable order that sorts the codes; fastest for codes that are spread evenly over 64 bits."""
    if compiled.kernels is not None:
        fast: Int64s = compiled.kernels.code_order(codes)
        return fast
    if len(codes) <= _CHUNK:
        return np.argsort(codes, kind="stable")
    # Radix sort by the upper 16 bits, then chunks that fit the processor's cache by the next 16 bits, then what is
    # still equal by comparison: hashes are spread evenly, so that is little unless one key has many rows.
    bucket = (codes >> np.uint64(48)).astype(np.uint16)
    order = np.argsort(bucket, kind="stable")
    edges = np.cumsum(np.bincount(bucket, minlength=1 << 16))
    cuts = edges[np.unique(edges.searchsorted(np.arange(_CHUNK, len(codes) + _CHUNK, _CHUNK)).clip(max=(1 << 16) - 1))]
    start = 0
    for cut in cuts.tolist():
        part = order[start:cut]
        order[start:cut] = part[_chunk_order(codes[part])]
        start = cut
    return order


def _chunk_order(codes: UInt64s) -> Int64s:
    upper = (codes >> np.uint64(32)).astype(np.uint32)
    order = np.argsort(upper.astype(np.uint16), kind="stable")
    order = order[np.argsort((upper >> np.uint32(16)).astype(np.uint16)[order], kind="stable")]
    codes = codes[order]
    if (codes[1:] >= codes[:-1]).all():
        return order
    upper = upper[order]
    tied = np.zeros(len(codes), np.bool_)
    np.equal(upper[1:], upper[:-1], out=tied[1:])
    tied[:-1] |= tied[1:]
    rows = np.flatnonzero(tied)
    order[rows] = order[rows][np.argsort(codes[rows], kind="stable")]
    return order
