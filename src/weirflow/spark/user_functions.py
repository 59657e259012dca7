"""Functions of users in native sessions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from weirflow.errors import ConfigError


def registration(name: str, function: Any, returns: Any, *, deterministic: bool) -> Callable[[Any], Any]:
    """What makes a function known to a session."""
    if isinstance(function, str):
        return lambda native: native.udf.registerJavaFunction(name, function, returns)
    if hasattr(function, "evalType"):
        return lambda native: native.udf.register(name, function)
    if not callable(function):
        raise ConfigError(
            f"A {type(function).__name__} is no function.",
            hint="pass a Python function, what udf() or pandas_udf() returned, or the name of a Java class",
        )
    if returns is None:
        raise ConfigError(
            f"The function {name!r} does not say what it returns.", hint="pass returns=, for example 'STRING'"
        )

    def register(native: Any) -> Any:
        from pyspark.sql import functions  # noqa: PLC0415 - imports pyspark

        made = functions.udf(function, returns)
        return native.udf.register(name, made if deterministic else made.asNondeterministic())

    return register


def copy_functions(known: Any, native: Any) -> None:
    """Have a classic session know the functions that were registered in another one."""
    jvm = native._jvm  # noqa: SLF001 - no public way, here and below
    source = known._jsparkSession.sessionState().functionRegistry()  # noqa: SLF001
    target = native._jsparkSession.sessionState().functionRegistry()  # noqa: SLF001
    builtin = jvm.org.apache.spark.sql.catalyst.analysis.FunctionRegistry.builtin()
    added = source.listFunction().toSet().diff(builtin.listFunction().toSet()).toSeq()
    for at in range(added.size()):
        name = added.apply(at)
        target.registerFunction(name, source.lookupFunction(name).get(), source.lookupFunctionBuilder(name).get())
