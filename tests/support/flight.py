"""The Flight door of a server around a Session that a test has, with a token for each role."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import adbc_driver_flightsql.dbapi as adbc
import pyarrow.flight as fl

from weirflow.metadata import open_metadata
from weirflow.server.access.caller import Role
from weirflow.server.access.gate import Gate
from weirflow.server.access.tokens import Tokens
from weirflow.server.coordinator import Coordinator
from weirflow.server.flight.door import FlightDoor
from weirflow.server.results.spool import Spool, SpoolLimits
from weirflow.wire.messages import CALL, Call, pack

if TYPE_CHECKING:
    from pathlib import Path

HEADER = "adbc.flight.sql.authorization_header"


@dataclass(frozen=True)
class Flighted:
    """A door that is open."""

    door: FlightDoor
    coordinator: Coordinator
    spool: Spool
    tokens: dict[str, str]

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.door.port}"

    def adbc(self, role: str = "admin", **given: str) -> adbc.Connection:
        """A connection of ADBC's driver."""
        known = given or {HEADER: f"Bearer {self.tokens[role]}"}
        return adbc.connect(f"grpc://{self.address}", db_kwargs=known, autocommit=True)

    def client(self) -> fl.FlightClient:
        return fl.FlightClient(f"grpc://{self.address}")

    def options(self, role: str = "admin", timeout: float | None = 30.0) -> fl.FlightCallOptions:
        headers = [(b"authorization", f"Bearer {self.tokens[role]}".encode())]
        return fl.FlightCallOptions(headers=headers, timeout=timeout)

    def call(self, method: str, arguments: Any = None, flow: str | None = None, role: str = "admin") -> bytes:
        """A call in Weirflow's own protocol."""
        asked = Call(method, flow=flow) if arguments is None else Call(method, pack(arguments), flow)
        with self.client() as client:
            (answer,) = client.do_action(fl.Action(CALL, pack(asked)), self.options(role))
            return answer.body.to_pybytes()


@contextmanager
def flighted(session: Any, folder: Path, limits: SpoolLimits | None = None, **given: Any) -> Iterator[Flighted]:
    """A door for the block, around a Session that stays."""
    with open_metadata(folder / "tokens.db") as store:
        tokens = Tokens(store)
        known = {role.value: tokens.create(role.value, role)[1] for role in Role}
        coordinator = Coordinator(session, Gate(tokens))
        spool = Spool(str(folder / "spool"), limits)
        door = FlightDoor(coordinator, spool, "127.0.0.1", 0, **given)
        try:
            yield Flighted(door, coordinator, spool, known)
        finally:
            coordinator.drain(10.0)
            door.close()
            spool.close()
