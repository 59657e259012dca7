"""``url_encode`` and ``url_decode``, as in the fields of a form, and ``parse_url``."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable
from typing import TYPE_CHECKING
from urllib.parse import quote_plus

import pyarrow as pa

from weirflow.ivm.kernel.expressions.failures import failure, shown
from weirflow.ivm.kernel.expressions.strings.java_uri import JavaUri, parsed
from weirflow.ivm.kernel.expressions.strings.texts import are_texts, constants, first_only, one_by_one

if TYPE_CHECKING:
    from weirflow.ivm.kernel.expressions.signature import Builder, CallSignature, Kernel

_STRING = pa.string()
_ESCAPE = 3
"""Characters of an escaped byte."""
_BASE = 16
_FULLWIDTH = {**{chr(0xFF21 + at): 10 + at for at in range(6)}, **{chr(0xFF41 + at): 10 + at for at in range(6)}}


def url_encode(signature: CallSignature) -> Kernel | None:
    """A space is a plus sign; other than letters, digits and ``.-*_`` are escaped."""
    if not are_texts(signature, 1):
        return None
    return one_by_one(lambda text: quote_plus(text, safe="*").replace("~", "%7E"), _STRING)


def url_decode(signature: CallSignature) -> Kernel | None:
    """What ``url_encode`` made; what cannot be read is an error, or NULL if the function's name says so."""
    if not are_texts(signature, 1):
        return None
    tolerant, position = signature.function.startswith("try_"), signature.position

    def decoded(text: str) -> str | None:
        found = _decoded(text)
        if found is None and not tolerant:
            raise failure("CANNOT_DECODE_URL", f"{shown(text)!r} has an escape that cannot be read.", position)
        return found

    return one_by_one(decoded, _STRING)


def _decoded(text: str) -> str | None:
    pieces: list[str] = []
    data = bytearray()
    at = 0
    while at < len(text):
        if text[at] == "%":
            byte = _byte(text[at + 1 : at + _ESCAPE])
            if byte is None:
                return None
            data.append(byte)
            at += _ESCAPE
            continue
        if data:
            pieces.append(data.decode(errors="replace"))
            data.clear()
        pieces.append(" " if text[at] == "+" else text[at])
        at += 1
    return "".join(pieces) + data.decode(errors="replace")


def _byte(digits: str) -> int | None:
    """As Java reads two digits, of which the first may be a plus sign and any may be of another script."""
    if len(digits.encode("utf-16-le")) != 2 * (_ESCAPE - 1):
        return None
    value = 0
    for character in digits.removeprefix("+"):
        digit = _digit(character)
        if digit is None:
            return None
        value = value * _BASE + digit
    return value


def _digit(character: str) -> int | None:
    if character.isascii():
        return int(character, _BASE) if character in "0123456789abcdefABCDEF" else None
    return _FULLWIDTH.get(character, unicodedata.decimal(character, None))


def parse_url(signature: CallSignature) -> Kernel | None:
    """``parse_url(url, part[, key])``: NULL for a part that is not there.

    What is no URL is an error, or NULL if the function's name says so.
    """
    known, tolerant, position = constants(signature, 1), signature.function.startswith("try_"), signature.position
    if known is None or not are_texts(signature, len(signature.types)):
        return None
    part = _PARTS.get(known[0])
    value = None
    if len(known) > 1:
        if known[0] != "QUERY" or not _WORD.fullmatch(known[1]):
            return None
        value = re.compile(f"(?:&|^){known[1]}=([^&]*)")

    def found(url: str) -> str | None:
        uri = parsed(url)
        if uri is None:
            if tolerant:
                return None
            raise failure("INVALID_URL", f"{shown(url)!r} is no URL.", position)
        text = None if part is None else part(uri)
        if value is None or text is None:
            return text
        match = value.search(text)
        return None if match is None else match[1]

    return first_only(one_by_one(found, _STRING))


def _file(uri: JavaUri) -> str | None:
    return uri.path if uri.query is None else f"{uri.path}?{uri.query}"


_WORD = re.compile("[A-Za-z0-9_]+")
_PARTS: dict[str, Callable[[JavaUri], str | None]] = {
    "HOST": lambda uri: uri.host,
    "PATH": lambda uri: uri.path,
    "QUERY": lambda uri: uri.query,
    "REF": lambda uri: uri.fragment,
    "PROTOCOL": lambda uri: uri.scheme,
    "FILE": _file,
    "AUTHORITY": lambda uri: uri.authority,
    "USERINFO": lambda uri: uri.user,
}


FUNCTIONS: dict[str, Builder] = {
    "parse_url": parse_url,
    "try_parse_url": parse_url,
    "url_encode": url_encode,
    "url_decode": url_decode,
    "try_url_decode": url_decode,
}
