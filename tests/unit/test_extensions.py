"""What other distributions add is found by name, and what is wrong with it is said in one sentence."""

import sys

import numpy as np
import pyarrow as pa
import pytest
from support.extension_page import install, install_metadata

from weirflow import IncrementalFlow
from weirflow.checkpoint import open_checkpoint_storage
from weirflow.config import load_settings
from weirflow.errors import ConfigError, ProfileError, SinkConflict, StateError
from weirflow.extensions import EXTENSION_POINTS
from weirflow.ivm.sharded.executor import InThisProcess
from weirflow.ivm.sharded.flow import PartitionedFlow
from weirflow.ivm.sharded.plan.policies import spread_policy
from weirflow.metadata import open_metadata
from weirflow.session.profiles import resolve_stores
from weirflow.state import KeyGroupRange, open_state_backend

BROKEN = """
import numpy as np

SHIFT = 0

def fails(*arguments):
    raise OSError(f"no route to {arguments[0]}")

def wrong(*arguments):
    return 5

def far(hashes, shards):
    return np.full(len(hashes), shards)

def short(hashes, shards):
    return np.zeros(len(hashes) + 1, dtype=np.int64)

number = 7
"""


@pytest.fixture
def acme(tmp_path, monkeypatch):
    """The distribution of the page, installed."""
    monkeypatch.syspath_prepend(install(tmp_path / "acme"))
    yield
    sys.modules.pop("acme_weirflow", None)
    spread_policy.cache_clear()


@pytest.fixture
def broken(tmp_path, monkeypatch):
    """Installs distributions with entry points into a module of broken things, by name."""

    def add(group, target, *distributions, name="odd"):
        folder = tmp_path / "broken"
        folder.mkdir(exist_ok=True)
        (folder / "broken_things.py").write_text(BROKEN)
        for one in distributions or ("acme-broken",):
            install_metadata(folder, one, "2.1", {f"weirflow.{group}": {name: target}})
        monkeypatch.syspath_prepend(folder)

    yield add
    sys.modules.pop("broken_things", None)
    spread_policy.cache_clear()


def shop(flow):
    flow.register_source("orders", "customer STRING, amount BIGINT", key="customer")
    flow.register_view("totals", "SELECT amount % 3 AS third, count(*) AS n FROM orders GROUP BY amount % 3")


def filled(flow):
    shop(flow)
    flow.tick({"orders": [{"customer": f"c{n}", "amount": n} for n in range(30)]})
    return sorted(tuple(row.values()) for row in flow.snapshot("totals").to_pylist())


def test_doctor_knows_what_is_installed(acme):
    found = {point.group.removeprefix("weirflow."): point.check() for point in EXTENSION_POINTS}
    assert found == {
        "checkpoint_stores": {"team": "acme-weirflow 1.0"},
        "metadata_stores": {"appdb": "acme-weirflow 1.0"},
        "state_backends": {"traced": "acme-weirflow 1.0"},
        "stage_executors": {"small-here": "acme-weirflow 1.0"},
        "spread_policies": {"spare-first": "acme-weirflow 1.0"},
        "sinks": {"jsonl": "acme-weirflow 1.0"},
    }


def test_nothing_of_an_extension_is_loaded_before_its_name_is_asked_for(acme, tmp_path):
    open_checkpoint_storage("memory://")
    open_metadata("memory://").close()
    with IncrementalFlow() as flow:
        shop(flow)
        flow.sink("totals", str(tmp_path / "files"))
    assert "acme_weirflow" not in sys.modules


def test_leases_of_an_added_metadata_store_exclude_each_other(acme, tmp_path):
    uri = f"appdb://{tmp_path}/app.db"
    with open_metadata(uri) as one, open_metadata(uri) as other:
        lease = one.acquire("flow/shop", "a", ttl=60)
        assert [info.owner for info in other.leases()] == ["a"]
        lease.release()
        assert other.acquire("flow/shop", "b", ttl=60).token == lease.token + 1
        version = one.documents.put("d", {"n": 1}, expected_version=0)
        assert other.documents.put("d", {"n": 2}, expected_version=version) == version + 1


def test_a_sink_goes_on_behind_what_a_crash_left_half_written(acme, tmp_path):
    target = tmp_path / "totals.jsonl"
    with IncrementalFlow(path=tmp_path / "flow") as flow:
        shop(flow)
        flow.sink("totals", f"jsonl://{target}")
        flow.tick({"orders": [{"customer": "a", "amount": 1}]})
    whole = target.read_text()
    target.write_text(whole + '{"epoch": 2, "thi')
    with IncrementalFlow(path=tmp_path / "flow") as flow:
        flow.sink("totals", f"jsonl://{target}")
        assert target.read_text() == whole
    with IncrementalFlow() as flow:
        shop(flow)
        with pytest.raises(SinkConflict):
            flow.sink("totals", f"jsonl://{target}")


def test_rows_go_where_the_policy_says_and_are_found_again(acme, tmp_path):
    with PartitionedFlow(str(tmp_path), 3, InThisProcess(), spread_policy="spare-first") as flow:
        expected = filled(flow)
        assert [sum(map(len, flow._backend._coordinator.rows(name, 0))) for name in ("orders", "totals")] == [0, 0]
    with PartitionedFlow(str(tmp_path), 3, InThisProcess()) as flow:
        assert sorted(tuple(row.values()) for row in flow.snapshot("totals").to_pylist()) == expected
        flow.rescale(5)
        assert sorted(tuple(row.values()) for row in flow.snapshot("totals").to_pylist()) == expected
        flow.tick({"orders": [{"customer": "c1", "amount": 2}]})
        assert sorted(flow.snapshot("totals").column("n").to_pylist()) == [9, 10, 11]
        assert sum(map(len, flow._backend._coordinator.rows("orders", 0))) == 0
    with PartitionedFlow(str(tmp_path / "plain"), 3, InThisProcess()) as flow:
        assert filled(flow) == expected


