"""``Caller``: who asks a server for something, and what they may ask for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from fnmatch import fnmatchcase
from typing import Any

from weirflow.errors import NotAllowed

EVERYTHING = ("*",)
"""The patterns of a token that is for all flows, or all catalogs."""


class Right(StrEnum):
    """What a request needs."""

    READ = "read"
    """Rows of views and tables, and what flows, queries and operations are doing."""
    WRITE = "write"
    """Ticks, and changes of tables."""
    OPERATE = "operate"
    """Sources, views, sinks, streaming queries, savepoints and nodes are made, changed, stopped and dropped."""
    ADMIN = "admin"
    """All that Spark can do, which includes the files and the network of its machines; catalogs, and tokens."""


class Role(StrEnum):
    """What a token is for. Each role may do what those before it may."""

    READER = "reader"
    WRITER = "writer"
    OPERATOR = "operator"
    ADMIN = "admin"

    def has(self, right: Right) -> bool:
        """Whether who has this role has this right.

        >>> Role.OPERATOR.has(Right.WRITE), Role.OPERATOR.has(Right.ADMIN)
        (True, False)
        """
        return tuple(Role).index(self) >= tuple(Right).index(right)


_LEAST = dict(zip(Right, Role, strict=True))


@dataclass(frozen=True)
class Caller:
    """Who asks, as the doors of a server know them.

    Attributes:
        name: what the token, or its issuer, calls them.
        role: what they may do.
        flows: the flows they may do it with, as patterns such as ``shop`` or ``sales_*``, in any case.
        catalogs: the catalogs whose tables they may read and change, as patterns.
        token_id: the id of the token; None for the JWT of an issuer, and for who needs no token.
        peer: where the request came from, for the audit log.
        limits: those that their token has instead of the server's, by the names of ``Limits``.
    """

    name: str
    role: Role
    flows: tuple[str, ...] = EVERYTHING
    catalogs: tuple[str, ...] = EVERYTHING
    token_id: str | None = None
    peer: str = ""
    limits: Mapping[str, Any] = field(default_factory=dict, hash=False)

    @property
    def key(self) -> str:
        """What limits and operations are counted by: the token, or the name."""
        return self.token_id or f"name:{self.name}"

    def sees_flow(self, name: str) -> bool:
        """Whether a flow is one of theirs, whether there is one of this name or not."""
        return _matches(name, self.flows)

    def sees_catalog(self, name: str) -> bool:
        """Whether a catalog is one of theirs."""
        return _matches(name, self.catalogs)

    def require(self, right: Right, what: str, *, flow: str | None = None, catalog: str | None = None) -> None:
        """Raise ``NotAllowed`` unless they may do this, with this flow or catalog."""
        if not self.role.has(right):
            raise NotAllowed(
                f"{self.name!r} is a {self.role}, and may not {what}.",
                hint=f"ask for a token with the role {_LEAST[right]}",
            )
        if flow is not None and not self.sees_flow(flow):
            raise NotAllowed(f"The token of {self.name!r} is not for the flow {flow!r}.", hint=_for(self.flows))
        if catalog is not None and not self.sees_catalog(catalog):
            raise NotAllowed(
                f"The token of {self.name!r} is not for the catalog {catalog!r}.", hint=_for(self.catalogs)
            )


def _matches(name: str, patterns: tuple[str, ...]) -> bool:
    return any(fnmatchcase(name.casefold(), pattern.casefold()) for pattern in patterns)


def _for(patterns: tuple[str, ...]) -> str:
    return f"it is for {', '.join(patterns)}" if patterns else "it is for none"
