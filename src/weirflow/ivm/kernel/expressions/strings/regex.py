"""``rlike``, ``regexp_replace``, ``regexp_extract`` and ``split``, for constant expressions of the common subset."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from weirflow.ivm.kernel.bounds import is_too_large, require_result
from weirflow.ivm.kernel.deadline import check
from weirflow.ivm.kernel.expressions.retype import retyped
from weirflow.ivm.kernel.expressions.rows import nbytes, on_arrays
from weirflow.ivm.kernel.expressions.strings.regex_search import Expression
from weirflow.ivm.kernel.expressions.strings.regex_subset import Refused
from weirflow.ivm.kernel.expressions.strings.texts import (
    are_texts,
    constants,
    first_only,
    growing,
    in_slices,
    list_bytes,
    one_by_one,
)

if TYPE_CHECKING:
    from weirflow.ivm.kernel.expressions.signature import Builder, CallSignature, Kernel

_STRING = pa.string()
_SHORT = 4096
_MOST_REFERENCES = 9
"""RE2 reads one digit."""
_BYTES_OF_PIECE = 8
_REFERENCE = re.compile(r"\\(.)|\$(\d+)|([\\$])", re.DOTALL)


def rlike(signature: CallSignature) -> Kernel | None:
    """Whether the expression is found anywhere in the text."""
    expression = constant_expression(signature)
    if expression is None:
        return None
    text, before_crlf = expression.texts

    def matched(texts: pa.Array) -> pa.Array:
        found = pc.match_substring_regex(texts, pattern=text)
        if text == before_crlf:
            return found
        ends = pc.ends_with(texts, pattern="\r\n")
        if not pc.any(ends).as_py():
            return found
        return pc.if_else(ends, pc.match_substring_regex(texts, pattern=before_crlf), found)

    return first_only(on_arrays(in_slices(matched)))


def regexp_extract(signature: CallSignature) -> Kernel | None:
    """What a group matched, where the expression is found first; the empty text if it is not."""
    expression = constant_expression(signature)
    known = constants(signature, 1)
    if expression is None or known is None or expression.repeated_groups:
        return None
    group = known[1]
    if not 0 <= group <= expression.groups:
        return None

    def extract(text: str) -> str:
        found = expression.search(text.encode())
        return found.group(group).decode() if found else ""

    if expression.has_dollar:
        return first_only(one_by_one(extract, _STRING))
    with_group = expression.with_group(group)

    def extracted(texts: pa.Array) -> pa.Array:
        found = pc.struct_field(pc.extract_regex(texts, pattern=with_group), [0])
        return pc.if_else(texts.is_valid(), found.fill_null(""), pa.scalar(None, _STRING))

    return first_only(on_arrays(in_slices(extracted)))


def regexp_replace(signature: CallSignature) -> Kernel | None:
    """Every match replaced; in the replacement ``$n`` is what group n matched."""
    expression = constant_expression(signature)
    known = constants(signature, 1)
    if expression is None or known is None or expression.nullable or known[2:] not in ([], [1]):
        return None
    parts = _replacement(known[1], expression.groups)
    if parts is None or (expression.repeated_groups and any(isinstance(part, int) and part for part in parts)):
        return None
    encoded = [part.encode() if isinstance(part, str) else part for part in parts]

    def replaced(text: str) -> str:
        data = text.encode()
        pieces: list[bytes] = []
        end, size = 0, len(data)
        while (found := expression.search(data, end)) is not None:
            check()
            pieces.append(data[end : found.start])
            made = [part if isinstance(part, bytes) else found.group(part) for part in encoded]
            size += sum(map(len, made))
            require_result(size, signature.function, signature.position)
            pieces += made
            end = found.end
        pieces.append(data[end:])
        return b"".join(pieces).decode()

    slow = growing(replaced, signature)
    if expression.has_dollar or expression.groups > _MOST_REFERENCES:
        return first_only(slow)
    rewritten = "".join(part.replace("\\", "\\\\") if isinstance(part, str) else f"\\{part}" for part in parts)

    def fast(texts: pa.Array) -> pa.Array:
        if not _are_short(texts) or is_too_large((1 + len(rewritten.encode())) * nbytes(texts, 1)):
            return slow(texts)
        return pc.replace_substring_regex(texts, pattern=expression.texts[0], replacement=rewritten)

    return first_only(on_arrays(in_slices(fast)))


def _are_short(texts: pa.Array) -> bool:
    """Whether all matches in each text may be left to Arrow, which looks at no deadline while it searches for them.

    Each search is linear, and so all in a text may be quadratic.
    """
    longest = pc.max(pc.binary_length(texts)).as_py()
    return longest is None or longest <= _SHORT


def _replacement(text: str, groups: int) -> list[str | int] | None:
    """Texts and group numbers; None if Java would refuse it, or if it names a group."""
    parts: list[str | int] = []
    end = 0
    for found in _REFERENCE.finditer(text):
        parts.append(text[end : found.start()])
        end = found.end()
        if found[1] is not None:
            parts.append(found[1])
        elif found[2] is not None:
            number = int(found[2][0])
            used = 1
            # As many digits as still name a group.
            while used < len(found[2]) and int(found[2][: used + 1]) <= groups:
                used += 1
                number = int(found[2][:used])
            if number > groups:
                return None
            parts += [number, found[2][used:]]
        else:
            return None
    return [*parts, text[end:]]


def split(signature: CallSignature) -> Kernel | None:
    """The pieces between matches, empty ones included; with a positive limit, at most so many."""
    known = constants(signature, 1)
    if not are_texts(signature, 2) or known is None:
        return None
    limit = known[1] if len(known) > 1 else -1
    if known[0] == "":
        return first_only(growing(lambda text: _characters(text, limit), signature, size=list_bytes))
    expression = constant_expression(signature)
    if expression is None or expression.nullable:
        return None

    def pieces(text: str) -> list[str]:
        data = text.encode()
        pieces: list[str] = []
        end = 0
        while not 0 < limit <= len(pieces) + 1 and (found := expression.search(data, end)) is not None:
            check()
            pieces.append(data[end : found.start].decode())
            end = found.end
        return [*pieces, data[end:].decode()]

    slow = growing(pieces, signature, size=list_bytes)
    if expression.has_dollar or expression.has_caret:
        return first_only(slow)

    def fast(texts: pa.Array) -> pa.Array:
        if not _are_short(texts) or is_too_large(_BYTES_OF_PIECE * nbytes(texts, 1)):
            return slow(texts)
        most = limit - 1 if limit > 0 else None
        found = pc.split_pattern_regex(texts, pattern=expression.texts[0], max_splits=most)
        return retyped(found, signature.result)

    return first_only(on_arrays(in_slices(fast)))


def _characters(text: str, limit: int) -> list[str]:
    if not text:
        return [""]
    if 0 < limit < len(text):
        return [*text[: limit - 1], text[limit - 1 :]]
    return list(text)


def constant_expression(signature: CallSignature) -> Expression | None:
    """The second argument, if it is a constant expression of the common subset."""
    known = constants(signature, 1)
    if not are_texts(signature, 2) or known is None:
        return None
    try:
        return Expression(known[0])
    except Refused:
        return None


FUNCTIONS: dict[str, Builder] = {
    "rlike": rlike,
    "regexp_extract": regexp_extract,
    "regexp_replace": regexp_replace,
    "split": split,
}
