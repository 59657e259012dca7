"""Ask a standalone master whether it will have us, before Spark asks for over a minute.

A driver that meets a silent master, or one with another secret, retries three times for twenty seconds and then says
"all masters are unresponsive", whatever the reason. One lookup with a deadline tells the reasons apart.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Self

from py4j.protocol import Py4JError, Py4JJavaError

from weirflow.errors import AuthenticationFailed, EndpointError, EndpointUnreachable

if TYPE_CHECKING:
    from weirflow.spark.launch.endpoint import HostPort

# What the chain of causes says when the two sides disagree about the secret, or about having one.
_REFUSALS = ("Outbox is stopped", "SaslMessage", "SaslException", "Authentication failed", "EOFException")


def check_masters(jvm: Any, hosts: Sequence[HostPort], secret: str | None, timeout: float) -> None:
    """Return when one of the masters accepts us; raise the last one's ``EndpointError`` when none does.

    Args:
        jvm: the gateway's view of a JVM with Spark on its class path and no SparkContext yet.
        hosts: the masters, of which one is enough.
        secret: the cluster's ``spark.authenticate.secret``, or None for an open cluster.
        timeout: seconds for all of them together.
    """
    deadline = time.monotonic() + timeout
    failure: EndpointError | None = None
    for host in hosts:
        seconds = max(deadline - time.monotonic(), 1.0)
        failure = _lookup_failure(jvm, host, secret, seconds)
        if failure is None:
            return
    if failure is not None:
        raise failure


class MasterWatch:
    """Ends the start of a driver whose master goes silent meanwhile, which Spark itself would wait for over a minute.

    A start that only takes its time, on a busy machine, goes on: the masters are asked again, and one that answers
    is waited for.

    Args:
        seconds: how long a start may take before the masters are asked again, and again.
        ask: raises ``EndpointError`` when none of them answers; it runs in a thread of the watch.
        give_up: ends the start.
    """

    def __init__(self, seconds: float, ask: Callable[[], None], give_up: Callable[[], None]) -> None:
        self._seconds = seconds
        self._ask = ask
        self._give_up = give_up
        self._started = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="weirflow-master-watch", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._started.set()

    def _watch(self) -> None:
        while not self._started.wait(self._seconds):
            try:
                self._ask()
            except (EndpointError, Py4JError, OSError):
                if not self._started.is_set():
                    self._give_up()
                return


def _lookup_failure(jvm: Any, host: HostPort, secret: str | None, seconds: float) -> EndpointError | None:
    conf = jvm.org.apache.spark.SparkConf(False)  # noqa: FBT003 - Java has no keywords: loadDefaults
    for name, value in _lookup_conf(secret, f"{seconds * 1000:.0f}ms").items():
        conf.set(name, value)
    config = getattr(jvm.org.apache.spark.internal.config, "package$").__getattr__("MODULE$")
    security = jvm.org.apache.spark.SecurityManager(conf, jvm.scala.Option.empty(), config.AUTH_SECRET_FILE())
    address = jvm.org.apache.spark.util.Utils.localHostName()
    env = jvm.org.apache.spark.rpc.RpcEnv.create("preflight", address, address, 0, conf, security, 1, True)  # noqa: FBT003 - clientMode
    try:
        env.setupEndpointRef(jvm.org.apache.spark.rpc.RpcAddress(host.host, host.port), "Master")
    except Py4JJavaError as error:
        return _explained(host, _causes(error), seconds)
    finally:
        env.shutdown()
    return None


def _lookup_conf(secret: str | None, timeout: str) -> dict[str, str]:
    conf = {
        "spark.rpc.lookupTimeout": timeout,
        "spark.rpc.askTimeout": timeout,
        "spark.rpc.io.connectionCreationTimeout": timeout,
        "spark.rpc.io.maxRetries": "0",
    }
    if secret is not None:
        conf |= {
            "spark.authenticate": "true",
            "spark.authenticate.secret": secret,
            "spark.network.crypto.enabled": "true",
            "spark.network.auth.rpcTimeout": timeout,
        }
    return conf


def _causes(error: Py4JJavaError) -> str:
    texts = []
    cause = error.java_exception
    while cause is not None:
        texts.append(str(cause.toString()))
        cause = cause.getCause()
    return "\n".join(texts)


def _explained(host: HostPort, causes: str, seconds: float) -> EndpointError:
    if any(sign in causes for sign in _REFUSALS):
        return AuthenticationFailed(
            f"The Spark master at {host} refused the token.",
            hint="pass the cluster's spark.authenticate.secret as token=, or none if the cluster has none; "
            "if it is right, check that a standalone master listens there",
        )
    return EndpointUnreachable(
        f"No Spark master answered at {host} within {seconds:.0f} s.",
        hint="check the address, and that a standalone master of this Spark version runs there",
    )
