"""Recursion that goes on on another stack when its own is half full, so that it does not matter how deep its caller is.

Python bounds how many calls a thread may nest, for Python's own calls and (since 3.12) for C's, and a new thread begins
at none. Recursion over what a user wrote therefore checks at each level whether there is room, and otherwise runs the
level on a thread of its own, for whose end it waits. Nothing that belongs to the whole process is changed.
"""

from __future__ import annotations

import _thread
import sys
from collections.abc import Callable
from contextvars import copy_context
from functools import cache, wraps
from typing import ParamSpec, TypeVar

import pyarrow as pa

from weirflow.errors import StackExhausted

P = ParamSpec("P")
T = TypeVar("T")

_NEEDED = 40
"""Calls that a public method nests, whatever it was given: those that grow with that go to another stack."""
_PATIENCE_SECONDS = 0.1


def is_deep() -> bool:
    """Whether two fifths of the calls that this thread may nest are in use.

    What is left is room for what is not counted here: on Python 3.11 calls of C are bounded together with Python's.
    """
    try:
        sys._getframe(sys.getrecursionlimit() * 2 // 5)  # noqa: SLF001 - counts frames without touching them
    except ValueError:
        return False
    return True


def grows(function: Callable[P, T]) -> Callable[P, T]:
    """A function that calls itself, directly or not, as often as what it is given is deep.

    >>> @grows
    ... def depth(nested: tuple) -> int:
    ...     return 1 + depth(nested[0]) if nested else 0
    >>> deep = ()
    >>> for _ in range(5000):
    ...     deep = (deep,)
    >>> depth(deep)
    5000
    """

    @wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> T:
        if is_deep():
            return on_fresh_stack(lambda: function(*args, **kwargs))
        return function(*args, **kwargs)

    return call


def require_room() -> None:
    """Raise ``StackExhausted`` if the caller has not left enough room for a public method to end well."""
    if is_deep():
        try:
            _nest(_NEEDED)
        except RecursionError:
            raise StackExhausted(
                "This was called so deep inside other calls that Python has no room left for it; nothing has changed.",
                hint="call it from less deep inside other calls, or in a thread of its own",
            ) from None
        _import_lazy()


@cache
def _import_lazy() -> None:
    """Import what pyarrow imports when it is first used: importing nests more calls than are left here."""
    on_fresh_stack(lambda: pa.array([], pa.int64()))


def on_fresh_stack(call: Callable[[], T]) -> T:
    """What the call returns or raises, from a thread that nothing else runs on.

    The caller waits for its end also when it is interrupted, so that nothing goes on behind its back.
    """
    context = copy_context()
    results: list[T] = []
    errors: list[BaseException] = []
    begun, ended = _thread.allocate_lock(), _thread.allocate_lock()
    ended.acquire()

    def run() -> None:
        if not begun.acquire(blocking=False):
            return
        try:
            results.append(context.run(call))
        except BaseException as error:  # noqa: BLE001 - it is raised in the caller's thread
            errors.append(error)
        finally:
            ended.release()

    try:
        _thread.start_new_thread(run, ())
        ended.acquire()
    except BaseException as interrupt:
        if not begun.acquire(blocking=False):
            _wait(results, errors)
        elif isinstance(interrupt, RuntimeError):
            raise StackExhausted(
                "The system refuses another thread, which deeply nested SQL needs.",
                hint="allow the process more threads, or nest less deeply",
            ) from None
        raise
    if errors:
        raise errors[0]
    return results[0]


def _wait(results: list[T], errors: list[BaseException]) -> None:
    pause = _thread.allocate_lock()
    pause.acquire()
    while not results and not errors:
        try:
            pause.acquire(timeout=_PATIENCE_SECONDS)
        except BaseException:  # noqa: BLE001, S112 - an interrupt has come before, and is raised once this has ended
            continue


def _nest(calls: int) -> None:
    if calls:
        _nest(calls - 1)
