"""Plans as text, as they are stored with the views that they are of."""

from weirflow.sql.stored.fit import fitted, not_there
from weirflow.sql.stored.plan_text import (
    VERSION,
    Outline,
    decode_plan,
    encode_plan,
    encode_refusal,
    outline,
    with_query,
)

__all__ = [
    "VERSION",
    "Outline",
    "decode_plan",
    "encode_plan",
    "encode_refusal",
    "fitted",
    "not_there",
    "outline",
    "with_query",
]
