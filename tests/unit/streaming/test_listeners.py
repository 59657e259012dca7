"""A listener has a thread of its own; what it does harms nobody."""

import threading

import pytest

from weirflow.errors import ConfigError
from weirflow.streaming.query.listeners import (
    ListenerThread,
    QueryIdle,
    QueryStarted,
    StreamingQueryListener,
    require_listening,
)
from weirflow.streaming.query.progress import QueryProgress


class Blocking(StreamingQueryListener):
    def __init__(self):
        self.entered = threading.Event()
        self.released = threading.Event()
        self.told = []

    def on_started(self, event):
        self.told.append(event)
        self.entered.set()
        self.released.wait()

    def on_idle(self, event):
        self.told.append(event)


def test_what_waits_for_a_blocked_listener_is_bounded_but_keeps_starts():
    listener = Blocking()
    thread = ListenerThread(listener)
    thread.put(QueryStarted("q", "r", None))
    assert listener.entered.wait(10)
    for number in range(1500):
        thread.put(QueryIdle("q", str(number), None))
    thread.put(QueryStarted("q", "last", None))
    assert thread.dropped == 500
    listener.released.set()
    thread.close()
    assert [event.run_id for event in listener.told] == ["r", *map(str, range(1000)), "last"]


def test_a_blocked_listener_does_not_hold_up_the_end():
    listener = Blocking()
    thread = ListenerThread(listener)
    thread.put(QueryStarted("q", "r", None))
    assert listener.entered.wait(10)
    thread.close()
    listener.released.set()


def test_progress_is_read_from_sparks_json():
    text = """{"id": "q", "runId": "r", "name": null, "timestamp": "2024-01-01T00:00:00.000Z", "batchId": 3,
        "sources": [{"numInputRows": 3, "inputRowsPerSecond": "NaN", "processedRowsPerSecond": 12.5},
            {"numInputRows": 2, "processedRowsPerSecond": 0.1}],
        "durationMs": {"triggerExecution": 70}, "eventTime": {"watermark": "1970-01-01T00:00:00.000Z"},
        "stateOperators": [{"numRowsTotal": 2, "memoryUsedBytes": 10, "numRowsDroppedByWatermark": 1}],
        "sink": {"numOutputRows": -1}}"""
    progress = QueryProgress.from_json(text)
    assert (progress.batch, progress.input_rows, progress.output_rows, progress.watermark) == (3, 5, None, None)
    assert (progress.state_rows, progress.state_bytes, progress.late_rows, progress.duration_ms) == (2, 10, 1, 70)
    assert progress.input_rows_per_second == 0.0
    assert str(progress) == "batch 3, 5 rows in, 1 dropped as late, 13 rows/s, 2 in state"


class Misspelt(StreamingQueryListener):
    def on_query_start(self, event):
        raise AssertionError(event)


class Silent(StreamingQueryListener):
    pass


class Inherited(Blocking):
    pass


def test_a_listener_that_would_never_be_told_anything_is_refused():
    with pytest.raises(ConfigError, match="The listener Misspelt has none of the methods") as caught:
        require_listening(Misspelt())
    assert caught.value.hint.startswith("did you mean 'on_query_started'")
    with pytest.raises(ConfigError) as caught:
        require_listening(Silent())
    assert caught.value.hint == "override one of on_started, on_progress, on_idle, on_terminated"
    require_listening(Inherited())


def test_both_names_of_a_method_are_called_once():
    class Short(StreamingQueryListener):
        def on_started(self, event):
            told.append(("short", event.query_id))

    class Long(StreamingQueryListener):
        def on_query_started(self, event):
            told.append(("long", event.query_id))

    class Both(Short, Long):
        pass

    told = []
    for kind in (Short, Long, Both):
        kind().on_started(QueryStarted(kind.__name__, "r", None))
    assert told == [("short", "Short"), ("long", "Long"), ("short", "Both")]
