"""After every tick and every passing of time, views that compare rows with the clock equal queries of a fixed time."""

import uuid
from collections import Counter

import pytest
from support.clock_cases import SCHEMA, ClockCase, told
from support.generator.campaign import seeds
from support.maintained import comparable

from weirflow.ivm.flow import IncrementalFlow
from weirflow.ivm.sharded.executor import InThisProcess
from weirflow.ivm.sharded.flow import PartitionedFlow
from weirflow.sql.settings import SqlSettings

STEPS = 14


def rows_of(table):
    return Counter(zip(*([comparable(value) for value in column.to_pylist()] for column in table.columns), strict=True))


class Life:
    """A flow of a case, opened again now and then; ``shards`` is how many it has, None for one in one process."""

    def __init__(self, case, folder, shards):
        self.case, self.shards = case, shards
        self.place = f"memory://{uuid.uuid4().hex}" if shards else folder
        self.seen = {name: Counter() for name in case.views}
        self.flow = self.opened()
        self.flow.register_source("t", SCHEMA)
        for name, sql in case.views.items():
            self.flow.register_view(name, sql)
        self.watch()

    def opened(self):
        if self.shards:
            flow = PartitionedFlow(self.place, self.shards, InThisProcess(), clock="manual")
            flow._backend._own_settings = SqlSettings(self.case.zone, ansi=True, case_sensitive=False)
            return flow
        return IncrementalFlow(path=self.place, time_zone=self.case.zone, clock="manual", fsync=0)

    def watch(self):
        self.watches = {name: self.flow.watch_output(name) for name in self.case.views}

    def restart(self, *, checkpoint):
        if checkpoint and not self.shards:
            self.flow.checkpoint()
        clock = self.flow.clock
        self.flow.close()
        self.flow = self.opened()
        assert self.flow.clock == clock
        self.watch()

    def check(self):
        for name, sql in self.case.views.items():
            while (one := self.watches[name].get(timeout=0)) is not None:
                told_rows = one[1].to_arrow()
                weights = told_rows.column("_weight").to_pylist()
                plain = told_rows.drop_columns(["_weight"])
                for row, weight in zip(plain.to_pylist(), weights, strict=True):
                    self.seen[name][tuple(map(comparable, row.values()))] += weight
            found = rows_of(self.flow.snapshot(name))
            assert found == +self.seen[name], f"{name}: the deltas do not add up"
            assert not -self.seen[name]
            query = told(sql, self.flow.clock)
            wanted = rows_of(self.expected(query))
            assert found == wanted, f"{name} at {self.flow.clock} in {self.case.zone}: {sql}\n{found} is not\n{wanted}"

    def expected(self, query):
        flow = IncrementalFlow(time_zone=self.case.zone)
        return flow.sql(query, tables={"t": self.flow.snapshot("t")})


def failed(seed, folder, shards=None):
    case = ClockCase(seed)
    life = Life(case, folder, shards)
    now = case.start
    try:
        for step in range(STEPS):
            dice = case.dice.random()
            if dice < 0.4:
                life.flow.tick("t", case.changes(now))
            elif dice < 0.9:
                now = case.later(now) if step else now
                life.flow.advance(now)
            else:
                life.restart(checkpoint=dice < 0.95)
            life.check()
    finally:
        life.flow.close()


@pytest.mark.parametrize("seed", range(10))
def test_views_that_follow_the_clock_equal_queries_of_a_fixed_time(seed, tmp_path):
    failed(seed, tmp_path / "flow")


@pytest.mark.parametrize("seed", range(3))
def test_in_shards_too(seed, tmp_path):
    failed(seed, tmp_path, shards=1 + seed % 3)


@pytest.mark.campaign
def test_a_thousand_random_clocks(tmp_path):
    wrong = []
    for seed in seeds(1000):
        try:
            failed(seed, tmp_path / str(seed), shards=3 if seed % 4 == 0 else None)
        except Exception as error:  # noqa: BLE001 - all that is wrong is shown together
            wrong.append((seed, repr(error)[:500]))
    assert not wrong, "\n".join(f"seed {seed}: {error}" for seed, error in wrong)
