"""The front door: Session, its placement and durability profile, and the operations it runs."""

from weirflow.session.operation import Operation
from weirflow.session.operations import Operations
from weirflow.session.profiles import Stores
from weirflow.session.session import Session, SessionInfo

__all__ = ["Operation", "Operations", "Session", "SessionInfo", "Stores"]
