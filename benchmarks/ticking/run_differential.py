"""Differential dataflow: ``rust/differential``, maintained at every tick."""

from __future__ import annotations

from functools import partial

from ticking.child import serve
from ticking.program import Program

if __name__ == "__main__":
    serve(partial(Program, "differential"))
