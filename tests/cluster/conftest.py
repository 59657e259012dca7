"""Real remote Sparks, one of each for the whole run."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from support.connect import ConnectServer
from support.standalone import StandaloneCluster

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(autouse=True)
def _alone(exclusive_spark: None) -> None:
    """A process that has a Spark of its own cannot reach another one."""


@pytest.fixture(scope="session")
def connect_server() -> Iterator[ConnectServer]:
    """A Spark Connect server with a token; shared, so leave it running."""
    with ConnectServer() as server:
        yield server


@pytest.fixture(scope="session")
def cluster() -> Iterator[StandaloneCluster]:
    """A standalone master with two workers and a secret; shared, so kill no worker of it."""
    with StandaloneCluster(workers=2, secret="a-secret-for-tests") as running:
        yield running.wait_ready()


@pytest.fixture(scope="session")
def mortal_cluster() -> Iterator[StandaloneCluster]:
    """A standalone master with two workers that may be killed, and must be replaced."""
    with StandaloneCluster(workers=2) as running:
        yield running.wait_ready()
