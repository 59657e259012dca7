import io
import re
import threading
from types import SimpleNamespace

import pytest
from rich.console import Console
from support.processes import wait_until

from weirflow.observability import progress
from weirflow.observability.progress import BarDisplay, SilentDisplay, make_display

DEADLINE = 10.0


def terminal():
    return Console(file=io.StringIO(), force_terminal=True, width=100, legacy_windows=False)


def operation(seconds=5.0, done=3, total=10, name="count orders"):
    return SimpleNamespace(id=name, description=name, seconds=seconds, progress=SimpleNamespace(done=done, total=total))


def text(console):
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", console.file.getvalue())


@pytest.fixture
def display():
    shown = BarDisplay(terminal())
    yield shown
    shown.close()


def test_a_long_operation_has_a_bar_that_goes_with_it(display):
    console = display._console
    running = operation()
    display.begin(running)
    wait_until(lambda: "3/10 tasks" in text(console), DEADLINE, "drawn")
    assert "count orders" in text(console)
    running.progress.done = 8
    wait_until(lambda: "8/10 tasks" in text(console), DEADLINE, "drawn again")
    display.end(running)
    # The last thing done is to erase the line and show the cursor.
    wait_until(lambda: console.file.getvalue().endswith("\x1b[1A\x1b[2K"), DEADLINE, "erased")


def test_a_short_operation_shows_nothing(display):
    display.begin(operation(seconds=0.3))
    threading.Event().wait(3 * progress._REFRESH_SECONDS)
    assert text(display._console) == ""


def test_several_operations_have_a_bar_each(display):
    console = display._console
    first, second = operation(name="first"), operation(name="second", done=1)
    display.begin(first)
    display.begin(second)
    wait_until(lambda: "first" in text(console) and "second" in text(console), DEADLINE, "drawn")
    display.end(first)
    length = len(text(console))
    wait_until(lambda: text(console)[length:].count("second") >= 2, DEADLINE, "drawn again")
    assert "first" not in text(console)[length:].rpartition("second")[0].partition("second")[2]
    display.end(second)


def test_the_number_of_tasks_may_be_unknown(display):
    console = display._console
    display.begin(operation(done=0, total=0))
    wait_until(lambda: "count orders" in text(console), DEADLINE, "drawn")
    assert "None" not in text(console)


def test_brackets_in_a_query_are_shown_as_they_are(display):
    query = "SELECT a[0], '[/bold]' FROM [red]"
    display.begin(operation(name=query))
    wait_until(lambda: query in text(display._console), DEADLINE, "drawn")
    assert display._thread.is_alive()


def test_a_spark_that_is_gone_does_not_end_the_bar(display):
    class Lost:
        id = description = "lost"
        seconds = 5.0

        @property
        def progress(self):
            raise ConnectionRefusedError

    display.begin(Lost())
    wait_until(lambda: "lost" in text(display._console), DEADLINE, "drawn")
    assert display._thread.is_alive()


def test_close_leaves_no_thread_and_no_bar():
    display = BarDisplay(terminal())
    display.begin(operation())
    wait_until(lambda: "tasks" in text(display._console), DEADLINE, "drawn")
    display.close()
    assert [thread for thread in threading.enumerate() if thread.name == "weirflow-progress"] == []
    assert display._console.file.getvalue().endswith("\x1b[1A\x1b[2K")


def test_close_without_any_operation():
    BarDisplay(terminal()).close()


def test_auto_is_silent_where_nobody_looks(monkeypatch):
    monkeypatch.delenv("FORCE_COLOR", raising=False)
    monkeypatch.setattr("sys.stderr", io.StringIO())
    assert isinstance(make_display("auto"), SilentDisplay)
    assert isinstance(make_display("on"), BarDisplay)
    assert isinstance(make_display("off"), SilentDisplay)


def test_auto_draws_on_a_terminal(monkeypatch):
    stream = io.StringIO()
    monkeypatch.setattr(stream, "isatty", lambda: True, raising=False)
    monkeypatch.setattr("sys.stderr", stream)
    monkeypatch.setenv("TERM", "xterm")
    assert isinstance(make_display("auto"), BarDisplay)
