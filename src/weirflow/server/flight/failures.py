"""Whatever a call raises, as an error that Flight can send."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager

import pyarrow.flight as fl

from weirflow.errors import WeirflowError
from weirflow.wire.flight import to_flight

_log = logging.getLogger(__name__)


@contextmanager
def answered() -> Iterator[None]:
    """Around what a client asked for.

    Its errors have the status that fits, of those that Flight has, and begin with their code; what is wrong with a
    request is ``UNKNOWN`` among these. (Arrow's own errors would be ``INVALID_ARGUMENT``, ``NOT_FOUND`` and
    ``UNIMPLEMENTED``, but send the server's tracebacks, too. So does pyarrow with whatever ``get_schema`` raises, which
    is why causes are left out here.)
    """
    try:
        yield
    except WeirflowError as error:
        raise to_flight(error) from None
    except (fl.FlightError, GeneratorExit, StopIteration):
        raise
    except Exception:  # noqa: BLE001 - whatever it is, the client gets an answer, and the log the rest
        _log.exception("a call over Flight failed unexpectedly")
        # What it says may be about anything, and is for the log of the server only.
        raise fl.FlightInternalError("[INTERNAL] The server failed; its log says how.") from None
