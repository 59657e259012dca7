"""Process functions under exceptions at every point: a batch is done once or not at all, and its output comes once."""

from collections import Counter
from contextlib import closing, suppress
from functools import partial
from itertools import count

import pytest
from support.interrupts import at_depth, pester, raise_at, some_points

from weirflow.checkpoint import open_checkpoint_storage
from weirflow.checkpoint.keyed_state.checkpoints import KeyedStateCheckpoints
from weirflow.errors import StateError, WeirflowError
from weirflow.process import ProcessFunction, ProcessRunner
from weirflow.state import InMemoryStateBackend, KeyGroupRange, RocksDbStateBackend, StateDescriptor, TtlStateBackend

# A file that was opened when the exception came is closed by the collector.
pytestmark = pytest.mark.filterwarnings("ignore:unclosed file:ResourceWarning")

FILES = ("process/", "state/")
WRITING = (
    "process/runner.py",
    "process/instance.py",
    "state/buffer.py",
    "state/store.py",
    "state/backends/ttl.py",
    "state/backends/memory.py",
)
ALL = KeyGroupRange(0, 128)
BATCHES = [
    [("a", 10), ("b", 11)],
    [("a", 20), ("c", 21), ("a", 22)],
    [("b", 40), ("d", 41)],
    [("a", 60)],
]


class Visits(ProcessFunction):
    """Counts the rows of each key, and tells each count, that of 5 ms later, and what was broadcast."""

    output = "key STRING, count BIGINT, told STRING, price BIGINT"

    def open(self, slots):
        self.seen = slots.value(StateDescriptor("seen", str, int))
        self.times = slots.list(StateDescriptor("times", str, list[int]))
        self.price = slots.broadcast(StateDescriptor("price", None, dict[str, int]))

    def on_broadcast(self, _, row):
        self.price.put("price", row["price"])

    def on_element(self, ctx, key, _):
        self.seen.set(self.seen.get(0) + 1)
        self.times.add(ctx.timestamp)
        ctx.timers.register(ctx.timestamp + 5)
        self._tell(ctx, key, "element")

    def on_timer(self, ctx, key, *_):
        self._tell(ctx, key, "timer")

    def _tell(self, ctx, key, told):
        ctx.emit({"key": key, "count": self.seen.get(0), "told": told, "price": self.price.get("price", 0)})


def rows(batch):
    return [{"key": key, "at": at} for key, at in batch]


class Job:
    """A runner and what came out of it."""

    def __init__(self, parallelism=2, backends=None):
        self.backends = {} if backends is None else backends
        self.runner = ProcessRunner(
            Visits(), key="key", event_time="at", parallelism=parallelism, backend=self._backend, clock=lambda: 0
        )
        self.out = []

    def _backend(self, groups):
        return self.backends.setdefault(groups, TtlStateBackend(InMemoryStateBackend(), lambda: 0))

    def run(self, number):
        self.take(self.runner.run(rows(BATCHES[number]), broadcast=[{"price": number}]))

    def take(self, result):
        if result is not None:
            self.out.append(Counter(tuple(row.values()) for row in result.rows.to_pylist()))

    def settle(self, number):
        """After an exception: finish the batch, or run it again; an output that was returned is not taken twice."""
        self.take(self.runner.resume())
        if self.runner.epoch == number:
            self.run(number)


def undisturbed():
    job = Job()
    for number in range(len(BATCHES)):
        job.run(number)
    return job.out


@pytest.fixture(scope="module")
def expected():
    return undisturbed()


def interrupted(job, number, n, exception, files):
    """Run a batch that an exception may end, and settle it."""
    done = len(job.out)
    with raise_at(n, exception, files) as thrown:
        try:
            job.run(number)
        except (exception, WeirflowError):
            assert thrown.where is not None
    if thrown.where is not None and len(job.out) == done:
        if job.runner._unfinished is not None:
            for call in (lambda: job.run(number), job.runner.advance, job.runner.finish):
                with pytest.raises(StateError, match=r"call resume\(\)"):
                    call()
        job.settle(number)


@pytest.mark.parametrize("exception", [KeyboardInterrupt, MemoryError])
@pytest.mark.parametrize(
    "most", [pytest.param(25, id="some"), pytest.param(600, id="many", marks=pytest.mark.campaign)]
)
@pytest.mark.parametrize("files", [FILES, WRITING])
def test_a_batch_is_done_once(exception, most, files, expected):
    counted = Job()
    counted.run(0)
    for n in some_points(partial(counted.run, 1), most, files):
        job = Job()
        job.run(0)
        interrupted(job, 1, n, exception, files)
        job.run(2)
        again = Job(backends=job.backends)
        assert (again.runner.epoch, again.runner.watermark) == (3, 41)
        again.run(3)
        assert [*job.out, *again.out] == expected


