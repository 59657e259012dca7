"""Any sequence of calls leaves what a dict would hold."""

import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from weirflow.checkpoint import open_checkpoint_storage
from weirflow.errors import ObjectExists, ObjectNotFound

# No name is the folder of another: local files cannot hold both.
NAMES = ["a", "b/c", "b/d", "b.d/e", "b-d", "e/f/g", "e/f/h/i", "ü/x"]
FOLDERS = ["", "b/", "b.d/", "e/", "e/f/", "e/f/h/", "ü/", "absent/"]

CALLS = st.lists(
    st.one_of(
        st.tuples(st.sampled_from(["put", "put_if_absent"]), st.sampled_from(NAMES), st.binary(max_size=40)),
        st.tuples(st.sampled_from(["delete", "reopen"]), st.sampled_from(NAMES), st.just(b"")),
    ),
    max_size=25,
)


def check(open_storage, calls):
    storage, model = open_storage(), {}
    for call, name, data in calls:
        if call == "put":
            storage.put(name, [data[:7], data[7:]])
            model[name] = data
        elif call == "put_if_absent":
            if name in model:
                with pytest.raises(ObjectExists):
                    storage.put_if_absent(name, data)
            else:
                storage.put_if_absent(name, data)
                model[name] = data
        elif call == "delete":
            storage.delete(name)
            model.pop(name, None)
        else:
            storage = open_storage()
        for folder in FOLDERS:
            expected = sorted((key, len(value)) for key, value in model.items() if key.startswith(folder))
            assert [(info.name, info.size) for info in storage.list(folder)] == expected
        for known in NAMES:
            assert storage.exists(known) == (known in model)
            if known in model:
                assert storage.get(known) == model[known]
            else:
                with pytest.raises(ObjectNotFound):
                    storage.get(known)


# Time says nothing here: the disk may be busy.
@settings(deadline=None)
@given(CALLS)
def test_memory_is_like_a_dict(calls):
    shared = open_checkpoint_storage("memory://")
    check(lambda: shared, calls)


# Time says nothing here: the disk may be busy.
@settings(deadline=None)
@given(CALLS)
def test_local_is_like_a_dict(calls):
    with tempfile.TemporaryDirectory() as root:
        check(lambda: open_checkpoint_storage(Path(root) / "storage"), calls)
