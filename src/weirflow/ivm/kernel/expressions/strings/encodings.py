"""Binaries as texts, and texts as binaries: base 16, base 64 and character sets."""

from __future__ import annotations

import base64
import binascii
import codecs
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from weirflow.errors import DataError
from weirflow.ivm.kernel.expressions.failures import failure, shown
from weirflow.ivm.kernel.expressions.rows import on_arrays, to_mask
from weirflow.ivm.kernel.expressions.strings.texts import constants, one_by_one

if TYPE_CHECKING:
    from weirflow.errors import SqlPosition
    from weirflow.ivm.kernel.expressions.signature import Builder, CallSignature, Kernel

_STRING, _BINARY, _LONG = pa.string(), pa.binary(), pa.int64()
_ALL_BITS = (1 << 64) - 1
_CHUNK = 57
"""Bytes that make a line of 76 characters."""
_BASE_64 = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/")
_PAD = ord("=")
_NOT_BASE_64 = bytes(byte for byte in range(256) if byte not in _BASE_64 and byte != _PAD)
_HEXADECIMAL = frozenset(b"0123456789abcdefABCDEF")
_CHARSETS = {
    "US-ASCII": "ascii",
    "ISO-8859-1": "latin-1",
    "UTF-8": "utf-8",
    "UTF-16BE": "utf-16-be",
    "UTF-16LE": "utf-16-le",
}


def to_hex(signature: CallSignature) -> Kernel | None:
    """``hex`` of a BIGINT, a STRING or a BINARY."""
    kind = signature.types[0]
    if kind == _LONG:
        return one_by_one(lambda value: format(value & _ALL_BITS, "X"), _STRING)
    if kind == _STRING:
        return one_by_one(lambda text: text.encode().hex().upper(), _STRING)
    return one_by_one(lambda data: data.hex().upper(), _STRING) if kind == _BINARY else None


def unhex(signature: CallSignature) -> Kernel | None:
    """NULL for what has other characters than digits of base 16."""
    return one_by_one(_unhexed, _BINARY) if signature.types == (_STRING,) else None


def _unhexed(text: str) -> bytes | None:
    digits = text.encode()
    if not _HEXADECIMAL.issuperset(digits):
        return None
    return binascii.unhexlify(digits if len(digits) % 2 == 0 else b"0" + digits)


def to_base64(signature: CallSignature) -> Kernel | None:
    """``base64``, in lines of 76 characters."""
    return one_by_one(_in_lines, _STRING) if signature.types == (_BINARY,) else None


def _in_lines(data: bytes) -> str:
    lines = [base64.b64encode(data[start : start + _CHUNK]) for start in range(0, len(data), _CHUNK)]
    return b"\r\n".join(lines).decode()


def unbase64(signature: CallSignature) -> Kernel | None:
    """Characters that are not of base 64 are skipped."""
    position = signature.position

    def decoded(text: str) -> bytes:
        found = _from_base64(text.encode())
        if found is None:
            raise DataError(f"{shown(text)!r} is not base 64.", position=position)  # Java's own error in Spark
        return found

    return one_by_one(decoded, _BINARY) if signature.types == (_STRING,) else None


def _from_base64(text: bytes) -> bytes | None:
    """What Java's decoder for MIME makes of a text; None if it fails."""
    before, sign, behind = text.partition(b"=")
    behind = sign + behind
    digits = before.translate(None, _NOT_BASE_64)
    count = len(digits) % 4
    if count == 1 or (behind and count == 0):
        return None
    if behind and count == 2:  # noqa: PLR2004 - two characters are one byte, and two signs
        if len(behind) < 2 or behind[1] != _PAD:  # noqa: PLR2004 - as above
            return None
        behind = behind[2:]
    elif behind:
        behind = behind[1:]
    if behind.translate(None, _NOT_BASE_64 + b"="):
        return None
    return binascii.a2b_base64(digits + b"=" * (-count % 4))


def to_binary(signature: CallSignature) -> Kernel | None:
    """``to_binary(text, format)``: of base 16, or in UTF-8."""
    known = constants(signature, 1)
    if signature.types != (_STRING, _STRING) or known is None:
        return None
    name, position = known[0].lower(), signature.position
    if name in ("utf-8", "utf8"):
        return one_by_one(lambda text, _: text.encode(), _BINARY)
    if name != "hex":
        return None

    def decoded(text: str, _: str) -> bytes:
        found = _unhexed(text)
        if found is None:
            raise failure("CONVERSION_INVALID_INPUT", f"{shown(text)!r} is not of base 16.", position)
        return found

    return one_by_one(decoded, _BINARY)


def encode(signature: CallSignature) -> Kernel | None:
    """``encode(text, character set)``."""
    if signature.types != (_STRING, _STRING):
        return None
    return one_by_one(_converter("encode", signature.position, _encoded), _BINARY)


def _encoded(text: str, name: str) -> bytes:
    if name == "UTF-16":
        return codecs.BOM_UTF16_BE + text.encode("utf-16-be") if text else b""
    return text.encode(_CHARSETS[name])


def decode(signature: CallSignature) -> Kernel | None:
    """``decode(binary, character set)``."""
    if signature.types != (_BINARY, _STRING):
        return None
    return one_by_one(_converter("decode", signature.position, _decoded), _STRING)


def _decoded(data: bytes, name: str) -> str:
    if name == "UTF-16":
        little = data.startswith(codecs.BOM_UTF16_LE)
        marked = little or data.startswith(codecs.BOM_UTF16_BE)
        return data[2 * marked :].decode("utf-16-le" if little else "utf-16-be")
    return data.decode(_CHARSETS[name])


def _converter(
    function: str, position: SqlPosition | None, convert: Callable[[Any, str], Any]
) -> Callable[[Any, str], Any]:
    def converted(value: Any, charset: str) -> Any:
        name = charset.upper()
        if name != "UTF-16" and name not in _CHARSETS:
            raise _no_charset(function, charset, position)
        try:
            return convert(value, name)
        except UnicodeError:
            message = f"{function}() found a character that {name} does not have."
            raise failure("MALFORMED_CHARACTER_CODING", message, position) from None

    return converted


def _no_charset(function: str, charset: str, position: SqlPosition | None) -> DataError:
    listed = ", ".join([*_CHARSETS, "UTF-16"])
    message = f"{function}() knows the character sets {listed}, not {shown(charset)!r}."
    return failure("INVALID_PARAMETER_VALUE.CHARSET", message, position)


def is_valid_utf8(signature: CallSignature) -> Kernel | None:
    """True: the texts of views are all valid."""
    if signature.types != (_STRING,):
        return None
    return on_arrays(lambda texts: pa.array([True] * len(texts), pa.bool_(), mask=~to_mask(texts.is_valid())))


def valid_utf8(signature: CallSignature) -> Kernel | None:
    """The texts themselves, for the same reason."""
    return (lambda texts: texts) if signature.types == (_STRING,) else None


FUNCTIONS: dict[str, Builder] = {
    "hex": to_hex,
    "unhex": unhex,
    "base64": to_base64,
    "unbase64": unbase64,
    "to_binary": to_binary,
    "encode": encode,
    "string_decode": decode,
    "is_valid_utf8": is_valid_utf8,
    **dict.fromkeys(("make_valid_utf8", "validate_utf8", "try_validate_utf8"), valid_utf8),
}
