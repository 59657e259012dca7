"""Functions of texts, which are sequences of code points; some take binaries, which are sequences of bytes."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from weirflow.ivm.kernel.bounds import is_too_large, require_result
from weirflow.ivm.kernel.deadline import check
from weirflow.ivm.kernel.expressions.failures import failure
from weirflow.ivm.kernel.expressions.nested import functions as nested
from weirflow.ivm.kernel.expressions.rows import nbytes, on_arrays
from weirflow.ivm.kernel.expressions.strings import letters, patterns
from weirflow.ivm.kernel.expressions.strings.texts import (
    are_texts,
    constants,
    first_only,
    growing,
    joined,
    most_bytes,
    one_by_one,
    require_joinable,
)

if TYPE_CHECKING:
    from weirflow.ivm.kernel.expressions.rows import Value
    from weirflow.ivm.kernel.expressions.signature import Builder, CallSignature, Kernel

_STRING, _INT = pa.string(), pa.int32()
_INT_RANGE = (-(1 << 31), (1 << 31) - 1)


def letter_case(signature: CallSignature) -> Kernel | None:
    """``upper``, ``lower`` and ``initcap``."""
    if not are_texts(signature, 1):
        return None
    function, ascii_only = _CASES[signature.function]
    slow = one_by_one(function, _STRING)
    if ascii_only is None:
        return slow

    def run(texts: pa.Array) -> pa.Array:
        plain = pc.all(pc.string_is_ascii(texts), min_count=0).as_py()
        return ascii_only(texts) if plain else slow(texts)

    return on_arrays(run)


_CASES: dict[str, tuple[Callable[[str], str], Kernel | None]] = {
    "upper": (letters.upper, pc.ascii_upper),
    "lower": (letters.lower, pc.ascii_lower),
    "initcap": (letters.initial_capitals, None),
}


def length(signature: CallSignature) -> Kernel | None:
    """``length`` in code points or bytes, ``octet_length`` in bytes, ``bit_length`` in bits."""
    if not are_texts(signature, 1, binary=True):
        return None
    if signature.function == "length" and signature.types[0] == _STRING:
        return pc.utf8_length  # type: ignore[no-any-return]  # pyarrow ships no types
    if signature.function == "bit_length":
        return lambda value: pc.multiply(pc.binary_length(value), pa.scalar(8, _INT))
    return pc.binary_length  # type: ignore[no-any-return]  # as above


def _trimmed(text: str, characters: str, *, left: bool, right: bool) -> str:
    unwanted, start, end = frozenset(characters), 0, len(text)
    while left and start < end and text[start] in unwanted:
        start += 1
    while right and start < end and text[end - 1] in unwanted:
        end -= 1
    return text[start:end]


_TRIMS: dict[str, tuple[Kernel, Callable[[str, str], str]]] = {
    "trim": (pc.utf8_trim, partial(_trimmed, left=True, right=True)),
    "ltrim": (pc.utf8_ltrim, partial(_trimmed, left=True, right=False)),
    "rtrim": (pc.utf8_rtrim, partial(_trimmed, left=False, right=True)),
}


def trim(signature: CallSignature) -> Kernel | None:
    """``trim(text[, characters])``: spaces, unless characters are given."""
    if not are_texts(signature, len(signature.types)):
        return None
    by_arrow, by_python = _TRIMS[signature.function]
    known = constants(signature, 1)
    if known is None:
        return one_by_one(by_python, _STRING)
    characters = known[0] if known else " "
    if not characters:
        return first_only(lambda texts: texts)
    return first_only(lambda texts: by_arrow(texts, characters=characters))


def substring(signature: CallSignature) -> Kernel | None:
    """``substring(text, position, length)``: from 1, or from the end if negative; 0 counts as 1."""
    if not are_texts(signature, 1, binary=True):
        return None
    if len(signature.types) != 3:  # noqa: PLR2004 - the binder fills in the length
        return None
    kind, known = signature.types[0], constants(signature, 1)
    if known is None:
        return one_by_one(substring_of, kind)
    position, size = known
    return first_only(_slicer(kind, position, size))


def left_right(signature: CallSignature) -> Kernel | None:
    """``left`` and ``right``: as many as asked for, none if negative."""
    if not are_texts(signature, 1, binary=True):
        return None
    kind, known = signature.types[0], constants(signature, 1)
    right = signature.function == "right"
    if known is None:

        def cut(text: Any, count: int) -> Any:
            return substring_of(text, -max(count, 0) if right else 1, max(count, 0))

        return one_by_one(cut, kind)
    count = max(known[0], 0)
    return first_only(_slicer(kind, -count if right else 1, count))


def substring_of(text: Any, position: int, size: int) -> Any:
    """The part of a text or binary that ``substring`` gives."""
    start = position - 1 if position > 0 else len(text) + position if position < 0 else 0
    stop = min(max(start + size, _INT_RANGE[0]), _INT_RANGE[1])
    return text[max(start, 0) : max(stop, 0)]


def _slicer(kind: pa.DataType, position: int, size: int) -> Callable[[Value], Value]:
    cut = pc.utf8_slice_codeunits if kind == _STRING else pc.binary_slice
    if size <= 0:
        return lambda texts: cut(texts, 0, 0)
    start = max(position - 1, 0) if position >= 0 else position
    stop: int | None = start + size
    if position < 0 and stop is not None and stop >= 0:
        stop = None
    return lambda texts: cut(texts, start, stop)


def concat(signature: CallSignature) -> Kernel | None:
    """``||``: NULL if any part is; arrays are laid end to end."""
    if pa.types.is_list(signature.result):
        return nested.concat(signature)
    if not are_texts(signature, len(signature.types), binary=True):
        return None
    nothing = "" if signature.result == _STRING else b""
    separator = pa.scalar(nothing, signature.result)

    def run(*parts: Value) -> Value:
        require_joinable(parts, signature)
        return pc.binary_join_element_wise(*parts, separator)

    return run


def concat_ws(signature: CallSignature) -> Kernel | None:
    """``concat_ws(separator, ...)``: what is not NULL, arrays included, with separators between."""
    listed = [pa.types.is_list(kind) and kind.value_type == _STRING for kind in signature.types]
    if not all(text or kind == _STRING for text, kind in zip(listed, signature.types, strict=True)):
        return None
    if any(listed) or len(signature.types) == 1:
        return growing(partial(_joined, signature), signature, strict=False)

    def run(separators: pa.Array, *parts: pa.Array) -> pa.Array:
        require_joinable((*parts, *[separators] * (len(parts) - 1)), signature)
        whole = pc.binary_join_element_wise(*parts, separators, null_handling="skip")
        # Arrow leaves out rows of which all parts are NULL.
        return whole if len(whole) == len(separators) else one_by_one(separators, *parts)

    one_by_one = growing(partial(_joined, signature), signature, strict=False)
    return on_arrays(run)


def _joined(signature: CallSignature, separator: str | None, *parts: str | list[str | None] | None) -> str | None:
    pieces: list[str | None] = []
    for part in parts:
        pieces.extend(part if isinstance(part, list) else [part])
    return None if separator is None else joined(separator, [piece for piece in pieces if piece is not None], signature)


def replace(signature: CallSignature) -> Kernel | None:
    """``replace(text, search, replacement)``; nothing is searched for if there is nothing to search."""
    if not are_texts(signature, 3):
        return None
    known = constants(signature, 1)
    slow = growing(partial(_replaced, signature), signature)
    if known is None:
        return slow
    old, new = known
    if not old:
        return first_only(lambda texts: texts)

    def run(texts: Value, *others: Value) -> Value:
        if is_too_large(nbytes(texts, 1) * (1 + most_bytes(new) / len(old))):
            return slow(texts, *others)
        return pc.replace_substring(texts, old, new)

    return run


def _replaced(signature: CallSignature, text: str, old: str, new: str) -> str:
    if not old:
        return text
    if is_too_large(len(text) * (len(new) + 1)):  # counting is worth its time
        size = most_bytes(text) + text.count(old) * (most_bytes(new) - len(old))
        require_result(size, signature.function, signature.position)
    return text.replace(old, new)


def pad(signature: CallSignature) -> Kernel | None:
    """``lpad`` and ``rpad``: exactly so many code points, unless there is nothing to pad with."""
    if not are_texts(signature, 1) or len(signature.types) != 3 or signature.types[2] != _STRING:  # noqa: PLR2004
        return None
    left = signature.function == "lpad"

    def padded(text: str, size: int, filler: str) -> str:
        missing = size - len(text)
        if missing <= 0 or not filler:
            return text[: max(size, 0)]
        width = 1 if filler.isascii() else 4
        require_result(most_bytes(text) + width * missing, signature.function, signature.position)
        fill = (filler * (missing // len(filler) + 1))[:missing]
        return fill + text if left else text + fill

    return growing(padded, signature)


def locate(signature: CallSignature) -> Kernel | None:
    """``locate(part, text, from)``: from 1; 0 if it is not there, or if ``from`` is NULL or not positive."""
    if not are_texts(signature, 2):
        return None

    def run(parts: pa.Array, texts: pa.Array, starts: pa.Array) -> pa.Array:
        rows = zip(parts.to_pylist(), texts.to_pylist(), starts.to_pylist(), strict=True)
        return pa.array([_located(part, text, start) for part, text, start in rows], _INT)

    return on_arrays(run)


def _located(part: str | None, text: str | None, start: int | None) -> int | None:
    if start is None:
        return 0
    if part is None or text is None:
        return None
    if start < 1:
        return 0
    return 1 if not part else text.find(part, start - 1) + 1


def instr(signature: CallSignature) -> Kernel | None:
    """``instr(text, part)``: from 1; 0 if it is not there."""
    return one_by_one(lambda text, part: text.find(part) + 1, _INT) if are_texts(signature, 2) else None


def reverse(signature: CallSignature) -> Kernel | None:
    """The code points, or an array's elements, in reverse order."""
    if pa.types.is_list(signature.types[0]):
        return nested.reverse(signature)
    return pc.utf8_reverse if are_texts(signature, 1) else None


