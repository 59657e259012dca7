"""One Spark with all connectors and one Kafka broker, for the whole run."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from support.connectors import available_connectors
from support.kafka import KafkaBroker
from support.plain_plans import plain_plans

if TYPE_CHECKING:
    from collections.abc import Iterator

    from support.shared_session import SharedSession

    from weirflow import Session


@pytest.fixture(scope="session")
def broker() -> Iterator[KafkaBroker]:
    """A Kafka broker; topics are the test's own."""
    with KafkaBroker() as running:
        yield running


@pytest.fixture
def connector_spark(shared_session: SharedSession) -> Iterator[Session]:
    """A Session with the connectors that there are for this Spark; a test asks for those it needs."""
    with shared_session.borrowed(
        packages=available_connectors("kafka", "iceberg", "delta", "sqlite", "postgresql")
    ) as opened:
        yield opened


@pytest.fixture
def session(connector_spark: Session) -> Session:
    return connector_spark


_OF_FEW_ROWS = {
    "test_flow_changes",
    "test_flow_tables",
    "test_materialized",
    "test_session_tables",
    "test_streaming_sinks",
}


@pytest.fixture(autouse=True)
def _plain(request: pytest.FixtureRequest) -> Iterator[None]:
    """Queries of a few rows have one partition."""
    if request.module.__name__.rpartition(".")[2] not in _OF_FEW_ROWS or "session" not in request.fixturenames:
        yield
        return
    with plain_plans(request.getfixturevalue("session").spark):
        yield
