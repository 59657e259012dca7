"""The Kafka sink waits for a broker that is about to take over, and for nothing else."""

import pytest
from confluent_kafka import KafkaError, KafkaException

from weirflow.streaming.sinks import kafka_transactions


@pytest.mark.parametrize(
    ("error", "calls"),
    [
        (KafkaError(KafkaError.NOT_COORDINATOR), 3),
        (KafkaError(KafkaError.COORDINATOR_LOAD_IN_PROGRESS), 3),
        (KafkaError(KafkaError._TIMED_OUT, "later", False, True), 3),
        (KafkaError(KafkaError._FENCED), 1),
        (KafkaError(KafkaError.TOPIC_AUTHORIZATION_FAILED), 1),
    ],
)
def test_what_passes_is_waited_for(monkeypatch, error, calls):
    monkeypatch.setattr(kafka_transactions, "_PAUSE", 0.0)
    made = []

    def call():
        made.append(error)
        if len(made) < 3:
            raise KafkaException(error)
        return "done"

    if calls == 1:
        with pytest.raises(KafkaException):
            kafka_transactions._patiently(call)
    else:
        assert kafka_transactions._patiently(call) == "done"
    assert len(made) == calls


def test_patience_ends(monkeypatch):
    monkeypatch.setattr(kafka_transactions, "_PAUSE", 0.0)
    monkeypatch.setattr(kafka_transactions, "_TIMEOUT", 0.05)

    def call():
        raise KafkaException(KafkaError(KafkaError.NOT_COORDINATOR))

    with pytest.raises(KafkaException):
        kafka_transactions._patiently(call)
