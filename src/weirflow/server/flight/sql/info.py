"""What a server says about itself to drivers: SqlInfo, and the types of Spark's SQL."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import pyarrow as pa

from weirflow._version import __version__

_CASE_INSENSITIVE = 1
_NULLS_LOW = 3
_TRANSACTIONS_NONE = 0
_FULL_OUTER_JOINS = 2
_BOTH = 3
_ALL_SUBQUERIES = 15
_FORWARD_ONLY = 2
_READ_ONLY = 2
_ISOLATION_NONE = 1
_CORE_GRAMMAR = 3
_ENTRY_LEVEL = 1

_STRING, _BOOL, _BIGINT, _BITMASK, _STRINGS, _MAP = range(6)
_UNION = pa.dense_union(
    [
        pa.field("string_value", pa.string()),
        pa.field("bool_value", pa.bool_()),
        pa.field("bigint_value", pa.int64()),
        pa.field("int32_bitmask", pa.int32()),
        pa.field("string_list", pa.list_(pa.field("string_data", pa.string()))),
        pa.field("int32_to_int32_list_map", pa.map_(pa.int32(), pa.list_(pa.field("$data$", pa.int32())))),
    ]
)
INFO_SCHEMA = pa.schema([pa.field("info_name", pa.uint32(), nullable=False), pa.field("value", _UNION, nullable=False)])
"""The columns of SqlInfo."""

# By the numbers of the specification's enumeration SqlInfo.
_INFO: dict[int, tuple[int, object]] = {
    0: (_STRING, "Weirflow"),
    1: (_STRING, __version__),
    2: (_STRING, pa.__version__),
    3: (_BOOL, False),  # read only
    4: (_BOOL, True),  # SQL
    5: (_BOOL, False),  # Substrait
    8: (_BITMASK, _TRANSACTIONS_NONE),
    9: (_BOOL, True),  # cancel
    10: (_BOOL, True),  # bulk ingestion
    11: (_BOOL, False),  # of which none is a part of a transaction
    500: (_BOOL, False),  # catalogs have an address, which no driver knows to ask for
    501: (_BOOL, True),  # CREATE SCHEMA
    502: (_BOOL, True),  # CREATE TABLE
    503: (_BITMASK, _CASE_INSENSITIVE),
    504: (_STRING, "`"),
    505: (_BITMASK, _CASE_INSENSITIVE),
    506: (_BOOL, True),
    507: (_BITMASK, _NULLS_LOW),
    508: (_STRINGS, ["INCREMENTAL", "FLOW", "SOURCE", "SUBSCRIBE"]),
    509: (_STRINGS, ["ABS", "CEIL", "EXP", "FLOOR", "LN", "LOG", "MOD", "POWER", "RAND", "ROUND", "SIGN", "SQRT"]),
    510: (_STRINGS, ["CONCAT", "LENGTH", "LOWER", "LTRIM", "REPLACE", "RTRIM", "SUBSTRING", "TRIM", "UPPER"]),
    511: (_STRINGS, ["COALESCE", "CURRENT_CATALOG", "CURRENT_DATABASE", "IFNULL", "NULLIF"]),
    512: (_STRINGS, ["CURRENT_DATE", "CURRENT_TIMESTAMP", "DATE_ADD", "DATE_TRUNC", "DATEDIFF", "EXTRACT", "NOW"]),
    513: (_STRING, "\\"),
    514: (_STRING, ""),
    515: (_BOOL, True),  # column aliases
    516: (_BOOL, True),  # NULL with anything is NULL
    517: (_MAP, []),  # CONVERT, which Spark has not got
    518: (_BOOL, True),  # table aliases
    519: (_BOOL, False),  # which may be names of tables
    520: (_BOOL, True),  # expressions in ORDER BY
    521: (_BOOL, True),  # ORDER BY what is not selected
    522: (_BITMASK, _BOTH),  # GROUP BY what is not selected
    523: (_BOOL, True),  # LIKE ... ESCAPE
    524: (_BOOL, True),  # NOT NULL
    525: (_BITMASK, _CORE_GRAMMAR),
    526: (_BITMASK, _ENTRY_LEVEL),
    527: (_BOOL, False),  # integrity enhancement
    528: (_BITMASK, _FULL_OUTER_JOINS),
    529: (_STRING, "schema"),
    530: (_STRING, "procedure"),
    531: (_STRING, "catalog"),
    532: (_BOOL, True),  # catalogs come first in a name
    533: (_BITMASK, 0),
    534: (_BITMASK, 0),
    535: (_BITMASK, 0),
    536: (_BOOL, False),  # SELECT ... FOR UPDATE
    537: (_BOOL, False),  # stored procedures
    538: (_BITMASK, _ALL_SUBQUERIES),
    539: (_BOOL, True),  # correlated subqueries
    540: (_BITMASK, _BOTH),  # UNION and UNION ALL
    **dict.fromkeys(range(541, 556), (_BIGINT, 0)),  # no limit, or none that is known
    556: (_BOOL, False),
    **dict.fromkeys(range(557, 562), (_BIGINT, 0)),
    562: (_BIGINT, 0),
    563: (_BOOL, False),  # transactions
    564: (_BITMASK, _ISOLATION_NONE),
    565: (_BOOL, False),
    566: (_BOOL, False),
    567: (_BITMASK, _FORWARD_ONLY),
    568: (_BITMASK, 0),
    569: (_BITMASK, _READ_ONLY),
    570: (_BITMASK, 0),
    571: (_BITMASK, 0),
    572: (_BOOL, False),  # batches of updates
    573: (_BOOL, False),  # savepoints
    574: (_BOOL, False),  # named parameters of procedures
    575: (_BOOL, False),  # locators
    576: (_BOOL, False),  # stored functions that are called
}


def sql_info(wanted: Iterable[int]) -> pa.Table:
    """What was asked about, as far as there is something to say; all if nothing was named."""
    asked = set(wanted)
    numbers = [number for number in sorted(_INFO) if not asked or number in asked]
    columns: list[list[object]] = [[] for _ in range(_UNION.num_fields)]
    kinds, offsets = [], []
    for number in numbers:
        kind, value = _INFO[number]
        kinds.append(kind)
        offsets.append(len(columns[kind]))
        columns[kind].append(value)
    union = pa.UnionArray.from_dense(
        pa.array(kinds, pa.int8()),
        pa.array(offsets, pa.int32()),
        [pa.array(column, _UNION.field(at).type) for at, column in enumerate(columns)],
        [_UNION.field(at).name for at in range(_UNION.num_fields)],
    )
    return pa.Table.from_arrays([pa.array(numbers, pa.uint32()), union], schema=INFO_SCHEMA)


class _Type(NamedTuple):
    name: str
    number: int
    size: int | None = None
    quote: str | None = None
    params: list[str] | None = None
    radix: int | None = None
    scales: tuple[int, int] | None = None
    prefix: str | None = None
    general: int | None = None
    subcode: int | None = None


_DATETIME = 9
_TYPES = (
    _Type("BOOLEAN", -7, 1),
    _Type("TINYINT", -6, 3, radix=10, scales=(0, 0)),
    _Type("BIGINT", -5, 19, radix=10, scales=(0, 0)),
    _Type("BINARY", -2, None, "'", prefix="X'"),
    _Type("DECIMAL", 3, 38, params=["precision", "scale"], radix=10, scales=(0, 38)),
    _Type("INT", 4, 10, radix=10, scales=(0, 0)),
    _Type("SMALLINT", 5, 5, radix=10, scales=(0, 0)),
    _Type("FLOAT", 7, 24, radix=2),
    _Type("DOUBLE", 8, 53, radix=2),
    _Type("STRING", 12, None, "'"),
    _Type("DATE", 91, 10, "'", prefix="DATE '", general=_DATETIME, subcode=1),
    _Type("TIMESTAMP", 93, 26, "'", prefix="TIMESTAMP '", scales=(6, 6), general=_DATETIME, subcode=3),
    _Type("TIMESTAMP_NTZ", 93, 26, "'", prefix="TIMESTAMP_NTZ '", scales=(6, 6), general=_DATETIME, subcode=3),
)
_NULLABLE = 1
_SEARCHABLE = 3
TYPES_SCHEMA = pa.schema(
    [
        pa.field("type_name", pa.string(), nullable=False),
        pa.field("data_type", pa.int32(), nullable=False),
        pa.field("column_size", pa.int32()),
        pa.field("literal_prefix", pa.string()),
        pa.field("literal_suffix", pa.string()),
        pa.field("create_params", pa.list_(pa.field("item", pa.string(), nullable=False))),
        pa.field("nullable", pa.int32(), nullable=False),
        pa.field("case_sensitive", pa.bool_(), nullable=False),
        pa.field("searchable", pa.int32(), nullable=False),
        pa.field("unsigned_attribute", pa.bool_()),
        pa.field("fixed_prec_scale", pa.bool_(), nullable=False),
        pa.field("auto_increment", pa.bool_()),
        pa.field("local_type_name", pa.string()),
        pa.field("minimum_scale", pa.int32()),
        pa.field("maximum_scale", pa.int32()),
        pa.field("sql_data_type", pa.int32(), nullable=False),
        pa.field("datetime_subcode", pa.int32()),
        pa.field("num_prec_radix", pa.int32()),
        pa.field("interval_precision", pa.int32()),
    ]
)
"""The columns of the list of types."""


def type_info(data_type: int | None) -> pa.Table:
    """The types that columns can have, or those of a number."""
    rows = [
        {
            "type_name": one.name,
            "data_type": one.number,
            "column_size": one.size,
            "literal_prefix": one.prefix or one.quote,
            "literal_suffix": one.quote,
            "create_params": one.params,
            "nullable": _NULLABLE,
            "case_sensitive": one.name == "STRING",
            "searchable": _SEARCHABLE,
            "unsigned_attribute": False if one.radix else None,
            "fixed_prec_scale": False,
            "auto_increment": False if one.radix else None,
            "local_type_name": one.name,
            "minimum_scale": one.scales[0] if one.scales else None,
            "maximum_scale": one.scales[1] if one.scales else None,
            "sql_data_type": one.general or one.number,
            "datetime_subcode": one.subcode,
            "num_prec_radix": one.radix,
            "interval_precision": None,
        }
        for one in _TYPES
        if data_type is None or one.number == data_type
    ]
    return pa.Table.from_pylist(rows, TYPES_SCHEMA)
