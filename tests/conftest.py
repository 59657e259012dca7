"""One Spark for the whole run: tests share an embedded Session, and those about sessions ask for it to be closed."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings
from support import class_archive
from support.postgres import PostgresDatabase, PostgresServer, postgres_server
from support.shared_session import SharedSession
from support.side_by_side import NO_SPARK, PARTS, PLAIN, part_of, run_beside, spark_of

from weirflow.ivm import compiled

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from weirflow import Session

MANY = 100
"""With so many tests on Spark it is worth while to make the starts of JVMs fast first."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--campaign", action="store_true", help="also run the long versions of the tests")
    parser.addoption("--part", choices=PARTS, help="the tests that share a Spark, start their own, or need none")
    parser.addoption("--beside", type=Path, help="after its part, help the processes with the others and this folder")


def pytest_configure(config: pytest.Config) -> None:
    """Random examples are few and the same but in campaigns; compiled kernels are loaded as they are in long runs."""
    campaign = config.getoption("--campaign")
    # On a busy machine an example may take its time.
    settings.register_profile("tests", deadline=None, derandomize=not campaign, max_examples=200 if campaign else 50)
    settings.load_profile("tests")
    if os.environ.get("WEIRFLOW_COMPILED") != "off":
        _load_compiled(config.getoption("--beside"))
    os.environ.setdefault("JAVA_TOOL_OPTIONS", class_archive.JAVA_OPTIONS)


def _load_compiled(beside: Path | None) -> None:
    """Of processes side by side one compiles, if nobody has before, and the others read what it has written."""
    if beside is None:
        compiled.load()
        return
    with (beside / "compiling").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        compiled.load()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out campaigns, unless asked for, and other parts, unless helping. Shared Spark first: it starts once."""
    part = config.getoption("--part")
    if not config.getoption("--campaign"):
        items[:] = [item for item in items if item.get_closest_marker("campaign") is None]
    if part is not None and config.getoption("--beside") is None:
        items[:] = [item for item in items if part_of(item) == part]
    items.sort(key=spark_of)


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop(session: pytest.Session) -> bool | None:
    """Share the tests with the other processes, if there are any."""
    folder = session.config.getoption("--beside")
    if folder is None or session.config.option.collectonly or session.testsfailed:
        return None
    part = session.config.getoption("--part")
    if part != PLAIN and sum(spark_of(item) != NO_SPARK for item in session.items) > MANY:
        class_archive.prepare(folder)
    run_beside(session, part, folder)
    return True


@pytest.fixture(params=["compiled", "numpy"])
def either_kernel(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """The test runs twice: with the compiled kernels and without."""
    if request.param == "numpy":
        monkeypatch.setattr(compiled, "kernels", None)


_SHARED = SharedSession()


@pytest.fixture(scope="session")
def shared_session() -> Iterator[SharedSession]:
    yield _SHARED
    _SHARED.close()


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Tests without Spark find a process without its threads and children; they come after those with one."""
    if spark_of(item) == NO_SPARK:
        _SHARED.close()


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    """A PostgreSQL server; each test asks it for a database of its own."""
    with postgres_server() as server:
        yield server


@pytest.fixture
def pgvector(postgres: PostgresServer) -> Callable[[], PostgresDatabase]:
    """Makes empty databases of the server, with pgvector."""
    postgres.execute("CREATE EXTENSION IF NOT EXISTS vector SCHEMA public")
    return lambda: PostgresDatabase(postgres, postgres.make_uri())


@pytest.fixture
def session(shared_session: SharedSession) -> Iterator[Session]:
    """An embedded Session on two cores; names registered and tables written in it are gone after the test."""
    with shared_session.borrowed() as opened:
        yield opened


@pytest.fixture(scope="session")
def own_spark(shared_session: SharedSession) -> Callable[[], None]:
    """To be called before a test or a fixture starts a Spark of its own, which it must also stop: one has room."""
    return shared_session.close


@pytest.fixture
def exclusive_spark(own_spark: Callable[[], None]) -> None:
    """No Spark runs in this process, so the test may start its own; it must also stop it."""
    own_spark()
