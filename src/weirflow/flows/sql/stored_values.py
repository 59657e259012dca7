"""Values on their way into the columns of a source, as Spark's ANSI store assignment takes them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pyarrow as pa

from weirflow.errors import ColumnNotFound, DataError, SqlTypeError, did_you_mean
from weirflow.ivm.kernel.expressions.casts.context import Cast
from weirflow.ivm.kernel.expressions.zoned import cast_in_zone
from weirflow.ivm.zset.batch import one_array
from weirflow.sql.types import nullable, type_name
from weirflow.sql.typing.store_assignment import can_store


def column_named(known: Sequence[str], name: str) -> str:
    """The column of this name, in any case if need be, as it is spelled there; ``ColumnNotFound`` if it is not."""
    if name in known:
        return name
    for one in known:
        if one.casefold() == name.casefold():
            return str(one)
    hint = did_you_mean(name, known) or f"the columns are {', '.join(known)}"
    raise ColumnNotFound(f"The source has no column {name!r}.", hint=hint)


def columns_named(known: Sequence[str], names: Sequence[str]) -> list[str]:
    """``column_named`` for several, none of them twice."""
    found = [column_named(known, name) for name in names]
    for name in found:
        if found.count(name) > 1:
            raise SqlTypeError(f"The column {name!r} is given twice.")
    return found


def stored(schema: pa.Schema, columns: Mapping[str, pa.ChunkedArray], rows: int, zone: str) -> pa.Table:
    """Rows of the schema with these columns, cast as they may be in that time zone, and NULL in all others.

    Raises:
        SqlTypeError: values of such a type are not stored in such a column without an explicit cast.
        DataError: a value does not fit its column, or is NULL where none may be.
    """
    arrays = []
    for field in schema:
        given = columns.get(field.name)
        array = pa.nulls(rows, field.type) if given is None else _stored(one_array(given), field, zone)
        if not field.nullable and array.null_count:
            raise DataError(
                f"The column {field.name!r} is NOT NULL, but {array.null_count} values are NULL.",
                condition="NOT_NULL_ASSERT_VIOLATION",
            )
        arrays.append(array)
    return pa.Table.from_arrays(arrays, schema=schema)


def _stored(array: pa.Array, field: pa.Field, zone: str) -> pa.Array:
    source, target = array.type, nullable(field.type)
    cast = cast_in_zone(Cast(source, target), zone) if can_store(source, target) else None
    if cast is None:
        raise SqlTypeError(
            f"The column {field.name!r} is {type_name(target)}, which takes no {type_name(source)} without a cast.",
            hint=f"write CAST(... AS {type_name(target).upper()})",
            condition="INCOMPATIBLE_DATA_FOR_TABLE.CANNOT_SAFELY_CAST",
        )
    try:
        made = cast(array)
    except DataError as error:
        raise DataError(
            f"A value does not fit the column {field.name!r}: {error.message}",
            hint=error.hint,
            condition=error.condition,
        ) from error
    return made if made.type.equals(field.type) else made.cast(field.type)
