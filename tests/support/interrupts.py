"""Exceptions thrown into a living process: at every point in turn, after a while, by a thread, near the stack's end."""

from __future__ import annotations

import ctypes
import dis
import functools
import os
import random
import signal
import sys
import threading
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import weirflow

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import CodeType, FrameType

Result = TypeVar("Result")

_OURS = str(Path(weirflow.__file__).parent) + os.sep
_SHORT, _LONG = 0.004, 60.0
_NEVER = 1 << 62
# What was not entered in Python, or by way of a class.
_LOOKS_BEHIND = (None, "__init__", "__new__")
_CALLS = {"CALL", "CALL_FUNCTION_EX", "CALL_KW"}


class Thrown:
    """What ``raise_at`` did.

    Attributes:
        points: how many points were passed, the one included where the exception was raised.
        where: file and line where the exception was raised; None if the code has fewer points.
    """

    def __init__(self) -> None:
        self.points = 0
        self.where: str | None = None


@contextmanager
def raise_at(n: int, exception: type[BaseException], files: str | tuple[str, ...] = "") -> Iterator[Thrown]:
    """Raise an exception at the n-th point (from 1) that this thread passes in Weirflow's files; it is not caught here.

    The points are those where the interpreter looks for signals and for exceptions of other threads: where a function
    begins, where a call has returned that is not one of Python's, where a loop goes back. In between no signal can
    come, so that ``with lock:`` is safe here as it is in real life.

    Args:
        n: the point; a large number counts the points alone.
        exception: what is raised, once.
        files: only files and folders whose path inside the package begins with one of these, such as ``"state/"``.
    """
    thrown = Thrown()
    wanted = tuple(_OURS + one for one in ((files,) if isinstance(files, str) else files))

    def passed(frame: FrameType) -> None:
        thrown.points += 1
        if thrown.points == n:
            thrown.where = f"{frame.f_code.co_filename.removeprefix(_OURS)}:{frame.f_lineno}"
            raise exception(f"thrown at {thrown.where}, point {n}")

    entered: dict[FrameType, str] = {}
    """Of frames that have called a function of Python, its name: there the interpreter does not look."""

    def in_frame(frame: FrameType, event: str, _: Any) -> Any:
        if event == "opcode":
            called = entered.pop(frame, None)
            if frame.f_lasti in _points(frame.f_code)[0] and called in _LOOKS_BEHIND:
                passed(frame)
        return in_frame

    def on_call(frame: FrameType, event: str, _: Any) -> Any:
        if event == "call" and frame.f_back is not None and frame.f_back.f_trace is in_frame:
            entered.setdefault(frame.f_back, frame.f_code.co_name)
        if event != "call" or not frame.f_code.co_filename.startswith(wanted):
            return None
        frame.f_trace_lines, frame.f_trace_opcodes = False, True
        if frame.f_lasti <= _first(frame.f_code):  # not a generator that goes on
            passed(frame)
        return in_frame

    def on_return(frame: FrameType, event: str, _: Any) -> None:
        code = frame.f_code
        if event == "c_return":
            entered.pop(frame, None)
        if event == "c_return" and frame.f_lasti in _points(code)[1] and code.co_filename.startswith(wanted):
            passed(frame)

    tracing, profiling, unraisable = sys.gettrace(), sys.getprofile(), sys.unraisablehook
    # Raised in a finalizer it is reported there and goes no further, as a signal does.
    sys.unraisablehook = lambda one: None if isinstance(one.exc_value, exception) else unraisable(one)
    sys.setprofile(on_return)
    sys.settrace(on_call)
    try:
        yield thrown
    finally:
        sys.settrace(tracing)
        sys.setprofile(profiling)
        sys.unraisablehook = unraisable


def some_points(work: Callable[[], object], most: int, files: str | tuple[str, ...] = "") -> list[int]:
    """So many of the points that a piece of work passes, or all if they are fewer; one more is behind the last."""
    with raise_at(_NEVER, KeyboardInterrupt, files) as thrown:
        work()
    points = range(1, thrown.points + 2)
    return list(points) if len(points) <= most else sorted(random.Random(most).sample(points, most))


