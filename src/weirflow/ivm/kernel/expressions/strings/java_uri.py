"""``JavaUri``: the parts of a URI as ``java.net.URI`` reads it, which is RFC 2396 with exceptions of its own."""

from __future__ import annotations

import string
import unicodedata
from typing import NamedTuple

_DIGITS = frozenset(string.digits)
_LETTERS = frozenset(string.ascii_letters)
_ALPHANUMERIC = _DIGITS | _LETTERS
_HEXADECIMAL = frozenset(string.hexdigits)
_UNRESERVED = _ALPHANUMERIC | frozenset("-_.!~*'()")
_PATH = _UNRESERVED | frozenset(":@&=+$,;/")
_URIC = _UNRESERVED | frozenset(";/?:@&=+$,[]")
_USER = _UNRESERVED | frozenset(";:&=+$,")
_REGISTRY = _UNRESERVED | frozenset("$,;:@&=+")
_SERVER = _USER | _ALPHANUMERIC | frozenset("-.:@[]")
_SCHEME = _ALPHANUMERIC | frozenset("+-.")
_SCOPE = _ALPHANUMERIC | frozenset("_.")
_LARGEST_PORT = (1 << 31) - 1
_LAST_ASCII = 128
_SPACES = frozenset({"Zs", "Zl", "Zp"})
_GROUPS = 8
"""Of 16 bits, in an address of version 6."""


class JavaUri(NamedTuple):
    """The parts, as they are written."""

    scheme: str | None = None
    authority: str | None = None
    user: str | None = None
    host: str | None = None
    path: str | None = None
    query: str | None = None
    fragment: str | None = None


class _Malformed(Exception):
    """Java reads no URI here."""


class _Server(NamedTuple):
    user: str | None
    host: str


def parsed(text: str) -> JavaUri | None:
    """The URI's parts; None if it is none."""
    try:
        return _uri(text)
    except _Malformed:
        return None


def _uri(text: str) -> JavaUri:
    rest, sign, fragment = text.partition("#")
    colon = _first(rest, ":/?")
    scheme = None
    if colon < len(rest) and rest[colon] == ":":
        scheme, rest = rest[:colon], rest[colon + 1 :]
        if not scheme or scheme[0] not in _LETTERS or not _SCHEME.issuperset(scheme):
            raise _Malformed
    if scheme is not None and not rest.startswith("/"):
        if not rest:
            raise _Malformed
        _require(rest, _URIC)
        found = JavaUri(scheme)
    else:
        found = _hierarchical(rest, is_end=not sign)._replace(scheme=scheme)
    if sign:
        _require(fragment, _URIC)
        found = found._replace(fragment=fragment)
    return found


def _hierarchical(text: str, *, is_end: bool) -> JavaUri:
    authority, server = None, None
    if text.startswith("//"):
        text = text[2:]
        end = _first(text, "/?")
        if end:
            authority, text = text[:end], text[end:]
            server = _authority(authority)
        elif not text and is_end:
            raise _Malformed
    path, sign, query = text.partition("?")
    _require(path, _PATH)
    if sign:
        _require(query, _URIC)
    user, host = (None, None) if server is None else server
    return JavaUri(None, authority, user, host, path, query if sign else None)


def _authority(text: str) -> _Server | None:
    """The server, or None if it is a name that only a registry knows."""
    allowed = _SERVER | {"%"} if text.find("]") > 0 else _SERVER
    is_server = allowed.issuperset(text)
    is_registry = _fits(text, _REGISTRY)
    if not is_server:
        if not is_registry:
            raise _Malformed
        return None
    try:
        return _server(text)
    except _Malformed:
        if is_registry:
            return None
        raise


def _server(text: str) -> _Server:
    user, sign, rest = text.partition("@")
    if sign:
        _require(user, _USER)
    else:
        rest = text
    if rest.startswith("["):
        end = rest.find("]")
        if end <= 1:
            raise _Malformed
        _require_version_6(rest[1:end])
        host, rest = rest[: end + 1], rest[end + 1 :]
    else:
        host = rest.partition(":")[0]
        rest = rest[len(host) :]
        if not _is_version_4(host):
            _require_hostname(host)
    if rest and not rest.startswith(":"):
        raise _Malformed
    port = rest[1:]
    if port and not _is_number(port, _LARGEST_PORT):
        raise _Malformed
    return _Server(user if sign else None, host)


def _is_version_4(text: str) -> bool:
    parts = text.split(".")
    return len(parts) == 4 and all(_is_number(part, 255) for part in parts)  # noqa: PLR2004 - bytes


def _is_number(text: str, largest: int) -> bool:
    digits = text.lstrip("0") or text[:1]
    return bool(digits) and _DIGITS.issuperset(digits) and len(digits) <= len(str(largest)) and int(digits) <= largest


def _require_hostname(host: str) -> None:
    """A name of labels between dots; the last begins with a letter, if there are several."""
    labels = (host.removesuffix(".")).split(".")
    for label in labels:
        if not label or label[0] == "-" or label[-1] == "-" or not (_ALPHANUMERIC | {"-"}).issuperset(label):
            raise _Malformed
    if len(labels) > 1 and labels[-1][0] not in _LETTERS:
        raise _Malformed


def _require_version_6(text: str) -> None:
    address, sign, scope = text.partition("%")
    if sign and (not address or not scope or not _SCOPE.issuperset(scope)):
        raise _Malformed
    before, double, behind = address.partition("::")
    if "::" in behind or behind.startswith(":"):
        raise _Malformed
    count = _groups(before, is_last=not double) + (_groups(behind, is_last=True) if double else 0)
    if count > _GROUPS - bool(double) if double else count != _GROUPS:
        raise _Malformed


def _groups(text: str, *, is_last: bool) -> int:
    """How many groups there are; at the very end, an address of version 4 counts as two."""
    if not text:
        return 0
    *groups, last = text.split(":")
    count = 1
    if is_last and "." in last:
        if not _is_version_4(last):
            raise _Malformed
        count = 2
    else:
        groups.append(last)
        count = 0
    if any(not group or len(group) > 4 or not _HEXADECIMAL.issuperset(group) for group in groups):  # noqa: PLR2004
        raise _Malformed
    return len(groups) + count


def _first(text: str, characters: str) -> int:
    """Where the first of the characters is; the end if there is none."""
    return min((place for place in map(text.find, characters) if place >= 0), default=len(text))


def _require(text: str, allowed: frozenset[str]) -> None:
    if not _fits(text, allowed):
        raise _Malformed


def _fits(text: str, allowed: frozenset[str]) -> bool:
    """Whether there are only such characters, escaped bytes, and what is neither ASCII, space nor control."""
    at = 0
    while at < len(text):
        character = text[at]
        if character == "%":
            if len(text) < at + 3 or not _HEXADECIMAL.issuperset(text[at + 1 : at + 3]):
                return False
            at += 3
            continue
        if character not in allowed and not _is_other(character):
            return False
        at += 1
    return True


def _is_other(character: str) -> bool:
    kind = unicodedata.category(character)
    return ord(character) > _LAST_ASCII and kind not in _SPACES and kind != "Cc"
