"""Functions of users in Spark sessions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from pyspark.sql import functions


def registration(name: str, function: Any, returns: Any) -> Callable[[Any], Any]:
    """What makes a function known to a session, and returns what frames call it by."""
    if isinstance(function, str):

        def register(native: Any) -> Any:
            native.udf.registerJavaFunction(name, function, returns)
            return lambda *columns: functions.call_function(name, *columns)

        return register
    if hasattr(function, "evalType"):
        return lambda native: native.udf.register(name, function)
    return lambda native: native.udf.register(name, function, returns)


def copy_functions(known: Any, native: Any, names: Sequence[str]) -> None:
    """Have a classic session know the functions that were registered in another one, those of these names among them.

    A function may have the name of one of Spark's own, and hides it then: such a one is not seen but by its name.
    """
    jvm = native._jvm  # noqa: SLF001 - no public way, here and below
    source = known._jsparkSession.sessionState().functionRegistry()  # noqa: SLF001
    target = native._jsparkSession.sessionState().functionRegistry()  # noqa: SLF001
    builtin = jvm.org.apache.spark.sql.catalyst.analysis.FunctionRegistry.builtin()
    added = source.listFunction().toSet().diff(builtin.listFunction().toSet()).toSeq()
    found = [added.apply(at) for at in range(added.size())]
    found += [jvm.org.apache.spark.sql.catalyst.FunctionIdentifier(name.lower()) for name in names]
    for name in found:
        target.registerFunction(name, source.lookupFunction(name).get(), source.lookupFunctionBuilder(name).get())
