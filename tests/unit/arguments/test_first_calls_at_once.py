"""Many threads call functions for the first time at once: what their signatures say is read for each all the same."""

from __future__ import annotations

import ast
import threading
import time
from concurrent.futures import ThreadPoolExecutor

from weirflow.arguments import hints
from weirflow.ivm.flow.flow import Flow


def test_no_two_threads_make_a_syntax_tree_at_a_time(monkeypatch):
    """Python 3.11 counts their depths in one place, and raises SystemError when they end in another order."""
    parse, under_way, most = ast.parse, threading.Semaphore(), []

    def parse_slowly(source):
        alone = under_way.acquire(blocking=False)
        most.append(alone)
        try:
            time.sleep(0.05)
            return parse(source)
        finally:
            if alone:
                under_way.release()

    monkeypatch.setattr(hints.ast, "parse", parse_slowly)
    functions = [Flow.tick, Flow.watch_output, Flow.snapshot, Flow.sql]
    start = threading.Barrier(len(functions))

    def read(function):
        hints._for_type_checkers.cache_clear()
        start.wait(10)
        return hints.parameter_types(function)

    with ThreadPoolExecutor(len(functions)) as threads:
        found = list(threads.map(read, functions))
    assert [unknown for _, unknown in found] == [()] * len(functions)
    assert most
    assert all(most)
