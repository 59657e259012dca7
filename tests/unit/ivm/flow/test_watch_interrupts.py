"""Readers are woken also if what tells them was interrupted and is repeated."""

from __future__ import annotations

import asyncio

import pytest

from weirflow import IncrementalFlow


def test_a_reader_in_an_event_loop_is_woken_by_the_repetition(monkeypatch):
    flow = IncrementalFlow()
    flow.register_source("numbers", "n BIGINT")
    flow.register_view("all_numbers", "SELECT n FROM numbers")
    watch = flow.watch_output("all_numbers")

    async def read():
        loop = asyncio.get_running_loop()
        wake, failures = loop.call_soon_threadsafe, [RecursionError("no room")]

        def call_soon_threadsafe(*args):
            if failures:
                raise failures.pop()
            return wake(*args)

        reader = asyncio.ensure_future(anext(aiter(watch)))
        await asyncio.sleep(0.01)
        monkeypatch.setattr(loop, "call_soon_threadsafe", call_soon_threadsafe)
        with pytest.raises(RecursionError):
            watch.put(1, "delta")
        watch.put(1, "delta")
        return await asyncio.wait_for(reader, 10)

    assert asyncio.run(read())[0] == 1