def test_a_batch_near_the_end_of_the_stack(expected):
    outcomes = set()
    for depth in range(1, 60, 5):
        job = Job()
        job.run(0)
        try:
            at_depth(depth, lambda job=job: job.run(1))
            outcomes.add("done")
        except (RecursionError, WeirflowError):
            job.settle(1)
            outcomes.add("refused")
        job.run(2)
        job.run(3)
        assert job.out == expected
    assert outcomes == {"done", "refused"}


def test_exceptions_of_another_thread(expected):
    """Epochs, state and output stay in step while a thread runs batch after batch and gets exceptions."""
    job = Job()
    numbers = []

    def step():
        job.take(job.runner.resume())
        epoch = job.runner.epoch
        result = job.runner.run([{"key": "a", "at": epoch}, {"key": "b", "at": epoch}])
        numbers.append((epoch, result))

    pester(step, times=30)
    job.runner.resume()
    job.runner.run([{"key": "a", "at": 10**9}, {"key": "b", "at": 10**9}])
    result = job.runner.advance()
    again = Job(backends=job.backends)
    total = again.runner.run([{"key": "a", "at": 2 * 10**9}, {"key": "b", "at": 2 * 10**9}])
    counts = {row["key"]: row["count"] for row in total.rows.to_pylist() if row["told"] == "element"}
    assert result.rows.num_rows == 0
    # Each batch has counted one row of each key; the last advance none.
    assert counts == {"a": again.runner.epoch - 1, "b": again.runner.epoch - 1}


class Interrupting(Visits):
    """Raises what it is told to."""

    def on_element(self, ctx, key, row):
        super().on_element(ctx, key, row)
        if key == "c":
            raise self.raised


@pytest.mark.parametrize("raised", [KeyboardInterrupt, SystemExit, GeneratorExit])
def test_what_a_callback_raises_undoes_the_batch(raised, expected):
    function = Interrupting()
    function.raised = raised
    runner = ProcessRunner(function, key="key", event_time="at", parallelism=2, clock=lambda: 0)
    runner.run(rows(BATCHES[0]), broadcast=[{"price": 0}])
    with pytest.raises(raised):
        runner.run(rows(BATCHES[1]), broadcast=[{"price": 1}])
    assert runner.resume() is None
    assert (runner.epoch, runner.watermark) == (1, 11)
    without = [row for row in rows(BATCHES[1]) if row["key"] != "c"]
    found = runner.run(without, broadcast=[{"price": 1}])
    wanted = expected[1] - Counter({one: 1 for one in expected[1] if one[0] == "c"})
    assert Counter(tuple(row.values()) for row in found.rows.to_pylist()) == wanted


@pytest.mark.parametrize("kind", ["memory", "rocksdb"])
@pytest.mark.parametrize(
    "most", [pytest.param(12, id="some"), pytest.param(300, id="many", marks=pytest.mark.campaign)]
)
def test_checkpoints(kind, most, tmp_path, expected):
    """A checkpoint that an exception came into is there or not, can be saved again, and is gone on from."""
    folders = (tmp_path / str(number) for number in count())
    backend = InMemoryStateBackend() if kind == "memory" else RocksDbStateBackend(next(folders), fsync=0)
    job = Job(1, backends={ALL: backend})
    job.run(0)
    job.run(1)
    files = ("checkpoint/", "process/", "state/")

    def checkpointed(folder):
        return KeyedStateCheckpoints(open_checkpoint_storage(folder))

    for n in some_points(lambda: job.runner.snapshot(checkpointed(next(folders))), most, files):
        checkpoints = checkpointed(next(folders))
        with raise_at(n, KeyboardInterrupt, files), suppress(KeyboardInterrupt):
            job.runner.snapshot(checkpoints)
        assert checkpoints.epochs() in ([], [2])
        assert job.runner.snapshot(checkpoints).epoch == 2

    def restored():
        path = None if kind == "memory" else next(folders)
        with suppress(KeyboardInterrupt):
            return checkpoints.restore(ALL, path=path)
        return checkpoints.restore(ALL, path=path)

    for n in some_points(lambda: restored().close(), most, files):
        with raise_at(n, KeyboardInterrupt, files):
            found = restored()
        with closing(found):
            again = Job(1, backends={ALL: found})
            again.run(2)
            assert again.out == expected[2:3]
    backend.close()
