"""Functions of bits, bitmaps and hashes."""

from __future__ import annotations

from weirflow.sql.functions.rules import FunctionSignature, Rule, same_as
from weirflow.sql.types import BIGINT, BINARY, BOOLEAN, INT, STRING, TINYINT
from weirflow.sql.typing.coercion import ANY, INTEGRAL

BITS: dict[str, Rule] = {
    "bin": FunctionSignature("bin", (BIGINT,), STRING),
    "bit_count": FunctionSignature("bit_count", ((INTEGRAL, BOOLEAN),), INT),
    "bit_get": FunctionSignature("bit_get", (INTEGRAL, INT), TINYINT),
    "bitmap_bit_position": FunctionSignature("bitmap_bit_position", (BIGINT,), BIGINT),
    "bitmap_bucket_number": FunctionSignature("bitmap_bucket_number", (BIGINT,), BIGINT),
    "bitmap_count": FunctionSignature("bitmap_count", (BINARY,), BIGINT),
    "shiftrightunsigned": FunctionSignature("shiftrightunsigned", ((INT, BIGINT), INT), same_as(0)),
    "md5": FunctionSignature("md5", (BINARY,), STRING),
    "sha1": FunctionSignature("sha1", (BINARY,), STRING),
    "sha2": FunctionSignature("sha2", (BINARY, INT), STRING),
    "crc32": FunctionSignature("crc32", (BINARY,), BIGINT),
    "hash": FunctionSignature("hash", (ANY,), INT, repeats=True),
    "xxhash64": FunctionSignature("xxhash64", (ANY,), BIGINT, repeats=True),
}
