"""``Server``: one process that owns a Session and lets others reach it."""

from __future__ import annotations

import logging
import os
import socket
import sys
import tempfile
import threading
from collections.abc import Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from weirflow.arguments import Folder, Seconds, checked
from weirflow.errors import ConfigError, DependencyMissing, SinkFailed, WeirflowError
from weirflow.server.access.audit import AuditLog
from weirflow.server.access.gate import Gate
from weirflow.server.access.tokens import Tokens
from weirflow.server.coordinator import Coordinator
from weirflow.server.kept import Kept
from weirflow.server.nodes import ServerNodes
from weirflow.server.results.spool import Spool, SpoolLimits
from weirflow.server.session import served_session
from weirflow.server.settings import ServerConfig, ServerSettings, load_config, parse_address
from weirflow.server.store import is_kept, open_store
from weirflow.streaming.detached.order import JobOrder
from weirflow.types import Profile

if TYPE_CHECKING:
    from weirflow.metadata.store import Metadata
    from weirflow.server.flight.cancelling import Cancelling
    from weirflow.server.flight.door import FlightDoor
    from weirflow.server.http.door import HttpDoor

_log = logging.getLogger(__name__)


@checked
class Server(AbstractContextManager["Server"]):
    """Owns a Session, its flows, sinks, streaming queries and jobs, and lets others reach them over HTTP and Flight.

    >>> from weirflow import Server
    >>> with Server(session={"path": "data"}, http="127.0.0.1:8080") as server:  # doctest: +SKIP
    ...     server.wait()

    What is kept under a path, or in the stores of a distributed profile, is opened again at each start, even after the
    process was killed.

    Args:
        session: settings of the Session, such as ``path`` or ``endpoint``; see ``Settings``. A path makes it durable.
        config: a file ``weirflow.toml`` to read; by default the one in the current folder, if there is one.
        settings: those of the server, such as ``http``, ``flight`` and ``insecure``; ``weirflow serve --help`` lists
            them all. What is not given comes from ``WEIRFLOW_SERVER_*`` variables, then from the file.

    Raises:
        ConfigError: a setting cannot be used; nothing was started.
    """

    def __init__(
        self, session: Mapping[str, Any] | None = None, *, config: Folder | None = None, **settings: Any
    ) -> None:
        file = None if config is None else Path(config)
        self._config = load_config(file=file, session=session, server=settings)
        self._started = False
        self._stopped = threading.Event()
        self._asked = threading.Event()
        self._lock = threading.Lock()
        self._running: _Running | None = None

    @property
    def config(self) -> ServerConfig:
        """What it is started with."""
        return self._config

    def start(self) -> None:
        """Open what is kept, then listen; returns when requests are accepted. Does nothing the second time.

        Raises:
            ConfigError: there are no tokens, a startup function is wrong, or an address cannot be used.
            DependencyMissing: the extra ``server`` is not installed.
        """
        with self._lock:
            if self._started:
                return
            self._started = True
            self._running = _Running(self._config, self._asked.set)
            try:
                self._running.start()
            except BaseException:
                self._running.stop(0.0)
                self._stopped.set()
                raise

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    @property
    def http_url(self) -> str | None:
        """The address for HTTP; None if it does not listen."""
        door = self._parts.http
        return None if door is None else door.url

    @property
    def flight_url(self) -> str | None:
        """The address for Flight, as ``weirflow://host:port``; None if it does not listen."""
        return self._parts.flight_url

    @property
    def tokens(self) -> Tokens:
        """Who may use it; see ``weirflow tokens``."""
        return self._parts.gate.tokens

    @property
    def coordinator(self) -> Coordinator:
        """What its doors go through."""
        return self._parts.coordinator

    def wait(self, timeout: Seconds | None = None) -> bool:
        """Block until the server should end, by ``stop`` or because this node is drained; returns whether it should."""
        return self._asked.wait(timeout)

    def ask_to_stop(self) -> None:
        """Make ``wait`` return; may be called from a signal handler."""
        self._asked.set()

    def stop(self, within: Seconds | None = None) -> bool:
        """Refuse new requests, let current ones finish, and end; returns whether all have finished.

        Args:
            within: how many seconds this may take; the setting ``drain_seconds`` if None. Requests that are not done by
                then are cut off: their callers do not know whether they happened, and ask again with the same token.
        """
        self._asked.set()
        with self._lock:
            if self._running is None or self._stopped.is_set():
                return True
            seconds = self._config.server.drain_seconds if within is None else within
            try:
                return self._running.stop(seconds)
            finally:
                self._stopped.set()

    @property
    def _parts(self) -> _Running:
        if self._running is None or self._stopped.is_set():
            raise ConfigError("The server does not run.", hint="start() it first")
        return self._running


