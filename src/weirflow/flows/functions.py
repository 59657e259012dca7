"""``SessionFunctions``: functions that users register, in every Spark session that views are read and run in."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Callable
from typing import Any
from weakref import WeakKeyDictionary

from weirflow.ivm.kernel.expressions.python_calls import missing, other_version
from weirflow.sql.registered import DeclaredFunction, UserFunction


class SessionFunctions:
    """The functions of a Session by name, in any case of letters as in Spark.

    Args:
        spark: the Session's native session; starts Spark. Without it there are no functions.
    """

    def __init__(self, spark: Callable[[], Any] | None = None) -> None:
        self._spark = spark
        self._declared: dict[str, DeclaredFunction] = {}
        self._calls: dict[tuple[str, str], Callable[..., Any]] = {}
        self._registrations: dict[str, Callable[[Any], Any]] = {}
        self._changes = 0
        self._installed: WeakKeyDictionary[Any, int] = WeakKeyDictionary()
        self._lock = threading.Lock()

    def declare(self, given: str | None, function: Any, returns: Any, *, deterministic: bool, version: str) -> Any:
        """Register a function, under a name of its own if none is given; returns what frames call it by."""
        from weirflow.spark.user_functions import registration  # noqa: PLC0415 - imports pyspark

        name = given or f"anonymous_{uuid.uuid4().hex}"
        register = registration(name, function, returns)
        assert self._spark is not None
        made = register(self._spark())
        is_plain = callable(function) and not hasattr(function, "evalType")
        with self._lock:
            self._declared[name.casefold()] = DeclaredFunction(
                name, version, deterministic, function if is_plain else None, is_anonymous=given is None
            )
            if is_plain:
                self._calls[name.casefold(), version] = function
            self._registrations[name.casefold()] = register
            self._changes += 1
        return made

    def find(self, name: str) -> DeclaredFunction | None:
        """The function of a name."""
        return self._declared.get(name.casefold())

    def function(self, name: str, version: str | None) -> UserFunction | None:
        """See ``CallingEngine``. Views that are made with a version keep it, whatever was registered later."""
        if version is None:
            last = self.find(name)
            return None if last is None or last.call is None else UserFunction(last.call, last.version)
        call = self._calls.get((name.casefold(), version))
        return None if call is None else UserFunction(call, version)

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
        is_classic = hasattr(native, "_jsparkSession")
        if self._spark is None or (self._installed.get(native) == changes and not (anew and is_classic)):
            return
        if is_classic:
            from weirflow.spark.user_functions import copy_functions  # noqa: PLC0415 - imports pyspark

            copy_functions(self._spark(), native, list(self._declared))
        else:
            for register in list(self._registrations.values()):
                register(native)
        self._installed[native] = changes
