"""What a shard's task is told, and what it reports: plain data that travels between processes."""

from __future__ import annotations

import msgspec

from weirflow.errors import DataError, ResultTooLarge, StorageError, WeirflowError
from weirflow.ivm.durability.manifest import Pack, RunRef

StateRefs = list[list[RunRef]]
"""For each state of a node, where its runs are."""


class RowsRef(msgspec.Struct, frozen=True):
    """Rows on their way: in here, or in a file of the flow's storage, with the SHA-256 of its bytes.

    Attributes:
        ordered: whether a row behind another was also given behind it.
    """

    count: int
    data: bytes | None = None
    file: str | None = None
    sha256: str | None = None
    ordered: bool = True


class RefusedDelta(Exception):
    """A delta is no change of its source, whatever views there are; as in one process, its tick is not kept.

    Args:
        error: what the user is told.
    """

    def __init__(self, error: WeirflowError) -> None:
        super().__init__(error)
        self.error = error


class Failure(msgspec.Struct, frozen=True):
    """An error of a task that is the user's business.

    Attributes:
        refused: whether the delta is to blame, before any view has seen it.
    """

    code: str
    message: str
    hint: str | None
    uri: str = ""
    refused: bool = False

    def error(self) -> WeirflowError:
        """The error to raise."""
        for kind in (DataError, ResultTooLarge):
            if self.code == kind.code:
                return kind(self.message, hint=self.hint)
        return StorageError(self.message, uri=self.uri, hint=self.hint)


class TickTask(msgspec.Struct, frozen=True):
    """One of the ticks that a job runs.

    Attributes:
        epoch: the tick's.
        deltas: for each shard, what comes in; only in the first stage.
    """

    epoch: int
    deltas: dict[int, dict[str, list[RowsRef]]] = {}


class StageTask(msgspec.Struct, frozen=True):
    """What all shards of one stage need to know.

    Attributes:
        uri: the flow's storage.
        definition: the definition of the flow, as bytes.
        shards: how many there are.
        ticks: the ticks that it runs one after the other, at least one; a fill is a tick without deltas.
        stage: its number.
        fill: the number of the group that is filled; None for a tick.
        versions: for each shard, which attempt made the state it begins with.
        states: for each node that the stage keeps or reads and each shard, where its state is.
        packs: the files that hold it.
        released: for each such node and shard, how many rows its states had when the last were let go.
        watermarks: of the sources.
        inline: outputs of at most this many bytes are sent in the report.
    """

    uri: str
    definition: bytes
    shards: int
    ticks: list[TickTask]
    stage: int
    fill: int | None
    versions: dict[int, str]
    states: dict[str, dict[int, StateRefs]]
    packs: dict[str, Pack]
    released: dict[str, dict[int, list[int]]]
    watermarks: dict[str, int | None]
    inline: int = 1 << 18

    @property
    def epoch(self) -> int:
        """The last epoch that it works for."""
        return self.ticks[-1].epoch


class TickReport(msgspec.Struct, frozen=True):
    """What one tick did on a shard.

    Attributes:
        outputs: what views change, and the late rows of sources under their side output's name.
        rows_in: rows of the deltas that came in.
    """

    outputs: dict[str, RowsRef] = {}
    rows_in: int = 0


class ShardReport(msgspec.Struct, frozen=True):
    """What one task did.

    Attributes:
        version: the version of the state that it left.
        states: where the changed state of nodes is.
        packs: the files that it wrote.
        released: how many rows the states of a node had when the last were let go, of nodes where some were.
        ticks: what each of them did.
        watermarks: of sources that have one, as far as this shard knows.
        warm: whether the state was in this process already.
        where: the executor.
        load_ms, step_ms, save_ms: how long its parts took.
        rows: how many rows the stage keeps on the shard.
        failure: why nothing of the report counts.
    """

    stage: int
    shard: int
    version: str = ""
    states: dict[str, StateRefs] = {}
    packs: dict[str, Pack] = {}
    released: dict[str, list[int]] = {}
    ticks: list[TickReport] = []
    watermarks: dict[str, int | None] = {}
    warm: bool = False
    where: str = ""
    load_ms: float = 0.0
    step_ms: float = 0.0
    save_ms: float = 0.0
    rows: int = 0
    failure: Failure | None = None

    @property
    def rows_in(self) -> int:
        """Rows of the deltas that came in."""
        return sum(tick.rows_in for tick in self.ticks)


ALL = -1
"""Takes the place of a shard for what every shard has."""


class MovedState(msgspec.Struct):
    """Where state is that was moved.

    Attributes:
        states: for each node and shard, its states. Several for one are to be added up.
        packs: the files that hold it.
        passed: rows that are passed on to a later step's node, on a shard.
    """

    states: list[tuple[int, int, StateRefs]] = []
    packs: dict[str, Pack] = {}
    passed: list[tuple[int, int, RowsRef]] = []


class Parcel(msgspec.Struct, frozen=True, array_like=True):
    """What a shard sends to a shard of the next stage: rows of a node's output, or a report that is passed on.

    Attributes:
        tick: to which tick of the job the rows belong.
    """

    node: int
    rows: bytes = b""
    report: ShardReport | None = None
    tick: int = 0


encode_parcel = msgspec.msgpack.Encoder().encode
decode_parcel = msgspec.msgpack.Decoder(Parcel).decode
encode_task = msgspec.msgpack.Encoder().encode
decode_task = msgspec.msgpack.Decoder(StageTask).decode