class _Running:
    """A server from its start to its end."""

    def __init__(self, config: ServerConfig, ask_to_stop: Any) -> None:
        settings = config.server
        self._config = config
        self._ask_to_stop = ask_to_stop
        self.http: HttpDoor | None = None
        self.flight: FlightDoor | None = None
        self._spool: Spool | None = None
        self._nodes: ServerNodes | None = None
        self._cancelling: Cancelling | None = None
        self._kept_alive: list[Any] = []
        self._scratch: tempfile.TemporaryDirectory[str] | None = None
        self._store: Metadata = open_store(config.session)
        try:
            self.gate = Gate(Tokens(self._store), issuer_of(settings), insecure=settings.insecure)
            self._require_callers()
            self._session = served_session(config.session)
        except BaseException:
            self._store.close()
            raise
        audit = AuditLog(audit_file(config))
        self.coordinator = Coordinator(self._session, self.gate, limits=settings.limits, audit=audit, ready=False)
        self._kept = Kept(self._store)

    def _require_callers(self) -> None:
        """A server that nobody could use is not started."""
        settings = self._config.server
        if settings.insecure or settings.issuer is not None or self.gate.tokens.all():
            return
        if is_kept(self._config.session):
            hint = "make one: weirflow tokens create NAME --role admin, with the --path of the server; or --insecure"
        else:
            hint = "a Session without a path stores no tokens: give it a --path, or use --insecure on this machine"
        raise ConfigError("The server has no tokens, so nobody could use it.", hint=hint)

    def start(self) -> None:
        settings = self._config.server
        place = spool_place(self._config)
        if place is None:
            self._scratch = tempfile.TemporaryDirectory(prefix="weirflow-spool-")
            place = self._scratch.name
        most = settings.spool_bytes
        self._spool = Spool(place, SpoolLimits(settings.spool_seconds, most, most // 2, most // 4))
        name = settings.node or f"{socket.gethostname()}/{os.getpid()}"
        self._nodes = ServerNodes(self._store, name, on_drain=self._ask_to_stop, hosts=self._executor_hosts)
        certificate = _certificate(settings)
        if settings.http is not None:
            self.http = self._open_http(settings.http, certificate)
        if settings.flight is not None:
            self.flight = self._open_flight(settings.flight, certificate)
        for function in settings.startup:
            self._run_startup(function)
        for flow, error in self.coordinator.open_flows().items():
            _log.error("the flow %s could not be opened: %s", flow, error)
        for flow_opened in self.coordinator.opened_flows():
            self._kept.start_sinks(flow_opened)
        self._kept.start_jobs(self._session)
        self._nodes.join(self._reached_at(), {"http": self.http.url if self.http else None, "flight": self.flight_url})
        self.coordinator.ready.set()
        if settings.warm:
            threading.Thread(target=self._warm, name="weirflow-warm", daemon=True).start()

    def stop(self, seconds: float) -> bool:
        """Take down what was put up, in whatever state that is; whether everything under way has finished."""
        if self._nodes is not None:
            self._nodes.draining()
        self.coordinator.draining.set()
        if self.http is not None:
            self.http.end_streams()
        is_done = self.coordinator.drain(seconds)
        if not is_done:
            _log.warning("%d requests are cut off", len(self.coordinator.under_way))
            self._session.operations.cancel_all()
        for door in (self.flight, self.http, self._cancelling):
            if door is not None:
                door.close()
        try:
            self._session.close()
        except SinkFailed as error:
            _log.warning("%s", error)
        if self._spool is not None:
            self._spool.close()
        if self._scratch is not None:
            self._scratch.cleanup()
        if self._nodes is not None:
            self._nodes.leave()
        self.coordinator.audit.close()
        self._store.close()
        return is_done

    @property
    def flight_url(self) -> str | None:
        """See ``Server``."""
        if self.flight is None or self._config.server.flight is None:
            return None
        host = parse_address(self._config.server.flight)[0]
        scheme = "weirflow" if self._config.server.tls_certificate is None else "weirflow+tls"
        return f"{scheme}://{f'[{host}]' if ':' in host else host}:{self.flight.port}"

    # Doors

    def _open_http(self, address: str, certificate: tuple[Path, Path] | None) -> HttpDoor:
        try:
            from weirflow.server.flight.cancelling import Cancelling  # noqa: PLC0415 - needs an extra
            from weirflow.server.flight.statements import Statements  # noqa: PLC0415 - as above
            from weirflow.server.http.calls import Parts  # noqa: PLC0415 - as above
            from weirflow.server.http.door import HttpDoor  # noqa: PLC0415 - as above
        except ImportError as error:
            raise DependencyMissing.extra("server", needed_for="A server") from error  # noqa: S610 - not Django
        assert self._spool is not None
        assert self._nodes is not None
        self._cancelling = Cancelling()
        statements = Statements(self.coordinator, self._spool, self._cancelling)
        parts = Parts(self.coordinator, statements, self._spool, self._kept, self._nodes)
        return HttpDoor(parts, address, certificate=certificate)

    def _open_flight(self, address: str, certificate: tuple[Path, Path] | None) -> FlightDoor:
        try:
            from weirflow.server.flight.door import FlightDoor, Tls  # noqa: PLC0415 - needs an extra
        except ImportError as error:
            raise DependencyMissing.extra("server", needed_for="A server") from error  # noqa: S610 - not Django
        assert self._spool is not None
        host, port = parse_address(address)
        tls = None
        if certificate is not None:
            tls = Tls(*(one.read_bytes() for one in certificate))
        most = self._config.server.flight_watches
        return FlightDoor(self.coordinator, self._spool, host, port, tls=tls, most_watches=most, nodes=self._nodes)

    def _reached_at(self) -> str:
        settings = self._config.server
        own = self.http.address if self.http is not None else (settings.flight or "")
        return settings.advertise or own

    # What it has

    def _run_startup(self, function: str) -> None:
        """Call a function of the user's with the Session; the streaming queries that it returns are kept."""
        call = JobOrder({}, list(sys.path), function, function).loaded()
        try:
            self._kept_alive.append(call(self._session))
        except WeirflowError:
            raise
        except Exception as error:
            raise ConfigError(
                f"The startup function {function} raised {type(error).__name__}: {error}.",
                hint="correct it, or leave it out",
            ) from error

    def _warm(self) -> None:
        try:
            _ = self._session.spark
        except WeirflowError as error:
            _log.warning("Spark could not be started yet: %s", error)

    def _executor_hosts(self) -> list[str]:
        """The hosts of executors that Spark has now; none if it was not started, or does not tell."""
        return self._session.executor_hosts()


def issuer_of(settings: ServerSettings) -> Any:
    """Who else may say who somebody is; None if nobody may."""
    if settings.issuer is None or settings.jwks is None:
        return None
    try:
        from weirflow.server.access.jwt import JwtIssuer  # noqa: PLC0415 - needs an extra
    except ImportError as error:
        raise DependencyMissing.extra("server", needed_for="JWTs") from error  # noqa: S610 - not Django
    return JwtIssuer(settings.issuer, settings.jwks, audience=settings.audience, claim=settings.claim)


def audit_file(config: ServerConfig) -> Path | None:
    """Where the audit log is; None for the logger."""
    if config.server.audit_log is not None:
        return config.server.audit_log
    return None if config.session.path is None else config.session.path / "server" / "audit.log"


def spool_place(config: ServerConfig) -> str | None:
    """Where results wait to be fetched; None for a folder that goes with the server."""
    if config.server.spool is not None:
        return config.server.spool
    session = config.session
    if session.durability_profile is Profile.DISTRIBUTED_DURABLE and session.checkpoint_uri is not None:
        return f"{session.checkpoint_uri.rstrip('/')}/spool"
    if session.path is not None:
        return str(session.path / "spool")
    return None


def _certificate(settings: ServerSettings) -> tuple[Path, Path] | None:
    if settings.tls_certificate is None or settings.tls_key is None:
        return None
    for file in (settings.tls_certificate, settings.tls_key):
        if not file.is_file():
            raise ConfigError(f"There is no file {file}, which TLS needs.")
    return settings.tls_certificate, settings.tls_key
