"""A listener has a thread of its own; what it does harms nobody."""

import threading

from weirflow.streaming.query.listeners import ListenerThread, QueryIdle, QueryStarted, StreamingQueryListener
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
