"""Sessions on a Spark Connect server, opened and closed within a deadline.

PySpark's own client retries a dead server for ten minutes and waits for a silent one for ever. Here one
call with a deadline asks the server for its version before a session is made, and closing never waits
for a server that is gone.

Importing this module needs the ``connect`` extra and raises ``DependencyMissing`` without it.
"""

from __future__ import annotations

import contextlib
import os
import threading
import uuid

from weirflow.errors import (
    AuthenticationFailed,
    ConfigError,
    DependencyMissing,
    EndpointError,
    EndpointUnreachable,
)
from weirflow.spark.compat import end_release_threads, forget_at_exit
from weirflow.spark.launch.endpoint import parse_endpoint
from weirflow.spark.launch.probe import CHECK

try:
    import grpc
    from pyspark.sql.connect import proto
    from pyspark.sql.connect.client import ChannelBuilder
    from pyspark.sql.connect.client.retries import DefaultPolicy, RetryPolicyState
    from pyspark.sql.connect.proto.base_pb2_grpc import SparkConnectServiceStub
    from pyspark.sql.connect.session import SparkSession
except ImportError as missing:
    raise DependencyMissing.extra(  # noqa: S610  not Django's extra()
        "connect", needed_for="A Spark Connect endpoint (sc://)"
    ) from missing
from weirflow.spark.launch.endpoint import Endpoint

CONNECT_SECONDS = 10.0
MAX_CONNECT_SECONDS = 3600.0
RELEASE_SECONDS = 3.0
RETRIES = 30
RETRY_PAUSE_MS = 1000
GRACE_MS = 500  # so that the deadline of the call, which says more, passes first

# PySpark's process-wide switch: while set, pyspark.sql.functions builds Connect columns.
MODE_FLAG = "SPARK_CONNECT_MODE_ENABLED"

_lock = threading.Lock()
_open_sessions: set[str] = set()
_flag_is_ours = False


def connect(endpoint: str, token: str | None, timeout: float = CONNECT_SECONDS) -> SparkSession:
    """Open a session on the Spark Connect server at ``endpoint`` (``sc://HOST[:PORT][/;NAME=VALUE...]``).

    Raises ``ConfigError`` before anything is sent, ``AuthenticationFailed`` when the server refuses the
    token, and ``EndpointUnreachable`` when no Spark Connect server answers within ``timeout`` seconds.
    After an error nothing is left open, and there is never a fallback to a local Spark.

    The token goes out over TLS, except to this very machine (``localhost``, 127.0.0.1, ::1) when the
    address does not ask for ``use_ssl=true``: a server there usually has no certificate, and gRPC makes
    sure that the peer is local. Only ``token`` counts; PySpark's environment variable is not read.

    While any session is open, ``pyspark.sql.functions`` builds Connect columns in the whole process.
    """
    where = parse_endpoint(endpoint)
    _check_arguments(where, token, timeout)
    channels = _Channels(where, token, timeout)
    _ask_version(channels, where, timeout)
    session = SparkSession.builder.channelBuilder(channels).create()  # type: ignore[arg-type]  # as documented
    session.client.set_retry_policies([_Patience()])
    _opened(session)
    return session


def clone_connect(session: SparkSession) -> SparkSession:
    """Another session beside one of ``connect``, with its settings and tables; ``close_connect`` is for it, too."""
    clone = session.cloneSession()
    clone.client.set_retry_policies([_Patience()])
    _opened(clone)
    return clone


