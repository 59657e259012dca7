"""The catalogue of bad arguments: every public call that needs no Spark, each argument with each hostile value.

What comes back is an error of Weirflow's that names the argument, or the value has a meaning that is written down
here, and the call takes it; it never takes long, and the object works on. With valid arguments the calls do what they
are for. New public calls are found by themselves: they need a valid example of arguments whose names are new.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest
from support.argument_examples import (
    ALONGSIDE,
    MEANT,
    ON_SPARK,
    OPTIONS,
    REFUSED,
    SITUATIONS,
    new_storage,
    require_storage,
    valid_arguments,
)
from support.bad_arguments import SECONDS, Catalogue, Situation
from support.hostile_values import hostile_values
from support.public_api import public_calls
from support.unlisted_calls import is_for_each_row, is_for_users

from weirflow import Session, Settings, WeirflowError
from weirflow.arguments import rules_of
from weirflow.errors import ConfigError
from weirflow.state import InMemoryStateBackend, KeyedStateStore, Migrations, StateDescriptor, state_migration

if TYPE_CHECKING:
    from pathlib import Path

    from support.public_api import Call


def covered_calls() -> list[Call]:
    return [call for call in public_calls() if call.arguments and is_for_users(call.id)]


def owner(call: Call) -> str:
    return "" if call.owner is None else call.owner.__name__


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where relative paths lead, too."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_every_public_call_checks_its_arguments():
    unchecked = [call.id for call in covered_calls() if not call.is_checked and not is_for_each_row(call.id)]
    assert unchecked == []


def test_every_annotation_of_a_checked_call_can_be_read():
    unknown = {call.id: rules_of(call.function).unknown for call in covered_calls() if rules_of(call.function)}
    assert {call: names for call, names in unknown.items() if names} == {}


CALLS = [call for call in covered_calls() if owner(call) not in ON_SPARK]


@pytest.mark.parametrize("name", sorted({owner(call) or call.id for call in CALLS}))
def test_bad_arguments(folder: Path, name: str):
    numbers = iter(range(10**9))
    local = Situation(lambda: new_storage(folder / f"storage {next(numbers)}"), require_storage)
    situations = SITUATIONS | {"LocalStorage": local}
    catalogue = Catalogue(
        hostile_values(folder, letters=100_000), situations, valid_arguments(folder), MEANT, ALONGSIDE, OPTIONS, REFUSED
    )
    for call in CALLS:
        if name == (owner(call) or call.id):
            catalogue.try_call(call)
    assert catalogue.problems == []
    assert [one for one in catalogue.unused() if one.startswith(f"{name}.")] == []


@pytest.mark.parametrize("place", ["key", "value"])
def test_a_type_that_state_cannot_have_is_refused_when_its_slot_is_declared(folder: Path, place: str):
    for kind, value in hostile_values(folder).items():
        descriptor = StateDescriptor(**{"name": "slot", "key": str, "value": int, place: value})
        store = KeyedStateStore(InMemoryStateBackend(), "op")
        try:
            store.value(descriptor)
        except WeirflowError:
            continue
        assert kind == "None", "None is the type of None"


def test_a_type_that_no_value_has_is_refused_when_its_migration_is_registered(folder: Path):
    for kind, value in hostile_values(folder).items():
        register = state_migration("slot", from_version=1, to_version=2, reads=value, migrations=Migrations())
        if kind in ("None", "a class"):  # the type of None; an object without fields
            register(lambda one: one)
        else:
            with pytest.raises(ConfigError, match="reads is"):
                register(lambda one: one)


SETTINGS_MEANT = {
    "cache_dir": {"a word", "a digit", "a path below a file", "a file"},  # looked at when Spark starts
    "catalogs": {"an empty dict"},
    "class_archive": {"True", "0"},
    "connect_timeout": {"a large int", "1.5", "a digit"},  # texts are what the environment has
    "cores": {"a digit"},
    "packages": {"empty text", "blanks", "a word", "a digit", "an empty list", "a generator"},  # fetched later
    "spark_conf": {"an empty dict"},
    "worker_python": {"a word", "a digit", "a path below a file", "a file"},
}


@pytest.mark.parametrize("field", Settings.model_fields)
def test_bad_settings_of_a_session(folder: Path, field: str):
    for kind, value in hostile_values(folder).items():
        if value is None:
            continue  # as if it were not given
        began = time.perf_counter()
        try:
            Session(**{field: value}).close()
        except WeirflowError:
            continue
        finally:
            assert time.perf_counter() - began < SECONDS
        assert kind in SETTINGS_MEANT.get(field, ())


def test_the_catalogue_is_large(folder: Path):
    assert sum(len(call.arguments) for call in CALLS) * len(hostile_values(folder)) > 400