@contextmanager
def interrupt_after(seconds: float) -> Iterator[None]:
    """Send SIGINT to this process after a while, unless the block has ended; for the main thread.

    It raises ``KeyboardInterrupt`` in the block, once at most, and never behind it.
    """
    inside, ended = [True], threading.Event()

    def interrupted(number: int, frame: FrameType | None) -> None:
        if inside[0]:
            inside[0] = False
            signal.default_int_handler(number, frame)

    def send() -> None:
        if not ended.wait(seconds):
            os.kill(os.getpid(), signal.SIGINT)

    before, unraisable = signal.signal(signal.SIGINT, interrupted), sys.unraisablehook
    # Raised in a finalizer it is reported there and goes no further.
    sys.unraisablehook = lambda one: None if isinstance(one.exc_value, KeyboardInterrupt) else unraisable(one)
    sender = threading.Thread(target=send, daemon=True)
    sender.start()
    try:
        yield
    finally:
        inside[0] = False
        ended.set()
        sender.join()
        signal.signal(signal.SIGINT, before)
        sys.unraisablehook = unraisable


def async_raise(thread_id: int, exception: type[BaseException]) -> bool:
    """Have a thread (its ``ident``) raise an exception at the next point where it looks; False if it has ended."""
    count = ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread_id), ctypes.py_object(exception))
    return bool(count)


def pester(step: Callable[[], object], times: int, exception: type[BaseException] = KeyboardInterrupt) -> None:
    """Run a step again and again in a thread, and raise an exception in it so many times, at random moments."""
    ready, caught = threading.Semaphore(0), threading.Semaphore(0)
    dice = random.Random(times)

    def work() -> None:
        for _ in range(times):
            try:
                ready.release()
                while True:
                    step()
            except (exception, SystemError):  # compiled functions say in their own way that an exception came
                caught.release()

    thread = threading.Thread(target=work, daemon=True)
    unraisable = sys.unraisablehook
    sys.unraisablehook = lambda one: None if isinstance(one.exc_value, exception) else unraisable(one)
    try:
        thread.start()
        for _ in range(times):
            assert ready.acquire(timeout=_LONG), "the step raised something else, or hangs"
            thread.join(dice.uniform(0, _SHORT))
            for _ in range(int(_LONG)):  # again, if it came into a finalizer, which goes no further
                async_raise(thread.ident or 0, exception)
                if caught.acquire(timeout=1.0):
                    break
            else:
                raise AssertionError("the step raised something else, or hangs")
        thread.join(_LONG)
    finally:
        sys.unraisablehook = unraisable


def at_depth(n: int, function: Callable[[], Result]) -> Result:
    """Call a function when only n more calls fit on the stack: it gets ``RecursionError`` if it goes deeper."""
    before = sys.getrecursionlimit()
    limit = 1
    while True:
        try:
            sys.setrecursionlimit(limit)
        except RecursionError:  # the stack is deeper than that already
            limit += 1
        else:
            break
    try:
        sys.setrecursionlimit(limit + n)
        return function()
    finally:
        sys.setrecursionlimit(before)


@functools.cache
def _points(code: CodeType) -> tuple[frozenset[int], frozenset[int]]:
    """Instructions before which to raise; and calls after which to raise, as what follows has other handlers."""
    before, after = set(), set()
    previous: dis.Instruction | None = None
    for one in dis.get_instructions(code):
        if previous is not None and previous.opname in _CALLS:
            if _handler(code, previous.offset) == _handler(code, one.offset):
                before.add(one.offset)
            else:
                after.add(previous.offset)
        if one.opname.startswith(("JUMP_BACKWARD", "POP_JUMP_BACKWARD")) and "NO_INTERRUPT" not in one.opname:
            before.add(one.argval)
        previous = one
    return frozenset(before), frozenset(after)


@functools.cache
def _first(code: CodeType) -> int:
    """Where a function begins, for those that are generators, too."""
    return next((one.offset for one in dis.get_instructions(code) if one.opname == "RESUME"), 0)


def _handler(code: CodeType, offset: int) -> int | None:
    return next((one.target for one in _handlers(code) if one.start <= offset < one.end), None)


@functools.cache
def _handlers(code: CodeType) -> list[Any]:
    # The interpreter's own reader of this table is private, and there is no other.
    return list(dis._parse_exception_table(code))  # type: ignore[attr-defined]
