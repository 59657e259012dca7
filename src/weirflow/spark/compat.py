"""Every fact that is another one in another version of Spark or PySpark, from 4.1 on; all other modules ask here.

Which jars a connector has for which Spark is data, and is in ``weirflow.spark.jars.packages``. Importing this module
imports no pyspark: some facts are needed before there is a Spark, and by those who only look.
"""

from __future__ import annotations

import atexit
import contextlib
import inspect
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    import pyarrow as pa

T = TypeVar("T")

LEAST_JAVA = 17
"""The first Java that Spark runs on."""

JAVA_MODULE_OPTIONS = (
    "-XX:+IgnoreUnrecognizedVMOptions",
    *(
        f"--add-opens={package}=ALL-UNNAMED"
        for package in (
            "java.base/java.lang",
            "java.base/java.lang.invoke",
            "java.base/java.lang.reflect",
            "java.base/java.io",
            "java.base/java.net",
            "java.base/java.nio",
            "java.base/java.util",
            "java.base/java.util.concurrent",
            "java.base/java.util.concurrent.atomic",
            "java.base/jdk.internal.ref",
            "java.base/sun.nio.ch",
            "java.base/sun.nio.cs",
            "java.base/sun.security.action",
            "java.base/sun.util.calendar",
            "java.security.jgss/sun.security.krb5",
        )
    ),
    "-Djdk.reflect.useDirectMethodHandle=false",
    "-Dio.netty.tryReflectionSetAccessible=true",
    "-Dio.netty.allocator.type=pooled",
    "-Dio.netty.handler.ssl.defaultEndpointVerificationAlgorithm=NONE",
    "--enable-native-access=ALL-UNNAMED",
)
"""What Spark's launcher opens to itself (``org.apache.spark.launcher.JavaModuleOptions``).

Its incubator vector module is left out: only linear algebra in MLlib uses it, and it makes every start print a warning
and skip the archived module graph.
"""

USERS_FUNCTIONS_FIRST = {"spark.sql.functionResolution.sessionOrder": "first"}
"""A function of the user's hides a built-in one of its name: always so in 4.1, by this setting in 4.3."""


def spark_version() -> str:
    """The version of the installed PySpark, which is that of the Spark inside it."""
    import pyspark  # noqa: PLC0415 - see the module

    return pyspark.__version__


def spark_line(version: str) -> str:
    """What connectors are made for: the first two numbers of a version of Spark.

    >>> spark_line("4.1.3")
    '4.1'
    """
    return ".".join(version.split(".")[:2])


def arrow_schema(columns: Any, **options: Any) -> pa.Schema:
    """PySpark's Arrow schema of Spark's columns, with times in UTC: 4.3 must be told the zone, 4.1 takes no other."""
    from pyspark.sql.pandas.types import to_arrow_schema  # noqa: PLC0415 - see the module

    zone: dict[str, Any] = {"timezone": "UTC"} if "timezone" in inspect.signature(to_arrow_schema).parameters else {}
    return to_arrow_schema(columns, **options, **zone)


def ending_quietly(items: Iterator[T]) -> Iterator[T]:
    """The same iterator over a frame, not begun yet, which may now be dropped after its Spark is gone.

    As it is collected PySpark tells Spark to stop. From 4.3 on it then closes the connection too, which sends what
    could not be sent once more, and Python prints that error although nobody can act on it.
    """
    if inspect.isgenerator(items):
        reader: Any = inspect.getgeneratorlocals(items).get("self")
        if hasattr(reader, "_sockfile"):
            reader._sockfile = _QuietlyClosed(reader._sockfile)  # noqa: SLF001 - PySpark has no public way to it
    return items


class _QuietlyClosed:
    """A file whose ``close`` raises nothing, even if what it holds cannot be written any more."""

    def __init__(self, file: Any) -> None:
        self._file = file

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self._file.close()


def has_real_time_mode(frame: Any) -> bool:
    """Whether a native frame's query can run in real-time mode: 4.1 has the trigger, but PySpark no name for it."""
    writer = frame.writeStream
    return _names_real_time(writer) or (hasattr(writer, "_jwrite") and "RealTime" in dir(_jvm_trigger(frame)))


def real_time(writer: Any, every: Any) -> Any:
    """PySpark's streaming writer with the trigger of real-time mode; see ``has_real_time_mode``."""
    if _names_real_time(writer):
        return writer.trigger(realTime=every)
    writer._jwrite.trigger(_jvm_trigger(writer._df).RealTime(every))  # noqa: SLF001 - as said there
    return writer


def _names_real_time(writer: Any) -> bool:
    return "realTime" in inspect.signature(writer.trigger).parameters


def _jvm_trigger(frame: Any) -> Any:
    return frame.sparkSession.sparkContext._jvm.org.apache.spark.sql.streaming.Trigger  # noqa: SLF001 - the only way


def state_serializer(handle: Any) -> Any | None:
    """What turns values of ``transformWithState`` into bytes, if this PySpark has it where it can be replaced.

    It has ``_serialize_to_bytes(schema, data)`` and ``pickleSer``; None in a version that does it otherwise.
    """
    client = getattr(handle, "_statefulProcessorApiClient", None)
    return client if hasattr(client, "_serialize_to_bytes") and hasattr(client, "pickleSer") else None


def key_switch(handle: Any) -> Callable[[tuple[Any, ...]], None] | None:
    """What makes another key of ``transformWithState`` the current one, if this PySpark has it: its worker uses it."""
    switch = getattr(getattr(handle, "_statefulProcessorApiClient", None), "set_implicit_key", None)
    return switch if callable(switch) else None


def end_release_threads(client: Any) -> None:
    """End the threads that tell a Connect server which results of ``client`` were read; its channel is closed.

    4.1 has one pool of them for all clients, which ``client.close()`` ends. In 4.3 every result has its own, which
    nobody ends: it lives as long as the result, or an error that was raised while it was read.
    """
    from pyspark.sql.connect.client.reattach import (  # noqa: PLC0415 - see the module
        ExecutePlanResponseReattachableIterator,
    )

    results = getattr(ExecutePlanResponseReattachableIterator, "_instances", None)
    # Its references, copied in one step: other threads add to it.
    for reference in tuple(results.data) if results is not None else ():
        result = reference()
        if getattr(result, "_stub", None) is not client._stub:  # noqa: SLF001 - PySpark has no public way to it
            continue
        with result._lock:  # noqa: SLF001 - under which it makes its pool
            pool = vars(result).get("_release_thread_pool_instance")
            result._release_thread_pool_instance = _NoThreads()  # noqa: SLF001 - what it would make anew
        if pool is not None:
            pool.shutdown(wait=False)


class _NoThreads(Executor):
    """Takes work and does none: the server of a released session has nothing left to be told."""

    def submit(self, _: Callable[..., Any], /, *__: Any, **___: Any) -> Future[Any]:
        done: Future[Any] = Future()
        done.set_result(None)
        return done


def forget_at_exit(client: Any) -> None:
    """Take back what a Connect client registered to be done at exit, under another name in each of 4.1 and 4.3.

    PySpark does not, and it would keep the client until then.
    """
    in_4_1 = client._cleanup_ml_cache  # noqa: SLF001 - PySpark has no public way to it
    atexit.unregister(getattr(client, "_on_exit", in_4_1))
