"""What ``from_json`` and ``to_json`` are told beside the value: formats of dates and times, the session's clocks."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from weirflow.ivm.kernel.expressions.times.clocks import Clock, clock_of

if TYPE_CHECKING:
    from weirflow.ivm.kernel.expressions.signature import CallSignature

READ: Final = frozenset({"dateformat", "timestampformat"})
WRITTEN: Final = READ | {"ignorenullfields"}
_BOOLEANS = {"true": True, "false": False}


@dataclass(frozen=True)
class JsonOptions:
    """Options of a call.

    Attributes:
        clock: that of the session.
        date_format, timestamp_format: patterns; without one it is what casts read, and ISO 8601 that is written.
        ignores_nulls: whether fields that are NULL are left out.
    """

    clock: Clock
    date_format: str | None = None
    timestamp_format: str | None = None
    ignores_nulls: bool = True


def json_options(signature: CallSignature, known: frozenset[str]) -> JsonOptions | None:
    """Those of a call ``f(value[, options], zone)``; None if there is one that is not known here."""
    given = signature.constants[1:]
    if any(one is None for one in given):
        return None
    *texts, zone = [one.as_py() for one in given if one is not None] or ["UTC"]
    options: Mapping[str, str] = json.loads(texts[0]) if texts else {}
    named = {name.casefold(): value for name, value in options.items()}
    ignores = _BOOLEANS.get(named.get("ignorenullfields", "true").casefold())
    if not named.keys() <= known or len(named) < len(options) or ignores is None:
        return None
    return JsonOptions(clock_of(zone), named.get("dateformat"), named.get("timestampformat"), ignores)