def test_a_flow_keeps_its_policy_and_is_refused_without_it(acme, tmp_path, monkeypatch):
    PartitionedFlow(str(tmp_path), 3, InThisProcess(), spread_policy="spare-first").close()
    with pytest.raises(ConfigError, match="spread by 'spare-first', not 'even'"):
        PartitionedFlow(str(tmp_path), 3, InThisProcess(), spread_policy="even")
    monkeypatch.undo()
    spread_policy.cache_clear()
    with pytest.raises(ConfigError, match="No spread policy is called 'spare-first'"):
        PartitionedFlow(str(tmp_path), 3, InThisProcess())


@pytest.mark.parametrize("policy", ["far", "short"])
def test_a_policy_that_gives_no_shards_is_refused(broken, policy, tmp_path):
    broken("spread_policies", f"broken_things:{policy}")
    with PartitionedFlow(str(tmp_path), 2, InThisProcess(), spread_policy="odd") as flow:
        shop(flow)
        with pytest.raises(ConfigError, match="The spread policy 'odd'"):
            flow.tick({"orders": [{"customer": "a", "amount": 1}]})
        assert flow.epoch == 0


OPENERS = {
    "checkpoint_stores": lambda: open_checkpoint_storage("odd://x"),
    "metadata_stores": lambda: open_metadata("odd://x"),
    "state_backends": lambda: open_state_backend("odd://x"),
    "sinks": lambda: sunk("odd://x"),
}


def sunk(uri):
    with IncrementalFlow() as flow:
        shop(flow)
        flow.sink("totals", uri)


@pytest.mark.parametrize("group", OPENERS)
@pytest.mark.parametrize(
    ("target", "says"),
    [
        ("broken_things:fails", r"of acme-broken 2\.1 cannot be opened: OSError: no route to <uri>\."),
        ("broken_things:wrong", r"of acme-broken 2\.1 returned something of type int, which has no "),
        ("broken_things:number", r"of acme-broken 2\.1 is not callable: broken_things:number is of type int"),
        ("broken_things:nothing", r"of acme-broken 2\.1 cannot be loaded: AttributeError"),
        ("not_there:open", r"of acme-broken 2\.1 cannot be loaded: ModuleNotFoundError: No module named 'not_there'"),
    ],
)
def test_what_is_broken_is_one_sentence_that_names_the_distribution(broken, group, target, says):
    broken(group, target)
    with pytest.raises(ConfigError, match=says) as refused:
        OPENERS[group]()
    assert refused.value.hint


def test_a_name_of_two_distributions_is_refused_with_both(broken):
    broken("checkpoint_stores", "broken_things:wrong", "acme-one", "acme-two")
    with pytest.raises(ConfigError, match=r"acme-one 2\.1 and acme-two 2\.1"):
        open_checkpoint_storage("odd://x")


@pytest.mark.parametrize(
    ("call", "near"),
    [
        (lambda: open_checkpoint_storage("tem://x"), "did you mean 'team'"),
        (lambda: open_metadata("appd://x"), "did you mean 'appdb'"),
        (lambda: open_state_backend("tracd://x"), "did you mean 'traced'"),
        (lambda: sunk("json://x"), "did you mean 'jsonl'"),
        (lambda: spread_policy("spare-frist"), "did you mean 'spare-first'"),
    ],
    ids=["checkpoint", "metadata", "state", "sink", "policy"],
)
def test_a_name_that_nothing_has_is_refused_with_the_nearest(acme, call, near):
    with pytest.raises(ConfigError) as refused:
        call()
    assert near in refused.value.hint
    assert "one of" in refused.value.hint


def test_own_names_are_not_replaced(broken):
    broken("checkpoint_stores", "broken_things:fails", name="memory")
    storage = open_checkpoint_storage("memory://")
    storage.put("a", b"1")
    assert storage.get("a") == b"1"


def test_state_in_folders_is_that_of_its_groups(tmp_path):
    backend = open_state_backend(tmp_path, KeyGroupRange(0, 64))
    backend.write({"op": {b"k": b"v"}})
    backend.close()
    again = open_state_backend(f"rocksdb://{tmp_path}", KeyGroupRange(0, 64))
    assert again.get("op", b"k") == b"v"
    again.close()
    with pytest.raises(StateError, match="key groups 0-63, not of 0-127"):
        open_state_backend(tmp_path, KeyGroupRange(0, 128))
    open_state_backend(tmp_path, KeyGroupRange(64, 128)).close()


def test_a_durable_profile_takes_added_stores(acme, settings_of):
    stores = resolve_stores(settings_of("team://shop/flows", "appdb:///srv/app.db"))
    assert (stores.checkpoints, stores.metadata) == ("team://shop/flows", "appdb at localhost/srv/app.db")
    with pytest.raises(ProfileError):
        resolve_stores(settings_of("tame://shop/flows", "appdb:///srv/app.db"))


@pytest.fixture
def settings_of(tmp_path):
    def made(checkpoints, metadata):
        return load_settings(
            placement="distributed",
            durability_profile="distributed-durable",
            checkpoint_uri=checkpoints,
            metadata_url=metadata,
        )

    return made


def test_the_even_policy_is_as_stored():
    hashes = np.random.default_rng(7).integers(0, 2**63, 1000, dtype=np.uint64)
    shards = spread_policy("even")(hashes, 7)
    assert shards.tolist() == [((one ^ (one >> 32)) % 7) for one in hashes.tolist()]
    assert pa.array(shards).type == pa.int64()
