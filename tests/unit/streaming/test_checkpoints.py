"""Where the checkpoint of a streaming query is."""

from pathlib import Path

import pytest

from weirflow.errors import ConfigError
from weirflow.streaming.query.checkpoints import checkpoint_place, split_options
from weirflow.types import Profile

DURABLE = {
    "profile": Profile.SINGLE_NODE_DURABLE,
    "checkpoints": "file:///data/checkpoints",
    "remote": False,
    "own": True,
}
LOCAL = {"profile": Profile.DEV_LOCAL, "checkpoints": "memory://", "own": False}


def test_what_is_given_wins():
    assert checkpoint_place("s3a://b/c", name=None, **DURABLE).location == "s3a://b/c"


def test_a_durable_profile_keeps_it_by_name():
    assert checkpoint_place(None, name="totals", **DURABLE).location == "file:///data/checkpoints/queries/totals"
    on_s3 = {**DURABLE, "profile": Profile.DISTRIBUTED_DURABLE, "checkpoints": "s3://bucket/prefix/"}
    assert checkpoint_place(None, name="totals", **on_s3).location == "s3a://bucket/prefix/queries/totals"


@pytest.mark.parametrize("name", [None, "..", "a/b", "a b"])
def test_a_durable_profile_needs_a_name_for_a_folder(name):
    with pytest.raises(ConfigError, match="name"):
        checkpoint_place(None, name=name, **DURABLE)


def test_a_temporary_one_goes_with_the_query():
    place = checkpoint_place(None, name=None, remote=False, **LOCAL)
    assert Path(place.location).is_dir()
    place.remove()
    assert not Path(place.location).exists()


def test_a_server_finds_its_own_folder_or_is_told():
    assert checkpoint_place(None, name=None, remote=True, **{**LOCAL, "own": True}).location is None
    with pytest.raises(ConfigError, match="that the server can reach"):
        checkpoint_place(None, name=None, remote=True, **LOCAL)


def test_both_names_of_the_option_are_one():
    assert split_options({"checkpoint.location": "a", "path": "p"}) == ("a", {"path": "p"})
    assert split_options({"checkpointlocation": "a", "checkpoint.location": "a"}) == ("a", {})
    with pytest.raises(ConfigError, match="a and b"):
        split_options({"checkpointLocation": "a", "checkpoint.location": "b"})