def repeat(signature: CallSignature) -> Kernel | None:
    """So many times; the empty text if negative."""

    def repeated(text: str, count: int) -> str:
        require_result(most_bytes(text) * count, signature.function, signature.position)
        return text * count

    return growing(repeated, signature) if are_texts(signature, 1) else None


def space(signature: CallSignature) -> Kernel | None:
    """So many spaces."""

    def spaces(count: int) -> str:
        require_result(count, signature.function, signature.position)
        return " " * count

    return growing(spaces, signature) if signature.types == (_INT,) else None


def translate(signature: CallSignature) -> Kernel | None:
    """``translate(text, from, to)``: code points one by one; those without a counterpart, or with NUL, vanish."""
    if not are_texts(signature, 3):
        return None
    known = constants(signature, 1)
    if known is None:
        return one_by_one(lambda text, old, new: text.translate(_table(old, new)), _STRING)
    table = _table(*known)
    return first_only(one_by_one(lambda text: text.translate(table), _STRING))


def _table(old: str, new: str) -> dict[int, str | None]:
    table: dict[int, str | None] = {}
    for index, character in enumerate(old):
        replacement = new[index] if index < len(new) else "\0"
        table.setdefault(ord(character), None if replacement == "\0" else replacement)
    return table


def first_code_point(signature: CallSignature) -> Kernel | None:
    """``ascii``: 0 for the empty text."""
    return one_by_one(lambda text: ord(text[0]) if text else 0, _INT) if are_texts(signature, 1) else None


