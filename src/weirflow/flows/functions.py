"""``SessionFunctions``: functions that users register, in every Spark session that views are read and run in."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any
from weakref import WeakKeyDictionary

from weirflow.errors import ConfigError
from weirflow.ivm.kernel.expressions.python_calls import missing, other_version
from weirflow.sql.registered import DeclaredFunction, UserFunction

_BUILTIN = "org.apache.spark.sql.catalyst.analysis.FunctionRegistry"


class SessionFunctions:
    """The functions of a Session by name, in any case of letters as in Spark.

    Args:
        spark: the Session's native session; starts Spark.
    """

    def __init__(self, spark: Callable[[], Any]) -> None:
        self._spark = spark
        self._declared: dict[str, DeclaredFunction] = {}
        self._changes = 0
        self._installed: WeakKeyDictionary[Any, int] = WeakKeyDictionary()
        self._lock = threading.Lock()

    def declare(self, name: str, function: Any, returns: Any, *, deterministic: bool, version: str) -> Any:
        """Register a function; returns what PySpark calls it by in frames, or None for one of Java's."""
        from pyspark.sql import functions  # noqa: PLC0415 - imports pyspark

        native = self._spark()
        made: Any = None
        call = None
        if isinstance(function, str):
            native.udf.registerJavaFunction(name, function, returns)
        elif hasattr(function, "evalType"):
            made = native.udf.register(name, function)
        elif callable(function):
            if returns is None:
                raise ConfigError(
                    f"The function {name!r} does not say what it returns.", hint="pass returns=, for example 'STRING'"
                )
            plain = functions.udf(function, returns)
            made = native.udf.register(name, plain if deterministic else plain.asNondeterministic())
            call = function
        else:
            raise ConfigError(
                f"A {type(function).__name__} is no function.",
                hint="pass a Python function, what udf() or pandas_udf() returned, or the name of a Java class",
            )
        with self._lock:
            self._declared[name.casefold()] = DeclaredFunction(name, version, deterministic, call)
            self._changes += 1
        return made

    def find(self, name: str) -> DeclaredFunction | None:
        """The function of a name."""
        return self._declared.get(name.casefold())

    def function(self, name: str) -> UserFunction | None:
        """See ``CallingEngine``."""
        found = self.find(name)
        return None if found is None or found.call is None else UserFunction(found.call, found.version)

    def require(self, wanted: dict[str, str]) -> None:
        """Raise ``FunctionMissing`` unless these functions are there, in these versions."""
        for name, version in wanted.items():
            found = self.find(name)
            if found is None:
                raise missing(name, version)
            if found.version != version:
                raise other_version(name, version, found.version)

    def install(self, native: Any, *, anew: bool = True) -> None:
        """Have another session know the functions that the Session's own knows.

        Args:
            native: a session of the same Spark.
            anew: look also for functions that were registered without ``declare``.
        """
        changes = self._changes
        if not hasattr(native, "_jsparkSession") or (not anew and self._installed.get(native) == changes):
            return
        jvm = native._jvm  # noqa: SLF001 - no public way, here and below
        known = self._spark()._jsparkSession.sessionState().functionRegistry()  # noqa: SLF001
        own = native._jsparkSession.sessionState().functionRegistry()  # noqa: SLF001
        builtin = getattr(jvm, _BUILTIN).builtin()
        added = known.listFunction().toSet().diff(builtin.listFunction().toSet()).toSeq()
        for at in range(added.size()):
            name = added.apply(at)
            own.registerFunction(name, known.lookupFunction(name).get(), known.lookupFunctionBuilder(name).get())
        self._installed[native] = changes
