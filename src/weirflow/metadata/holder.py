"""Who holds a lease: a claim says which process of which machine made it, so that others there see whether it lives."""

from __future__ import annotations

import os
import uuid
from pathlib import Path
from typing import NamedTuple

_STATE, _BEGUN = 0, 19
"""Fields of ``/proc/PID/stat`` behind the name of the program."""
_GONE = ("Z", "X")


class _Status(NamedTuple):
    state: str
    begun: str


def make_claim() -> str:
    """A claim that no other equals, of this process where the system tells what that takes."""
    claim = uuid.uuid4().hex
    where, status = _machine(), _status(os.getpid())
    return claim if where is None or status is None else f"{claim}@{where}/{os.getpid()}/{status.begun}"


def is_dead(claim: str) -> bool:
    """Whether the process that made a claim is surely gone; False for processes of other machines and containers."""
    _, _, holder = claim.partition("@")
    where, _, process = holder.rpartition("/")
    where, _, pid = where.rpartition("/")
    if not pid.isdecimal() or where != _machine():
        return False
    try:
        os.kill(int(pid), 0)
    except ProcessLookupError:
        return True
    except OSError:  # it is another user's
        pass
    status = _status(int(pid))
    if status is None:  # hidden, or gone since
        return False
    # A process whose first thread has ended lives on in its others.
    ended = status.state in _GONE and len(list(Path(f"/proc/{pid}/task").glob("*"))) <= 1
    return ended or status.begun != process


def _machine() -> str | None:
    """One running kernel, and the spaces in which it numbers processes and counts time; None if it does not tell."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text("ascii").strip()
        spaces = [Path(f"/proc/self/ns/{one}").stat().st_ino for one in ("pid", "time")]
    except (OSError, ValueError):
        return None
    return "/".join([boot, *map(str, spaces)])


def _status(pid: int) -> _Status | None:
    try:
        fields = Path(f"/proc/{pid}/stat").read_text("utf-8", "replace").rpartition(")")[2].split()
        return _Status(fields[_STATE], fields[_BEGUN])
    except (OSError, IndexError):
        return None
