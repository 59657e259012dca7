"""The client of a Weirflow server: a Session and flows that are elsewhere. Needs neither pyspark nor Java."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from weirflow.client.session import RemoteSession

__all__ = ["RemoteSession"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from weirflow.client.session import RemoteSession  # noqa: PLC0415 - imports the kernel and Flight

    return RemoteSession