def close_connect(session: SparkSession) -> None:
    """Release a session of these two on the server and close its channel; does nothing the second time.

    Takes seconds even when the server is gone or silent: then the server's own idle timeout is left to
    release what it holds. Operations still running in other threads fail.
    """
    with _lock:
        if session.session_id not in _open_sessions:
            return
        _open_sessions.remove(session.session_id)
        last = not _open_sessions
    client = session.client
    for policy in client.get_retry_policies():
        if isinstance(policy, _Patience):
            policy.give_up()
    channel, builder = client._channel, client._builder  # noqa: SLF001  the only way to a deadline
    request = proto.ReleaseSessionRequest(
        session_id=session.session_id,
        user_context=proto.UserContext(user_id=builder.userId or ""),
        client_type=builder.userAgent,
    )
    with contextlib.suppress(grpc.RpcError, ValueError):  # ValueError: someone closed the channel before
        _stub(channel).ReleaseSession(request, timeout=RELEASE_SECONDS, metadata=builder.metadata())
    # Before client.close(), which waits for the threads that use the channel.
    channel.close()
    end_release_threads(client)
    if last:
        client.close()  # otherwise it would wait for the threads of the other sessions
    client._closed = True  # noqa: SLF001  as client.close() does
    # The session's finalizer closes again. It may run in any thread, also in one that closing waits for.
    client.close = _nothing  # type: ignore[method-assign]  # as said above
    # Not session.stop(): that has no deadline, and may stop an unrelated local Spark of this process.
    forget_at_exit(client)
    if SparkSession._default_session is session:  # noqa: SLF001  as SparkSession.stop() does
        SparkSession._default_session = None  # noqa: SLF001  as above
    if getattr(SparkSession._active_session, "session", None) is session:  # noqa: SLF001  as above
        SparkSession._active_session.session = None  # noqa: SLF001  as above
    _drop_mode_flag()


class _Channels(ChannelBuilder):
    """Makes gRPC channels to one endpoint. PySpark copies it for ``cloneSession``: it holds plain values."""

    def __init__(self, endpoint: Endpoint, token: str | None, timeout: float) -> None:
        self._target = endpoint.hosts[0]
        self._token = token
        self.secure = bool(endpoint.use_ssl) or (token is not None and not self._target.is_loopback)
        params = dict(endpoint.params)
        params.setdefault(self.PARAM_SESSION_ID, str(uuid.uuid4()))
        params.setdefault(self.PARAM_USER_ID, os.environ.get("SPARK_USER") or os.environ.get("USER") or "")
        options: list[tuple[str, int]] = [
            # A channel of another session that found the server dead must not make this one wait.
            ("grpc.use_local_subchannel_pool", 1),
            ("grpc.max_reconnect_backoff_ms", RETRY_PAUSE_MS),
            # How long one connection may take; gRPC's 20 s would outlive a channel that was closed before.
            ("grpc.min_reconnect_backoff_ms", int(timeout * 1000) + GRACE_MS),
        ]
        if self._target.is_loopback:
            options.append(("grpc.enable_http_proxy", 0))
        super().__init__(channelOptions=options, params=params)

    @property
    def token(self) -> str | None:
        return self._token

    @property
    def host(self) -> str:
        return self._target.host

    def metadata(self) -> list[tuple[str, str]]:
        """The headers of every call. gRPC's own token credentials would leave a thread object per channel."""
        bearer = [] if self._token is None else [("authorization", f"Bearer {self._token}")]
        return [*super().metadata(), *bearer]

    def toChannel(self) -> grpc.Channel:  # noqa: N802  PySpark's name
        if self.secure:
            return self._secure_channel(str(self._target), grpc.ssl_channel_credentials())
        if self._token is not None:
            return self._secure_channel(str(self._target), grpc.local_channel_credentials())
        return self._insecure_channel(str(self._target))


class _Patience(DefaultPolicy):
    """PySpark's rules on what to retry, for about half a minute instead of ten, and not once closing began.

    Short pauses matter: PySpark's background threads sleep through them before they notice a close.
    """

    def __init__(self) -> None:
        super().__init__(
            max_retries=RETRIES, max_backoff=RETRY_PAUSE_MS, jitter=0, max_server_retry_delay=RETRY_PAUSE_MS
        )
        self._given_up = False

    def give_up(self) -> None:
        self._given_up = True

    def can_retry(self, e: BaseException) -> bool:
        return not self._given_up and super().can_retry(e)

    def to_state(self) -> RetryPolicyState:
        return _Attempts(self)


