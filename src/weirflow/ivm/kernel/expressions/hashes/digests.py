"""Digests of binaries: ``md5``, ``sha1``, ``sha2`` and ``crc32``."""

from __future__ import annotations

import hashlib
import zlib
from typing import TYPE_CHECKING

import pyarrow as pa

from weirflow.ivm.kernel.expressions.strings.texts import one_by_one

if TYPE_CHECKING:
    from weirflow.ivm.kernel.expressions.signature import Builder, CallSignature, Kernel

_BINARY, _STRING = pa.binary(), pa.string()
_SHA2 = {0: hashlib.sha256, 224: hashlib.sha224, 256: hashlib.sha256, 384: hashlib.sha384, 512: hashlib.sha512}


def md5(signature: CallSignature) -> Kernel | None:
    """32 digits of base 16."""
    if signature.types != (_BINARY,):
        return None
    return one_by_one(lambda data: hashlib.md5(data, usedforsecurity=False).hexdigest(), _STRING)


def sha1(signature: CallSignature) -> Kernel | None:
    """40 digits of base 16."""
    if signature.types != (_BINARY,):
        return None
    return one_by_one(lambda data: hashlib.sha1(data, usedforsecurity=False).hexdigest(), _STRING)


def sha2(signature: CallSignature) -> Kernel | None:
    """``sha2(data, bits)``: NULL for another number of bits than 224, 256 (or 0), 384 and 512."""
    if signature.types != (_BINARY, pa.int32()):
        return None

    def digest(data: bytes, bits: int) -> str | None:
        return _SHA2[bits](data).hexdigest() if bits in _SHA2 else None

    return one_by_one(digest, _STRING)


def crc32(signature: CallSignature) -> Kernel | None:
    """The checksum of 32 bits, without a sign."""
    return one_by_one(zlib.crc32, pa.int64()) if signature.types == (_BINARY,) else None


FUNCTIONS: dict[str, Builder] = {"md5": md5, "sha1": sha1, "sha2": sha2, "crc32": crc32}
