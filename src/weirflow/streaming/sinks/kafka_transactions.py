"""``KafkaTransactions``: a Kafka topic that gets each batch of a streaming query as one transaction."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from typing_extensions import override

from weirflow.errors import ConfigError, DependencyMissing, StorageError, StreamConflict, WeirflowError
from weirflow.failpoints import failpoint
from weirflow.streaming.query.batches import BatchGate
from weirflow.streaming.sinks.sink import StreamSink, require_local
from weirflow.types import Delivery

if TYPE_CHECKING:
    import pyarrow as pa

    from weirflow.streaming.host import StreamHost
    from weirflow.streaming.query.spec import QuerySpec

T = TypeVar("T")

_PREFIX = "kafka."
_SERVERS = "bootstrap.servers"
_OURS = ("transactional.id", "enable.idempotence", "group.id", "enable.auto.commit", "isolation.level")
_TYPES = {
    "key": ("string", "binary"),
    "value": ("string", "binary"),
    "partition": ("int",),
    "headers": ("array<struct<key:string,value:binary>>",),
}
_TIMEOUT = 60.0
_log = logging.getLogger(__name__)

_PAUSE = 0.2
_PASSING = ("NOT_COORDINATOR", "COORDINATOR_LOAD_IN_PROGRESS", "COORDINATOR_NOT_AVAILABLE")
"""What a broker says while it, or another one, takes over the transactions and groups of one that was lost."""
_DEFAULTS = {"transaction.timeout.ms": "600000", "compression.type": "lz4"}


@dataclass(frozen=True)
class KafkaTransactions(StreamSink):
    """A topic whose readers see each batch once, if they read what is committed."""

    name: str = "kafka-transactions"
    delivery: Delivery = Delivery.EXACTLY_ONCE
    why: str = "each transaction holds the batch, read_committed sees it once"

    def check(self, spec: QuerySpec) -> None:
        """See ``StreamSink``; ``DependencyMissing`` if the client library is not installed."""
        super().check(spec)
        require_local(spec, "the Kafka client")
        _check_options(spec.sink_options)
        _check_columns(dict(spec.frame.dtypes))

    @override
    def taker(self, spec: QuerySpec, host: StreamHost, query_id: Callable[[], str]) -> BatchGate:
        options = spec.sink_options
        written = TransactionWriter(options, query_id, lambda native: host.wrap(native).to_batches())
        return BatchGate(written, f"The transaction for {options['topic']}", written.close)


def _check_options(options: Mapping[str, str]) -> None:
    try:
        import confluent_kafka  # noqa: F401, PLC0415 - an optional part
    except ImportError as error:
        raise DependencyMissing.extra("kafka", needed_for="Writing to Kafka in transactions") from error  # noqa: S610 - no Django
    for name in ("topic", _PREFIX + _SERVERS):
        if name not in options:
            raise ConfigError(f"No {name} is given for kafka-transactions.", hint=f'set option("{name}", ...)')
    for name in options:
        if name != "topic" and not name.startswith(_PREFIX):
            raise ConfigError(f"kafka-transactions has no option {name!r}.", hint='it takes "topic" and "kafka.*"')
        if name.removeprefix(_PREFIX) in _OURS:
            raise ConfigError(f"{name} makes transactions work and cannot be set.")


def _check_columns(found: Mapping[str, str]) -> None:
    if "value" not in found:
        raise ConfigError("A Kafka record needs a column 'value'.", hint="select the record's value AS value")
    for name, kind in found.items():
        if name not in _TYPES:
            raise ConfigError(f"{name!r} is not a part of a Kafka record.", hint=f"there are {', '.join(_TYPES)}")
        if kind not in _TYPES[name]:
            raise ConfigError(f"{name!r} is {kind}, not {' or '.join(_TYPES[name])}.", hint="cast it")


class TransactionWriter:
    """Takes the batches of one query.

    The transaction of a batch also holds its number, as the offset of a consumer group that has the query's id: a batch
    that comes again after it was committed is left out. The transactional id is the query's, too, so whoever goes on
    with the query ends what a process before it has left, and that one can write no more.

    Args:
        options: ``topic``, and those of the client as ``kafka.*``.
        query_id: the query's id; waits until it is known.
        batches: the rows of a native frame, a part at a time.
    """

    def __init__(
        self,
        options: Mapping[str, str],
        query_id: Callable[[], str],
        batches: Callable[[Any], Iterator[pa.RecordBatch]],
    ) -> None:
        given = {name.removeprefix(_PREFIX): value for name, value in options.items() if name.startswith(_PREFIX)}
        self._topic = options["topic"]
        self._client = given
        self._query_id = query_id
        self._batches = batches
        self._producer: Any = None
        self._group: Any = None
        self._done = -1

    def __call__(self, frame: Any, number: int) -> None:
        """Write a batch, unless it is there."""
        from confluent_kafka import KafkaException  # noqa: PLC0415 - an optional part

        try:
            if self._producer is None:
                self._open()
            if number <= self._done:
                frame.write.format("noop").mode("append").save()  # or Spark would miss the state of its operators
                return
            self._write(frame, number)
            self._done = number
        except KafkaException as error:
            self._producer = None  # the next attempt begins anew
            raise self._typed(error, number) from error

    def close(self) -> None:
        """Let go of the connection to the broker."""
        self._producer = None

    def _open(self) -> None:
        from confluent_kafka import Consumer, Producer, TopicPartition  # noqa: PLC0415 - an optional part

        name = f"weirflow-{self._query_id()}"
        producer = Producer({**_DEFAULTS, **self._client, "transactional.id": name}, logger=_log)
        _patiently(lambda: producer.init_transactions(_TIMEOUT))  # from here on no other process can commit
        producer_only = ("transaction.timeout.ms", "compression.type", "linger.ms", "acks", "batch.size")
        shared = {key: value for key, value in self._client.items() if key not in producer_only}
        consumer = Consumer({**shared, "group.id": name, "enable.auto.commit": False}, logger=_log)
        try:
            place = TopicPartition(self._topic, 0)
            [position] = _patiently(lambda: consumer.committed([place], timeout=_TIMEOUT))
            self._group = consumer.consumer_group_metadata()
        finally:
            consumer.close()
        self._done = position.offset - 1 if position.offset >= 0 else -1
        self._producer = producer

    def _write(self, frame: Any, number: int) -> None:
        from confluent_kafka import TopicPartition  # noqa: PLC0415 - an optional part

        producer = self._producer
        producer.begin_transaction()
        try:
            for batch in self._batches(frame):
                for record in batch.to_pylist():
                    self._produce(record)
            done = [TopicPartition(self._topic, 0, number + 1)]
            _patiently(lambda: producer.send_offsets_to_transaction(done, self._group, _TIMEOUT))
            producer.flush(_TIMEOUT)
            failpoint("kafka.before_commit")
            _patiently(lambda: producer.commit_transaction(_TIMEOUT))
        except BaseException:
            self._abort()
            raise
        failpoint("kafka.after_commit")

    def _produce(self, record: dict[str, Any]) -> None:
        headers = [(one["key"], one["value"]) for one in record.get("headers") or ()]
        partition = record.get("partition")
        while True:
            try:
                self._producer.produce(
                    self._topic,
                    value=record["value"],
                    key=record.get("key"),
                    partition=-1 if partition is None else partition,
                    headers=headers,
                )
            except BufferError:  # the client's memory is full until the broker has taken some
                self._producer.poll(0.1)
            else:
                self._producer.poll(0)
                return

    def _abort(self) -> None:
        from confluent_kafka import KafkaException  # noqa: PLC0415 - an optional part

        try:
            self._producer.abort_transaction(_TIMEOUT)
        except KafkaException:  # init_transactions of the next producer aborts it
            self._producer = None

    def _typed(self, error: Any, number: int) -> WeirflowError:
        from confluent_kafka import KafkaError  # noqa: PLC0415 - an optional part

        reason = error.args[0]
        if reason.code() in (KafkaError._FENCED, KafkaError.INVALID_PRODUCER_EPOCH):  # noqa: SLF001 - its public name
            return StreamConflict(
                f"Another process now runs this query and writes to the topic {self._topic}.",
                hint="run a query in one process at a time",
            )
        return StorageError(
            f"Kafka did not take batch {number} for the topic {self._topic}: {reason.str()}.",
            uri=f"kafka://{self._client[_SERVERS]}/{self._topic}",
            hint="the batch comes again when the query is started again",
        )


def _patiently(call: Callable[[], T]) -> T:
    """Call again, for a minute at most, while the broker asks for that."""
    from confluent_kafka import KafkaException  # noqa: PLC0415 - an optional part

    deadline = time.monotonic() + _TIMEOUT
    while True:
        try:
            return call()
        except KafkaException as error:
            reason = error.args[0]
            if not (reason.retriable() or reason.name() in _PASSING) or time.monotonic() > deadline:
                raise
            time.sleep(_PAUSE)
