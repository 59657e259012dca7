"""The closed choices that appear in Weirflow's public signatures."""

from __future__ import annotations

from enum import StrEnum
from typing import TypeVar

from weirflow.errors import ConfigError, did_you_mean

Choice = TypeVar("Choice", bound=StrEnum)


def one_of(kind: type[Choice], wanted: str, said: str) -> Choice:
    """The choice of this name.

    Args:
        kind: the choices.
        wanted: one of them, or its name.
        said: how the error begins if it is neither, such as "No write mode is called".

    Raises:
        ConfigError: there is none of this name.
    """
    try:
        return kind(wanted)
    except ValueError:
        raise ConfigError(
            f"{said} {wanted!r}; there are {', '.join(kind)}.", hint=did_you_mean(str(wanted), kind)
        ) from None


class Placement(StrEnum):
    """Where a Session's Spark runs."""

    EMBEDDED = "embedded"
    """Local Spark in a JVM that lives and dies with this process."""
    SINGLE_NODE = "single-node"
    """Local Spark, with durable stores under one folder."""
    DISTRIBUTED = "distributed"
    """An explicit remote endpoint: Spark Connect or a standalone master."""


class Profile(StrEnum):
    """A durability profile: which stores hold state, checkpoints and metadata."""

    DEV_LOCAL = "dev-local"
    """Everything in memory; nothing survives the process."""
    SINGLE_NODE_DURABLE = "single-node-durable"
    """Everything on this host's disk; survives a restart."""
    DISTRIBUTED_DURABLE = "distributed-durable"
    """Object storage and PostgreSQL; survives the loss of any host."""


class VectorMetric(StrEnum):
    """How the distance of two vectors is measured; a smaller distance is nearer."""

    COSINE = "cosine"
    """1 minus the cosine of the angle between them."""
    L2 = "l2"
    """The length of their difference."""
    INNER = "inner"
    """0 minus their inner product."""


class VectorIndexKind(StrEnum):
    """What finds the nearest vectors approximately."""

    IVF = "ivf"
    """An index of lists of vectors around centres; the nearest lists are searched (faiss)."""
    HNSW = "hnsw"
    """An index that follows a graph of near vectors (usearch)."""


class SourceSpread(StrEnum):
    """How the rows of a source are spread over the shards of a flow."""

    BY_USE = "by use"
    """By what they are first joined on or grouped by, so that they need not move again."""
    EVENLY = "evenly"
    """By all of their columns, or their key: for rows of which most have the same value where they are joined."""
    EVERYWHERE = "everywhere"
    """All rows are on every shard: for small tables, to which joins need not move anything."""


class ClockKind(StrEnum):
    """What moves the clock that ``now()`` and ``current_date()`` in views of a flow read."""

    SYSTEM = "system"
    """Each tick of a flow with such views takes the system's time; ``advance`` does without rows."""
    MANUAL = "manual"
    """Only ``advance``, to the times it is given: for tests, and for data that has a time of its own."""


class ExplainMode(StrEnum):
    """What ``Session.explain`` prints."""

    LOGICAL = "logical"
    """The analysed and optimised logical plans."""
    PHYSICAL = "physical"
    """Spark's physical plan."""
    STAGES = "stages"
    """The physical plan cut at its exchanges, one block per stage."""


class OperationState(StrEnum):
    """The life of one operation."""

    RUNNING = "running"
    CANCELLING = "cancelling"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELLED = "cancelled"
    TIMED_OUT = "timed-out"


class SaveMode(StrEnum):
    """What a write does when the target exists."""

    ERROR = "error"
    """Raise ``AlreadyExists`` and write nothing."""
    APPEND = "append"
    """Add the rows."""
    OVERWRITE = "overwrite"
    """Replace what is there."""
    IGNORE = "ignore"
    """Leave what is there and write nothing."""


class SinkMode(StrEnum):
    """What a sink does with the deltas of a view."""

    CHANGELOG = "changelog"
    """Append them, each row with its weight and epoch."""
    UPSERT = "upsert"
    """Merge them by key, so that the table always equals the view."""


class OutputMode(StrEnum):
    """Which rows of its result a streaming query writes after each batch."""

    APPEND = "append"
    """Rows that will not change any more, once."""
    UPDATE = "update"
    """Rows that are new or have changed, as they are now."""
    COMPLETE = "complete"
    """All rows, as they are now."""


class QueryState(StrEnum):
    """The life of a streaming query."""

    RUNNING = "running"
    """A batch is under way."""
    WAITING = "waiting"
    """It waits for rows, or for its next trigger."""
    RESTARTING = "restarting"
    """It failed, and its restart policy has it started again."""
    FINISHED = "finished"
    """It has read all that it was asked to read."""
    STOPPED = "stopped"
    """It was stopped."""
    FAILED = "failed"
    """An error has ended it."""


class Delivery(StrEnum):
    """How often a row reaches a sink when a query is killed and goes on from its checkpoint."""

    EXACTLY_ONCE = "exactly-once"
    AT_LEAST_ONCE = "at-least-once"
    """The rows of the batch at hand may come again."""
    UNKNOWN = "as its connector documents"


class NodeState(StrEnum):
    """Whether a node takes new work."""

    RUNNING = "running"
    TERMINATING = "terminating"
    """It finishes what it has, and gets nothing new."""