class _Attempts(RetryPolicyState):
    """Lets the last error through as it is; PySpark would add a warning of its own."""

    def can_retry(self, exception: BaseException) -> bool:
        return self._attempt < RETRIES and super().can_retry(exception)


def _check_arguments(where: Endpoint, token: str | None, timeout: float) -> None:
    if where.scheme != "sc":
        raise ConfigError(f"{where} is not a Spark Connect endpoint.", hint="it starts with sc://")
    if not 0 < timeout <= MAX_CONNECT_SECONDS:
        raise ConfigError(f"The timeout is {timeout}; it must be above zero, and at most {MAX_CONNECT_SECONDS:g} s.")
    if token is None:
        return
    if not (token and token.isascii() and token.isprintable() and " " not in token):
        raise ConfigError("The token is empty or holds characters that cannot be sent: use printable ASCII.")
    if where.use_ssl is False and not where.hosts[0].is_loopback:
        raise ConfigError(
            f"With use_ssl=false the token would cross the network to {where} unencrypted.",
            hint="leave use_ssl out, and put a server or proxy with a certificate there",
        )


def _ask_version(channels: _Channels, where: Endpoint, timeout: float) -> None:
    """Have one answer from the server, on a channel of its own which is closed again."""
    request = proto.AnalyzePlanRequest(
        session_id=channels.session_id or "",
        user_context=proto.UserContext(user_id=channels.userId or ""),
        client_type=channels.userAgent,
        spark_version=proto.AnalyzePlanRequest.SparkVersion(),
    )
    channel = channels.toChannel()
    try:
        _stub(channel).AnalyzePlan(request, timeout=timeout, metadata=channels.metadata())
    except grpc.RpcError as error:
        # Without the cause: gRPC's text may repeat what was sent.
        raise _explained(error, channels, where, timeout) from None
    finally:
        channel.close()


def _explained(error: grpc.RpcError, channels: _Channels, where: Endpoint, timeout: float) -> EndpointError:
    code = error.code()
    if code in {grpc.StatusCode.UNAUTHENTICATED, grpc.StatusCode.PERMISSION_DENIED}:
        return AuthenticationFailed(
            f"{where} requires a token and none was given."
            if channels.token is None
            else f"{where} refused the token.",
            hint="pass token=... with the value of the server's spark.connect.authenticate.token",
        )
    if code is grpc.StatusCode.UNIMPLEMENTED:
        return EndpointUnreachable(
            f"{where} answers, but is not a Spark Connect server.",
            hint="Spark Connect usually listens at port 15002; a standalone master is spark://HOST:PORT",
        )
    if code is grpc.StatusCode.DEADLINE_EXCEEDED:
        said = f"no answer within {timeout:g} s"
    else:
        said = str(error.details()).rpartition("last error: ")[2].removeprefix("UNKNOWN: ").rstrip(".")
        if channels.token is not None:
            said = said.replace(channels.token, "***")
    tls = (
        "; it was spoken to over TLS, which a plain Spark Connect server does not understand" if channels.secure else ""
    )
    return EndpointUnreachable(f"{where} cannot be reached: {said}.", hint=CHECK + tls)


def _nothing() -> None:
    pass


def _stub(channel: grpc.Channel) -> SparkConnectServiceStub:
    return SparkConnectServiceStub(channel)  # type: ignore[no-untyped-call]  # generated code


def _opened(session: SparkSession) -> None:
    global _flag_is_ours  # noqa: PLW0603  the flag it mirrors is process-wide
    with _lock:
        _open_sessions.add(session.session_id)
        if MODE_FLAG not in os.environ:
            os.environ[MODE_FLAG] = "1"
            _flag_is_ours = True


def _drop_mode_flag() -> None:
    global _flag_is_ours  # noqa: PLW0603  as above
    with _lock:
        if _flag_is_ours and not _open_sessions:
            os.environ.pop(MODE_FLAG, None)
            _flag_is_ours = False
