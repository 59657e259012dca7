"""``rlike``, ``regexp_replace``, ``regexp_extract`` and ``split``, for constant expressions of the common subset."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from weirflow.ivm.kernel.expressions.regex_subset import Expression, Refused, translate
from weirflow.ivm.kernel.expressions.texts import are_texts, constants, first_only, one_by_one

if TYPE_CHECKING:
    from weirflow.ivm.kernel.expressions.signature import Builder, Kernel, Signature

_STRING = pa.string()
_REFERENCE = re.compile(r"\\(.)|\$(\d+)|([\\$])", re.DOTALL)


def rlike(signature: Signature) -> Kernel | None:
    """Whether the expression is found anywhere in the text."""
    expression = _expression(signature)
    if expression is None:
        return None
    fast = expression.fast
    if fast is not None:
        return first_only(lambda texts: pc.match_substring_regex(texts, pattern=fast))
    search = expression.pattern.search
    return first_only(one_by_one(lambda text: search(text) is not None, pa.bool_()))


def regexp_extract(signature: Signature) -> Kernel | None:
    """What a group matched, where the expression is found first; the empty text if it is not."""
    expression = _expression(signature)
    known = constants(signature, 1)
    if expression is None or known is None or expression.repeated_groups:
        return None
    group = known[1]
    if not 0 <= group <= expression.groups:
        return None
    search = expression.pattern.search

    def extract(text: str) -> str:
        found = search(text)
        return (found[group] or "") if found else ""

    return first_only(one_by_one(extract, _STRING))


def regexp_replace(signature: Signature) -> Kernel | None:
    """Every match replaced; in the replacement ``$n`` is what group n matched."""
    expression = _expression(signature)
    known = constants(signature, 1)
    if expression is None or known is None or expression.nullable or known[2:] not in ([], [1]):
        return None
    parts = _replacement(known[1], expression.groups)
    if parts is None or (expression.repeated_groups and any(isinstance(part, int) and part for part in parts)):
        return None

    def replaced(found: re.Match[str]) -> str:
        return "".join(part if isinstance(part, str) else found[part] or "" for part in parts)

    substitute = expression.pattern.sub
    return first_only(one_by_one(lambda text: substitute(replaced, text), _STRING))


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


def split(signature: Signature) -> Kernel | None:
    """The pieces between matches, empty ones included; with a positive limit, at most so many."""
    known = constants(signature, 1)
    if not are_texts(signature, 2) or known is None:
        return None
    limit = known[1] if len(known) > 1 else -1
    if known[0] == "":
        return first_only(one_by_one(lambda text: _characters(text, limit), signature.result))
    expression = _expression(signature)
    if expression is None or expression.nullable:
        return None
    find = expression.pattern.finditer

    def pieces(text: str) -> list[str]:
        found: list[str] = []
        end = 0
        for match in find(text):
            if 0 < limit <= len(found) + 1:
                break
            found.append(text[end : match.start()])
            end = match.end()
        return [*found, text[end:]]

    return first_only(one_by_one(pieces, signature.result))


def _characters(text: str, limit: int) -> list[str]:
    if not text:
        return [""]
    if 0 < limit < len(text):
        return [*text[: limit - 1], text[limit - 1 :]]
    return list(text)


def _expression(signature: Signature) -> Expression | None:
    known = constants(signature, 1)
    if not are_texts(signature, 2) or known is None:
        return None
    try:
        return translate(known[0])
    except Refused:
        return None


FUNCTIONS: dict[str, Builder] = {
    "rlike": rlike,
    "regexp_extract": regexp_extract,
    "regexp_replace": regexp_replace,
    "split": split,
}
