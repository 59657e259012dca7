"""The Spark behind a Session, whatever its placement: started from settings, steered, closed."""

from __future__ import annotations

import logging
import os
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from weirflow.errors import EndpointUnreachable, SessionConflict, UnsupportedError
from weirflow.spark.compat import USERS_FUNCTIONS_FIRST, spark_version
from weirflow.spark.errors import quiet_pyspark_loggers, translated
from weirflow.spark.jars.packages import connector_conf, resolve_jars
from weirflow.spark.jobs.control import ConnectControl, DriverControl, JobControl
from weirflow.spark.launch.endpoint import Endpoint, parse_endpoint
from weirflow.spark.launch.home import spark_home
from weirflow.spark.launch.java import find_java
from weirflow.spark.launch.local import SCRATCH, Launch, acquire_driver, has_driver, release_driver
from weirflow.spark.launch.probe import probe_tcp
from weirflow.types import Placement

if TYPE_CHECKING:
    from weirflow.config import Settings

_log = logging.getLogger(__name__)

# What every Session asks of Spark, wherever that runs; its spark_conf wins over all of it.
_SESSION_CONF = {
    "spark.sql.session.timeZone": "UTC",
    **USERS_FUNCTIONS_FIRST,
}
# What every driver of ours is started with, besides.
_BASE_CONF = {
    **_SESSION_CONF,
    "spark.app.name": "weirflow",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.catalogImplementation": "in-memory",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    # Workers without archives on their import path, reached by sockets in the file system: see daemon.py.
    "spark.python.daemon.module": "weirflow.spark.launch.daemon",
    "spark.python.unix.domain.socket.enabled": "true",
    # Spark's own rule, and what catalogs call their secrets besides.
    "spark.redaction.regex": "(?i)secret|password|token|access[.-]?key|credential",
}
_LISTS = ("spark.jars", "spark.sql.extensions")
# Settings that shape a driver of ours, of which a Spark Connect server has none.
_DRIVER_SETTINGS = ("packages", "cores", "driver_memory", "worker_python", "class_archive")


@dataclass(frozen=True)
class Engine:
    """A started Spark: the native session, its control, and where it is."""

    session: Any
    control: JobControl
    where: str
    version: str
    close: Callable[[], None]


def start_engine(settings: Settings, *, profile_conf: Mapping[str, str], warehouse: Path | None) -> Engine:
    """Start or reach the Spark that the settings name. Blocks for seconds; leaves nothing behind on failure.

    Args:
        settings: the Session's settings.
        profile_conf: what its durability profile asks of Spark.
        warehouse: where managed tables live; None for a folder that goes with the Session.
    """
    if settings.spark_log_level == "off":
        quiet_pyspark_loggers()
    if settings.placement is not Placement.DISTRIBUTED:
        cores = settings.cores or os.cpu_count() or 1
        conf = {"spark.driver.host": "127.0.0.1", "spark.sql.shuffle.partitions": str(cores)}
        if "delta" in settings.packages:
            # Delta reads the log of every table in fifty tasks by default, which on few cores takes seconds.
            conf["spark.databricks.delta.snapshotPartitions"] = str(cores)
        return _start_driver(settings, f"local[{cores}]", {**conf, **profile_conf}, warehouse, remote=None)
    endpoint = parse_endpoint(settings.endpoint or "")
    if endpoint.scheme == "sc":
        return _start_connect(settings, endpoint, profile_conf)
    return _start_standalone(settings, endpoint, profile_conf, warehouse)


def _start_driver(
    settings: Settings,
    master: str,
    conf: Mapping[str, str],
    warehouse: Path | None,
    *,
    remote: Endpoint | None,
) -> Engine:
    folder = warehouse.as_posix() if warehouse else f"{SCRATCH}/warehouse"
    jars = _package_jars(settings)
    conf = {**_BASE_CONF, **conf, "spark.sql.warehouse.dir": folder, **connector_conf(settings.packages, folder)}
    if remote is not None and jars:
        conf["spark.jars"] = ",".join(str(jar) for jar in jars)
    conf = _merged(conf, settings.spark_conf)
    loopback = remote is None or all(host.is_loopback for host in remote.hosts)
    launch = Launch(
        master=master,
        conf=tuple(sorted(conf.items())),
        memory=settings.driver_memory,
        cache_dir=settings.cache_dir,
        class_archive=settings.class_archive,
        worker_python=_worker_python(settings, remote),
        loopback=loopback,
        log_level=settings.spark_log_level,
        jars=jars,
        masters=remote.hosts if remote else (),
        start_timeout=settings.connect_timeout if remote else 0.0,
    )
    driver, session = acquire_driver(launch)
    return Engine(
        session=session,
        control=DriverControl(driver.context),
        where=master,
        version=session.version,
        close=lambda: release_driver(driver),
    )