def character(signature: CallSignature) -> Kernel | None:
    """``chr``: the Latin-1 character of the low eight bits; the empty text for what is negative."""
    if signature.types != (pa.int64(),):
        return None
    return one_by_one(lambda code: "" if code < 0 else chr(code & 0xFF), _STRING)


def split_part(signature: CallSignature) -> Kernel | None:
    """``split_part(text, delimiter, n)``: from 1, or from the end if negative; empty if there is none."""
    if not are_texts(signature, 2):
        return None
    position = signature.position

    def part(text: str, delimiter: str, index: int) -> str:
        if index == 0:
            raise failure("INVALID_INDEX_OF_ZERO", "The index 0 is invalid: the first part has index 1.", position)
        parts = text.split(delimiter) if delimiter else [text]
        place = index - 1 if index > 0 else len(parts) + index
        return parts[place] if 0 <= place < len(parts) else ""

    return one_by_one(part, _STRING)


def substring_index(signature: CallSignature) -> Kernel | None:
    """``substring_index(text, delimiter, count)``: all before the delimiter's count-th occurrence."""
    if not are_texts(signature, 2):
        return None

    def cut(text: str, delimiter: str, count: int) -> str:
        if not delimiter or count == 0:
            return ""
        if count > 0:
            return text[: _occurrence(text, delimiter, count)]
        # Backwards in the reversed texts: a search from the right takes quadratic time.
        return text[len(text) - _occurrence(text[::-1], delimiter[::-1], -count) :]

    return one_by_one(cut, _STRING)


def _occurrence(text: str, part: str, count: int) -> int:
    """Where the count-th occurrence begins, of all that there are, overlapping ones too; the end if there are fewer."""
    found = -1
    for _ in range(count):
        found = text.find(part, found + 1)
        if found < 0:
            return len(text)
        check()
    return found


FUNCTIONS: dict[str, Builder] = {
    **dict.fromkeys(_CASES, letter_case),
    **dict.fromkeys(("length", "octet_length", "bit_length"), length),
    **dict.fromkeys(_TRIMS, trim),
    **dict.fromkeys(("left", "right"), left_right),
    **dict.fromkeys(("lpad", "rpad"), pad),
    **dict.fromkeys(patterns.TESTS, patterns.contains),
    **dict.fromkeys(("like", "ilike"), patterns.like),
    "substring": substring,
    "concat": concat,
    "concat_ws": concat_ws,
    "replace": replace,
    "locate": locate,
    "instr": instr,
    "reverse": reverse,
    "repeat": repeat,
    "space": space,
    "translate": translate,
    "ascii": first_code_point,
    "chr": character,
    "split_part": split_part,
    "substring_index": substring_index,
}
