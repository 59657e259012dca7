"""After every tick a view of the nearest vectors equals brute force, bit for bit."""

import uuid
from collections import Counter

import pytest
from support.generator.campaign import seeds
from support.vector_cases import VectorCase, bits, rows_of

from weirflow.ivm.flow import IncrementalFlow
from weirflow.ivm.operators.nearest import operator as nearest
from weirflow.ivm.operators.nearest import search
from weirflow.ivm.sharded.executor import InThisProcess
from weirflow.ivm.sharded.flow import PartitionedFlow

TICKS = 7


class Life:
    """A flow of a case, opened again now and then; ``shards`` is how many it has, None for one in one process."""

    def __init__(self, case, folder, shards=None):
        self.case, self.shards = case, shards
        self.place = f"memory://{uuid.uuid4().hex}" if shards else folder
        self.flow = self.opened()
        for name, (columns, key) in case.sources.items():
            self.flow.register_source(name, columns, key=key)
        self.wanted = {}
        self.seen = Counter()

    def opened(self):
        if self.shards:
            return PartitionedFlow(self.place, self.shards, InThisProcess())
        return IncrementalFlow(path=self.place, fsync=0)

    def register(self):
        self.flow.register_view("near", self.case.sql())
        self.seen = rows_of(self.flow.snapshot("near"))
        self.flow.on_delta("near", self.hear)

    def hear(self, _, delta):
        table = delta.to_arrow()
        weights = table.column("_weight").to_pylist()
        for row, weight in zip(table.drop_columns(["_weight"]).to_pylist(), weights, strict=True):
            self.seen[tuple(map(bits, row.values()))] += weight

    def restart(self, *, checkpoint):
        if checkpoint and not self.shards:
            self.flow.checkpoint()
        self.flow.close()
        self.flow = self.opened()
        if "near" in self.flow.views:
            self.flow.on_delta("near", self.hear)

    def tick(self, changed):
        sources = {name: self.flow.schema(name) for name in changed}
        self.flow.tick({name: self.case.delta(rows, sources[name]) for name, rows in changed.items()})

    def check(self):
        found = rows_of(self.flow.snapshot("near"))
        wanted = self.case.expected(**self.wanted)
        assert found == wanted, f"{found - wanted} is not {wanted - found}"
        assert +self.seen == found
        assert not -self.seen


def lived(seed, folder, shards=None):
    """Run a case to its end; raises for what is wrong."""
    case = VectorCase(seed)
    life = Life(case, folder, shards)
    registered = 0 if case.dice.random() < 0.7 else 2
    try:
        for tick in range(TICKS):
            if tick == registered:
                life.register()
            changed = case.changes()
            if changed:
                life.tick(changed)
            if tick >= registered:
                life.check()
                if case.dice.random() < 0.1:
                    life.restart(checkpoint=case.dice.random() < 0.5)
    finally:
        life.flow.close()


@pytest.mark.parametrize("seed", range(40))
def test_a_view_of_the_nearest_equals_brute_force(seed, tmp_path):
    lived(seed, tmp_path / "flow")


@pytest.mark.parametrize("seed", range(100, 120))
def test_also_with_short_lists_and_small_blocks(seed, tmp_path, monkeypatch):
    tighten(monkeypatch)
    lived(seed, tmp_path / "flow")


def tighten(monkeypatch):
    monkeypatch.setattr(nearest, "_LEAST_MARGIN", 1)
    monkeypatch.setattr(nearest.NearestSpec, "_margin", property(lambda _: 1))
    monkeypatch.setattr(search, "_SCORES", 8)
    monkeypatch.setattr(search, "_PENDING", 4)


@pytest.mark.campaign
def test_five_thousand_random_lives(tmp_path, monkeypatch):
    wrong = []
    for number, seed in enumerate(seeds(5000)):
        with monkeypatch.context() as patch:
            if number % 2:
                tighten(patch)
            try:
                lived(seed, tmp_path / str(seed), shards=(1, 2, 7)[number % 3] if number % 10 == 0 else None)
            except Exception as error:  # noqa: BLE001 - all that is wrong is shown together
                wrong.append((seed, repr(error)[:500]))
    assert not wrong, "\n".join(f"seed {seed}: {error}" for seed, error in wrong)
