"""Results as Flight describes them: an endpoint for each part, and until when it can be fetched."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.flight as fl

if TYPE_CHECKING:
    from weirflow.server.results.manifest import Manifest
    from weirflow.server.results.tickets import ResultTicket


def flight_info(
    manifest: Manifest,
    tickets: Sequence[ResultTicket],
    descriptor: fl.FlightDescriptor,
    packed: Callable[[ResultTicket], bytes],
) -> fl.FlightInfo:
    """A result, with its tickets as ``packed`` writes them. Endpoints without a location are this server's."""
    expires = pa.scalar(datetime.fromtimestamp(manifest.expires, UTC), pa.timestamp("ns", "UTC"))
    endpoints = [fl.FlightEndpoint(packed(ticket), [], expires) for ticket in tickets]
    return fl.FlightInfo(
        manifest.columns, descriptor, endpoints, manifest.rows, manifest.size, ordered=manifest.is_ordered
    )
