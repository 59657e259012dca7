"""What an object may be called, the same on every storage."""

from __future__ import annotations

from weirflow.errors import ConfigError

# Local storage keeps half-written files here, so no object may live below it.
TEMPORARY_FOLDER = ".weirflow-tmp"

# The longest file name of common file systems, and the longest key of S3, Google and Azure.
_MAX_SEGMENT_BYTES = 255
_MAX_NAME_BYTES = 1024

_RULES = "names are relative paths such as 'epochs/0000000001.json'"


def check_name(name: str) -> str:
    """The name itself, when every storage can hold it without reading it as another path.

    >>> check_name("epochs/0000000001.json")
    'epochs/0000000001.json'

    Raises:
        ConfigError: it is not such a name; the message says why.
    """
    fault = _fault(name)
    if fault is not None:
        raise ConfigError(f"{name!r} cannot be an object name: {fault}.", hint=_RULES)
    return name


def check_prefix(prefix: str) -> str:
    """The prefix itself, when it is empty or a folder with its final ``/``.

    A prefix that ends inside a segment is refused, because stores disagree on what it means.

    Raises:
        ConfigError: it is neither.
    """
    if prefix == "":
        return prefix
    fault = _fault(prefix[:-1]) if prefix[-1:] == "/" else "it does not end with '/'"
    if fault is not None:
        raise ConfigError(f"{prefix!r} cannot be listed: {fault}.", hint="list a folder, such as 'epochs/'")
    return prefix


def is_name(name: str) -> bool:
    """Whether ``check_name`` would accept it."""
    return _fault(name) is None


def _fault(name: object) -> str | None:
    if not isinstance(name, str) or not name:
        return "it is not a string, or empty"
    # Also refuses lone surrogates, line separators and the invisible marks that make two names look alike.
    if not name.isprintable():
        return "it has control or unprintable characters"
    if "\\" in name:
        return "it has a backslash"
    if len(name.encode()) > _MAX_NAME_BYTES:
        return f"it is longer than {_MAX_NAME_BYTES} bytes"
    segments = name.split("/")
    if segments[0].casefold() == TEMPORARY_FOLDER:
        return f"{TEMPORARY_FOLDER!r} is reserved"
    return next((fault for segment in segments if (fault := _segment_fault(segment))), None)


def _segment_fault(segment: str) -> str | None:
    if not segment:
        return "it has an empty segment"
    # Covers '.' and '..'; and Azure drops final dots, so that 'a.' and 'a' would be one object.
    if segment.endswith("."):
        return "a segment ends with a dot"
    if len(segment.encode()) > _MAX_SEGMENT_BYTES:
        return f"a segment is longer than {_MAX_SEGMENT_BYTES} bytes"
    return None
