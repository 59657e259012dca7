import inspect
import pickle
import re
from datetime import UTC, datetime

import pytest

from weirflow import errors
from weirflow.errors import (
    DependencyMissing,
    OperationTimeout,
    PackageUnavailable,
    QueryError,
    SqlPosition,
    StorageError,
    WeirflowError,
    did_you_mean,
)

CLASSES = [value for value in vars(errors).values() if inspect.isclass(value) and issubclass(value, WeirflowError)]
# What constructors of some families ask for beyond the message.
REQUIRED = {
    errors.NotIncremental: {"reason": errors.Reason.FUNCTION_NOT_PROVEN},
    errors.OperationError: {"operation_id": "op-1"},
    errors.RefreshRefused: {"reason": "TARGET_CHANGED"},
    errors.RetryLater: {"retry_after": 2.5},
    errors.WatchOverflow: {"epoch": 7},
    errors.HistoryGone: {"oldest": 3},
    errors.StateTypeError: {"slot": "count", "key": "'ann'"},
    errors.MigrationMissing: {"slot": "count", "from_version": 1, "to_version": 2},
    StorageError: {"uri": "s3://bucket/key"},
    errors.MetadataError: {"uri": "postgresql://host/weirflow"},
    errors.VectorStoreError: {"uri": "postgresql://host/vectors"},
    errors.LeaseHeld: {"name": "flow", "owner": "a", "since": datetime.now(UTC), "until": datetime.now(UTC)},
    errors.LeaseLost: {"name": "flow"},
    errors.DocumentChanged: {"name": "savepoints/a", "version": 3},
}
OPTIONAL = {
    PackageUnavailable: {"coordinates": ["g:a:1", "g:b:2"]},
    QueryError: {"position": SqlPosition(2, 5, "FORM"), "condition": "PARSE_SYNTAX_ERROR"},
}


def made(kind):
    extra, known = {}, inspect.signature(kind).parameters
    for family, arguments in {**REQUIRED, **OPTIONAL}.items():
        if issubclass(kind, family):
            extra |= {name: value for name, value in arguments.items() if family in REQUIRED or name in known}
    return kind("what happened", hint="what to do", **extra)


def test_codes_are_unique_and_stable_in_form():
    codes = [kind.code for kind in CLASSES]
    assert len(set(codes)) == len(codes)
    assert all(re.fullmatch(r"[A-Z]+(_[A-Z]+)*", code) for code in codes)
    assert all("code" in vars(kind) for kind in CLASSES)


def test_the_tree_in_the_docstring_is_the_real_one():
    drawn, path = {}, []
    for line in errors.__doc__.splitlines():
        match = re.match(r"^    ([│├└─ ]*)([A-Z]\w+)(?: +([A-Z_]+)\b)?", line)
        if match is None or match[2] not in {kind.__name__ for kind in CLASSES}:
            continue
        depth = len(match[1]) // 4
        path = [*path[:depth], match[2]]
        drawn[match[2]] = (path[-2] if depth else None, match[3])
    real = {kind.__name__: (None if kind is WeirflowError else kind.__base__.__name__, kind.code) for kind in CLASSES}
    assert {name: parent for name, (parent, _) in drawn.items()} == {name: parent for name, (parent, _) in real.items()}
    # Families that are never raised themselves are drawn without a code.
    assert {name: code for name, (_, code) in drawn.items() if code} == {
        name: real[name][1] for name, (_, code) in drawn.items() if code
    }
    assert {name for name, (_, code) in drawn.items() if not code} == {
        "WeirflowError",
        "EndpointError",
        "OperationError",
    }


@pytest.mark.parametrize("kind", CLASSES)
def test_an_error_pickles_whole(kind):
    error = made(kind)
    error.noted_later = {"by": "somebody"}
    copy = pickle.loads(pickle.dumps(error))
    assert type(copy) is kind
    assert vars(copy) == vars(error)
    assert (str(copy), copy.args, copy.code) == (str(error), error.args, error.code)


def test_coordinates_are_kept_as_a_tuple():
    assert made(PackageUnavailable).coordinates == ("g:a:1", "g:b:2")


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (WeirflowError("broke"), "[WEIRFLOW_ERROR] broke"),
        (WeirflowError("broke", hint="mend it"), "[WEIRFLOW_ERROR] broke\n  hint: mend it"),
        (
            QueryError("broke", hint="mend it", position=SqlPosition(3, 7)),
            "[QUERY_FAILED] broke\n  hint: mend it\n  at line 3, column 7",
        ),
        (
            QueryError("broke", position=SqlPosition(3, 7, "FORM")),
            "[QUERY_FAILED] broke\n  at line 3, column 7: FORM",
        ),
        (OperationTimeout("late", operation_id="x"), "[OPERATION_TIMEOUT] late"),
    ],
)
def test_the_text_says_code_message_hint_and_place(error, text):
    assert str(error) == text


def test_a_missing_extra_names_the_command():
    error = DependencyMissing.extra("connect", needed_for="Spark Connect")
    assert error.message == "Spark Connect needs the optional part 'connect'."
    assert error.hint == "pip install 'weirflow[connect]'"


@pytest.mark.parametrize(
    ("name", "known", "hint"),
    [
        ("ordres", ["orders", "customers"], "did you mean 'orders'?"),
        ("ORDERS", ["Orders"], "did you mean 'Orders'?"),
        ("order", ["orders", "border", "x"], "did you mean 'orders' or 'border'?"),
        ("zzz", ["orders"], None),
        ("orders", [], None),
    ],
)
def test_did_you_mean(name, known, hint):
    assert did_you_mean(name, known) == hint