def _start_standalone(
    settings: Settings, endpoint: Endpoint, profile_conf: Mapping[str, str], warehouse: Path | None
) -> Engine:
    _probe_any(endpoint, settings.connect_timeout)
    conf = dict(profile_conf)
    if settings.token is not None:
        conf["spark.authenticate"] = "true"
        conf["spark.authenticate.secret"] = settings.token.get_secret_value()
        conf["spark.network.crypto.enabled"] = "true"
    if settings.cores is not None:
        conf["spark.cores.max"] = str(settings.cores)
    return _start_driver(settings, endpoint.url, conf, warehouse, remote=endpoint)


def _start_connect(settings: Settings, endpoint: Endpoint, profile_conf: Mapping[str, str]) -> Engine:
    unusable = [name for name in _DRIVER_SETTINGS if name in settings.model_fields_set]
    if unusable:
        raise UnsupportedError(
            f"The setting {unusable[0]} configures the Session's own driver; a Spark Connect server already has one.",
            hint=f"leave it out and configure the server at {endpoint.url}",
        )
    if has_driver():
        raise SessionConflict(
            "This process runs a Spark driver, and PySpark cannot mix it with a Spark Connect session.",
            hint="close the other Session first, or use another process",
        )
    # The module needs the extra `connect` and says so.
    from weirflow.spark.launch.connect import close_connect, connect  # noqa: PLC0415

    token = settings.token.get_secret_value() if settings.token else None
    session = connect(settings.endpoint or "", token, settings.connect_timeout)
    try:
        with translated():
            for name, value in {**_SESSION_CONF, **profile_conf, **settings.spark_conf}.items():
                session.conf.set(name, value)
            version = session.version
    except BaseException:
        close_connect(session)
        raise
    return Engine(
        session=session,
        control=ConnectControl(session),
        where=endpoint.url,
        version=version,
        close=lambda: close_connect(session),
    )


def _probe_any(endpoint: Endpoint, timeout: float) -> None:
    """Of several masters one is enough: the others may be standing by."""
    deadline = time.monotonic() + timeout
    failure: EndpointUnreachable | None = None
    for host in endpoint.hosts:
        try:
            probe_tcp(host.host, host.port, max(deadline - time.monotonic(), 0.1))
        except EndpointUnreachable as error:
            failure = error
        else:
            return
    if failure is not None:
        raise failure


def _package_jars(settings: Settings) -> tuple[Path, ...]:
    if not settings.packages:
        return ()
    home = spark_home()
    jars = resolve_jars(
        settings.packages,
        spark_version=spark_version(),
        cache=settings.cache_dir,
        java=find_java().executable,
        ivy_jar=next(iter(sorted((home / "jars").glob("ivy-*.jar"))), home / "jars" / "ivy.jar"),
        on_progress=lambda line: _log.warning("%s", line),
    )
    return tuple(jars)


def _merged(conf: Mapping[str, str], own: Mapping[str, str]) -> dict[str, str]:
    """The user's conf over ours; lists that packages also need are joined instead of lost."""
    joined = {name: f"{conf[name]},{own[name]}" for name in _LISTS if name in conf and name in own}
    return {**conf, **own, **joined}


def _worker_python(settings: Settings, remote: Endpoint | None) -> Path:
    """On this machine workers run this interpreter; on a cluster PYSPARK_PYTHON may name another."""
    if settings.worker_python is not None:
        return settings.worker_python
    return Path(os.environ.get("PYSPARK_PYTHON", sys.executable) if remote else sys.executable)
