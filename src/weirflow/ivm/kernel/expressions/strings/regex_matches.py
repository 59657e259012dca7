"""``regexp_count``, ``regexp_extract_all``, ``regexp_instr`` and ``regexp_substr``, of constant expressions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pyarrow as pa

from weirflow.ivm.kernel.deadline import check
from weirflow.ivm.kernel.expressions.strings.regex import constant_expression
from weirflow.ivm.kernel.expressions.strings.texts import constants, first_only, growing, list_bytes, one_by_one

if TYPE_CHECKING:
    from weirflow.ivm.kernel.expressions.signature import Builder, CallSignature, Kernel
    from weirflow.ivm.kernel.expressions.strings.regex_search import Expression, RegexMatch

_STRING, _INT = pa.string(), pa.int32()


def _matches(expression: Expression, data: bytes) -> Iterator[RegexMatch]:
    """All matches, from left to right; of expressions that match no empty text."""
    end = 0
    while (found := expression.search(data, end)) is not None:
        check()
        yield found
        end = found.end


def regexp_count(signature: CallSignature) -> Kernel | None:
    """How often the expression is found."""
    expression = constant_expression(signature)
    if expression is None or expression.nullable or expression.has_caret:
        return None
    return first_only(one_by_one(lambda text: sum(1 for _ in _matches(expression, text.encode())), _INT))


def regexp_extract_all(signature: CallSignature) -> Kernel | None:
    """What a group matched, wherever the expression is found."""
    expression, known = constant_expression(signature), constants(signature, 1)
    if expression is None or known is None or expression.nullable or expression.has_caret:
        return None
    if expression.repeated_groups or not 0 <= known[1] <= expression.groups:
        return None
    group = known[1]

    def extracted(text: str) -> list[str]:
        return [found.group(group).decode() for found in _matches(expression, text.encode())]

    return first_only(growing(extracted, signature, size=list_bytes))


def regexp_instr(signature: CallSignature) -> Kernel | None:
    """Where the expression is found first, from 1; 0 if it is not. As in Java, some characters count twice."""
    expression = constant_expression(signature)
    if expression is None or constants(signature, 1) is None:
        return None

    def place(text: str) -> int:
        data = text.encode()
        found = expression.search(data)
        return 0 if found is None else len(data[: found.start].decode().encode("utf-16-le")) // 2 + 1

    return first_only(one_by_one(place, _INT))


def regexp_substr(signature: CallSignature) -> Kernel | None:
    """What is found first; NULL if nothing is, or if it is the empty text."""
    expression = constant_expression(signature)
    if expression is None:
        return None

    def part(text: str) -> str | None:
        data = text.encode()
        found = expression.search(data)
        return None if found is None else data[found.start : found.end].decode() or None

    return first_only(one_by_one(part, _STRING))


FUNCTIONS: dict[str, Builder] = {
    "regexp_count": regexp_count,
    "regexp_extract_all": regexp_extract_all,
    "regexp_instr": regexp_instr,
    "regexp_substr": regexp_substr,
}
