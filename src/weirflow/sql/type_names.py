"""Names of types: those that tables of a flow can have, and what to write instead of others."""

from __future__ import annotations

from weirflow.errors import SqlPosition, SqlSyntaxError, did_you_mean

FORMS = {
    "ARRAY": "write ARRAY<INT>: the type of its elements",
    "MAP": "write MAP<STRING, INT>: a type for keys and one for values",
    "STRUCT": "write STRUCT<name: STRING, age: INT>: a name and a type for each field",
    "INTERVAL": "write INTERVAL YEAR TO MONTH, or INTERVAL DAY TO SECOND",
}
"""How types are written that are not a word alone."""
NAMES = (
    "boolean", "tinyint", "byte", "smallint", "short", "int", "integer", "bigint", "long", "float", "real", "double",
    "decimal", "dec", "numeric", "string", "varchar", "char", "binary", "date", "timestamp", "timestamp_ltz",
    "timestamp_ntz", "array", "map", "struct", "interval",
)  # fmt: skip
INSTEAD = {
    **dict.fromkeys(("TIME", "TIMETZ"), "use TIMESTAMP_NTZ with a date, a number of seconds, or STRING"),
    **dict.fromkeys(("DATETIME", "DATETIME2", "SMALLDATETIME"), "use TIMESTAMP_NTZ, or TIMESTAMP for a moment"),
    "VARIANT": "use STRING with from_json or get_json_object in views, or columns of their own",
    **dict.fromkeys(("JSON", "JSONB", "OBJECT"), "use STRING with from_json or get_json_object, or a STRUCT"),
    **dict.fromkeys(("UUID", "INET", "XML", "ENUM"), "use STRING"),
    **dict.fromkeys(("GEOMETRY", "GEOGRAPHY"), "use BINARY (WKB) or STRING (WKT)"),
    **dict.fromkeys(("UTINYINT", "USMALLINT", "UINT", "UBIGINT"), "integers have signs: use the next larger type"),
    **dict.fromkeys(("HUGEINT", "INT128", "INT256", "BIGDECIMAL", "BIGNUM"), "use DECIMAL(38, 0)"),
    "INT8": "use TINYINT", "INT16": "use SMALLINT", "INT32": "use INT", "INT64": "use BIGINT",
    "SERIAL": "use BIGINT, and give the numbers yourself", "BIGSERIAL": "use BIGINT, and give the numbers yourself",
    **dict.fromkeys(("BYTES", "BYTEA"), "use BINARY"),
    **dict.fromkeys(("VECTOR", "HALFVEC"), "use ARRAY<FLOAT>"),
    "FLOAT64": "use DOUBLE", "FLOAT32": "use FLOAT", "BOOL": "use BOOLEAN",
}  # fmt: skip


def unknown_type(name: str, position: SqlPosition | None = None) -> SqlSyntaxError:
    """The error for a type that there is not, or not in a flow: what is meant, or what to write instead."""
    advice = INSTEAD.get(name.upper())
    if advice is not None:
        message = f"{name.upper()} is not a type that tables of a flow can have."
        return SqlSyntaxError(message, hint=advice, position=position)
    if name.upper() in FORMS:
        return SqlSyntaxError(f"{name.upper()} is not a whole type.", hint=FORMS[name.upper()], position=position)
    hint = did_you_mean(name, [one.upper() for one in NAMES])
    return SqlSyntaxError(f"{name} is not a Spark type.", hint=hint, position=position)
