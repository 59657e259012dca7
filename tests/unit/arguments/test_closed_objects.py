"""What was closed says so: every public call on it is an error of Weirflow's, or is meant for closed objects, too."""

from __future__ import annotations

import contextlib
import inspect
from typing import TYPE_CHECKING, Any

import pytest
from support.argument_examples import (
    ALONGSIDE,
    MEANT,
    ORDERS,
    SITUATIONS,
    TOTALS,
    Counting,
    Pairing,
    new_flow,
    new_watch,
    valid_arguments,
)
from support.bad_arguments import Catalogue
from support.public_api import public_calls
from support.unlisted_calls import is_for_users

from weirflow import IncrementalFlow, Session
from weirflow.errors import SessionClosed
from weirflow.metadata import open_metadata
from weirflow.process import CoProcessRunner, ProcessRunner

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from support.public_api import Call


def durable_flow(folder: Path) -> IncrementalFlow:
    flow = IncrementalFlow("shop", path=folder / "flow")
    flow.register_source("orders", ORDERS)
    flow.register_view("totals", TOTALS)
    return flow


MADE: dict[str, Callable[[Path], Any]] = {
    "a flow": lambda _: new_flow(),
    "a durable flow": durable_flow,
    "a watch": lambda _: new_watch(),
    "metadata in memory": lambda _: open_metadata("memory://"),
    "metadata in a file": lambda folder: open_metadata(folder / "metadata.db"),
    "a session": lambda _: Session.embedded(),
    "a runner": lambda _: ProcessRunner(Counting(), key="word"),
    "a runner of two inputs": lambda _: CoProcessRunner(Pairing(), key=("word", "word")),
}

STILL_DONE = {
    "IncrementalFlow.discard": "there is nothing left to discard",
    "IncrementalFlow.exclusive": "what is done in its block is refused",
    "IncrementalFlow.gauges": "None",
    "IncrementalFlow.salvage": "opens another one",
    "IncrementalFlow.metrics": "what the flow has done",
    "ProcessRunner.resume": "None: there is no batch to finish",
    "CoProcessRunner.resume": "None: there is no batch to finish",
    "ProcessRunner.snapshot": "its state is in its backends, which are open",
    "CoProcessRunner.snapshot": "its state is in its backends, which are open",
    "Watch.get": "None, for it has ended",
    "Session.describe": "where it ran",
    "Session.metrics": "those of the process",
    "Session.operation_registry": "what ran in it",
    **dict.fromkeys(
        ("Session.distributed", "Session.embedded", "Session.from_env", "Session.single_node"), "another one"
    ),
}
"""Calls that a closed object answers, and how."""


def calls_of(thing: object) -> list[Call]:
    name = type(thing).__name__
    return [call for call in public_calls() if call.id.startswith(f"{name}.") and is_for_users(call.id)]


@pytest.mark.parametrize("kind", MADE)
def test_every_call_on_what_is_closed_is_a_typed_error(tmp_path: Path, kind: str):
    of_session = {
        "endpoint": lambda: "sc://localhost:1",
        "job": lambda: tmp_path,
        "path": lambda: tmp_path,
        "timeout_ms": lambda: 5_000,
        "Session.udf.function": lambda: len,
    }
    catalogue = Catalogue({}, SITUATIONS, valid_arguments(tmp_path) | of_session, MEANT, ALONGSIDE)
    thing = MADE[kind](tmp_path)
    calls = calls_of(thing)
    assert calls
    thing.close()
    outcomes = {call.id: catalogue.outcome(call, thing) for call in calls if not call.id.endswith(".close")}
    assert {call: how for call, how in outcomes.items() if how != "typed" and call not in STILL_DONE} == {}


@pytest.mark.parametrize("kind", MADE)
def test_closing_again_does_nothing_and_properties_can_be_read(tmp_path: Path, kind: str):
    thing = MADE[kind](tmp_path)
    thing.close()
    thing.close()
    for name in dir(type(thing)):
        if not name.startswith("_") and isinstance(inspect.getattr_static(type(thing), name), property):
            with contextlib.suppress(SessionClosed):
                getattr(thing, name)
