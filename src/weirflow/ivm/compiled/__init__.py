"""The compiled twin of the kernel's inner loops: used where numba is installed, once it is loaded.

``kernels`` is None until then, and everything runs on NumPy with the same results. A circuit asks for it after some
steps or in a large one, so that short programs do not pay for the import; the first load on a machine compiles for a
few seconds, in the background, and later ones read numba's cache. ``WEIRFLOW_COMPILED=off`` never loads it, ``on``
loads it at once.
"""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable
from functools import wraps
from importlib import import_module
from importlib.util import find_spec
from types import SimpleNamespace
from typing import Any

from weirflow.environment import COMPILED
from weirflow.errors import ConfigError, DependencyMissing

_log = logging.getLogger(__name__)
_MODES = ("auto", "on", "off")

kernels: Any = None
"""The functions of ``weirflow.ivm.compiled.kernels`` once it is loaded."""

decided = False
"""Whether there is nothing more to offer: they are loaded, on their way, or switched off."""

_STEPS, _ROWS = 20, 100_000
"""A circuit that steps so often, or so far at once, shall be fast; before, loading takes longer than it saves."""
_begun = threading.Lock()


def offer(steps: int, rows: int) -> None:
    """Load the compiled kernels if it is worth it for a circuit whose ``steps``-th step brings so many rows."""
    global decided  # noqa: PLW0603 - a process has one
    mode = os.environ.get(COMPILED, "auto")
    if mode not in _MODES:
        raise ConfigError(f"{COMPILED} is {mode!r}.", hint=f"set it to one of {', '.join(_MODES)}")
    if mode == "auto" and steps < _STEPS and rows < _ROWS:
        return
    decided = True
    if mode == "off" or not _begun.acquire(blocking=False):
        return
    if mode == "on":
        load()
    elif find_spec("numba") is not None:
        threading.Thread(target=_load_quietly, name="weirflow-compile").start()


def load() -> None:
    """Load the compiled kernels now.

    Raises:
        DependencyMissing: numba is not installed.
    """
    global kernels, decided
    if find_spec("numba") is None:
        raise DependencyMissing.extra("compiled", needed_for=f"{COMPILED}=on")  # noqa: S610 - no Django
    module = import_module("weirflow.ivm.compiled.kernels")
    kernels, decided = SimpleNamespace(**{name: _whole(getattr(module, name)) for name in module.__all__}), True


def _whole(kernel: Callable[..., Any]) -> Callable[..., Any]:
    """The kernel, interrupted as other calls are: what is raised while numba makes results is a SystemError there."""

    @wraps(kernel)
    def call(*arguments: Any) -> Any:
        try:
            return kernel(*arguments)
        except SystemError as error:
            cause: BaseException = error
            while isinstance(cause, SystemError) and cause.__cause__ is not None:  # one for each level it passed
                cause = cause.__cause__
            if cause is error:
                raise
            raise cause from None

    return call


def _load_quietly() -> None:
    try:
        load()
    except Exception:  # noqa: BLE001 - whatever numba raises, NumPy goes on
        _log.warning("compiled kernels are not available; NumPy is used instead", exc_info=True)
