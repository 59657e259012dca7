"""Dimensions: how many numbers the vectors of a column have, where that was declared.

They are said in the schema, beside the column's type, and so are wherever a schema is: in logs, in checkpoints, on
shards and at clients. Versions that know nothing of them read the same schema without.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from weirflow.errors import ConfigError, DataError, did_you_mean
from weirflow.sql.functions.vectors import is_vector
from weirflow.sql.types import type_name

if TYPE_CHECKING:
    import numpy.typing as npt

_KEY = b"weirflow.dimension"
MOST = 10**6
"""No vector has more numbers."""


def with_dimensions(schema: pa.Schema, dimensions: Mapping[str, int], source: str) -> pa.Schema:
    """The schema of a source with the dimensions of these columns, and of no others.

    Raises:
        ConfigError: there is no such column, it holds no vectors, or nothing has such a dimension.
    """
    for name, dimension in dimensions.items():
        if name not in schema.names:
            hint = did_you_mean(name, schema.names) or f"it has {', '.join(schema.names)}"
            raise ConfigError(f"The source {source!r} has no column {name!r}, which dimensions= names.", hint=hint)
        kind = schema.field(name).type
        if not is_vector(kind):
            raise ConfigError(
                f"The column {name!r} of {source!r} is {type_name(kind)}, which has no dimension.",
                hint="only columns of type ARRAY<FLOAT> or ARRAY<DOUBLE> have a dimension",
            )
        if not 1 <= dimension <= MOST:
            raise ConfigError(f"The dimension of {name!r} is {dimension}.", hint=f"a vector has 1 to {MOST:,} numbers")
    return pa.schema([_with(field, dimensions.get(field.name)) for field in schema])


def dimensions_of(schema: pa.Schema) -> dict[str, int]:
    """The dimensions of columns, where they were declared."""
    said = [(field.name, (field.metadata or {}).get(_KEY)) for field in schema]
    return {name: int(dimension) for name, dimension in said if dimension is not None}


def require_dimension(column: pa.Array, checked: npt.NDArray[np.bool_], name: str, dimension: int, source: str) -> None:
    """``DataError`` if one of the vectors that are ``checked`` has another dimension; NULL has none."""
    found = np.asarray(column.value_lengths().fill_null(dimension))
    wrong = np.flatnonzero((found != dimension) & checked)
    if len(wrong):
        raise DataError(
            f"A row for {source!r} has a vector of {int(found[wrong[0]])} numbers in {name!r}; the source takes "
            f"vectors of {dimension}.",
            hint="correct the row, or register another source with the dimension that it has",
        )


def _with(field: pa.Field, dimension: int | None) -> pa.Field:
    known = {key: value for key, value in (field.metadata or {}).items() if key != _KEY}
    said = known if dimension is None else {**known, _KEY: str(dimension).encode()}
    return field.with_metadata(said) if said or field.metadata else field
