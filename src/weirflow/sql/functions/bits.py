"""Functions of bits, bitmaps and hashes."""

from __future__ import annotations

import pyarrow as pa

from weirflow.errors import SqlPosition, SqlTypeError
from weirflow.sql.expr import Call, Expr
from weirflow.sql.functions.rules import Arguments, FunctionSignature, Rule, check_count, same_as
from weirflow.sql.types import BIGINT, BINARY, BOOLEAN, INT, STRING, TINYINT, is_integral, type_name
from weirflow.sql.typing.coercion import ANY, ONLY_INTEGRAL, Family

_COUNTED = Family("integral or boolean", lambda kind: is_integral(kind) or kind == BOOLEAN, BIGINT, casts=False)


def _bitmap_count(given: Arguments, position: SqlPosition | None) -> Expr:
    """Of a binary, and of nothing that could be cast to one."""
    check_count("bitmap_count", given, 1, 1, position)
    if given[0].type != BINARY:
        raise SqlTypeError(f"bitmap_count() takes binary, not {type_name(given[0].type)}.", position=position)
    return Call("bitmap_count", given, BIGINT, position)


def _hashed(name: str, kind: pa.DataType) -> Rule:
    """Of values of any types, without maps, whose entries have no order."""
    signature = FunctionSignature(name, (ANY,), kind, repeats=True)

    def rule(given: Arguments, position: SqlPosition | None) -> Expr:
        if any(_has_map(one.type) for one in given):
            raise SqlTypeError(f"{name}() does not take maps.", position=position)
        return signature(given, position)

    return rule


def _has_map(kind: pa.DataType) -> bool:
    return bool(pa.types.is_map(kind)) or any(_has_map(kind.field(at).type) for at in range(kind.num_fields))


BITS: dict[str, Rule] = {
    "bin": FunctionSignature("bin", (BIGINT,), STRING),
    "bit_count": FunctionSignature("bit_count", (_COUNTED,), INT),
    "bit_get": FunctionSignature("bit_get", (ONLY_INTEGRAL, INT), TINYINT),
    "bitmap_bit_position": FunctionSignature("bitmap_bit_position", (BIGINT,), BIGINT),
    "bitmap_bucket_number": FunctionSignature("bitmap_bucket_number", (BIGINT,), BIGINT),
    "bitmap_count": _bitmap_count,
    "shiftrightunsigned": FunctionSignature("shiftrightunsigned", ((INT, BIGINT), INT), same_as(0)),
    "md5": FunctionSignature("md5", (BINARY,), STRING),
    "sha1": FunctionSignature("sha1", (BINARY,), STRING),
    "sha2": FunctionSignature("sha2", (BINARY, INT), STRING),
    "crc32": FunctionSignature("crc32", (BINARY,), BIGINT),
    "hash": _hashed("hash", INT),
    "xxhash64": _hashed("xxhash64", BIGINT),
}
