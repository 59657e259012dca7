"""How texts sound, how far they are apart, and what stands in their place."""

from __future__ import annotations

import unicodedata
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from weirflow.errors import DataError
from weirflow.ivm.kernel.deadline import check
from weirflow.ivm.kernel.expressions.failures import failure
from weirflow.ivm.kernel.expressions.rows import broadcast, evaluate_where
from weirflow.ivm.kernel.expressions.strings.functions import substring_of
from weirflow.ivm.kernel.expressions.strings.texts import are_texts, constants, growing, one_by_one

if TYPE_CHECKING:
    from weirflow.ivm.kernel.expressions.rows import Node, Rows, Value
    from weirflow.ivm.kernel.expressions.signature import Builder, CallSignature, FormBuilder, Kernel

_STRING, _INT = pa.string(), pa.int32()
_SOUNDS = dict(zip("ABCDEFGHIJKLMNOPQRSTUVWXYZ", "01230127022455012623017202", strict=True))
_SILENT = "7"
_VOWEL = "0"
_LONGEST_SOUND = 4
_INTS = 1 << 32
_SMALLEST = -(1 << 31)
_LAST_PLAIN = 0xFFFF
_AFTER_JAVA = frozenset({0x1C89, 0x1C8A, 0x2C2F, 0x2C5F, 0xA7C0, 0xA7C1, *range(0xA7CB, 0xA7DD)})
"""Letters that Unicode got after Java 17."""


def soundex(signature: CallSignature) -> Kernel | None:
    """A letter and three digits; a text that does not begin with a letter stays as it is."""
    return one_by_one(_soundex, _STRING) if are_texts(signature, 1) else None


def _soundex(text: str) -> str:
    first = text[:1].upper() if text[:1].isascii() else ""
    if first not in _SOUNDS:
        return text
    sound, last = first, _SOUNDS[first]
    for character in text[1:]:
        code = _SOUNDS.get(character.upper()) if character.isascii() else None
        if code == _SILENT:
            continue
        if code is None:
            code = _VOWEL
        elif code not in (_VOWEL, last):
            sound += code
            if len(sound) == _LONGEST_SOUND:
                break
        last = code
    return sound.ljust(_LONGEST_SOUND, "0")


def levenshtein(signature: CallSignature) -> Kernel | None:
    """How many characters differ; with a constant threshold, -1 for more of them than that."""
    if not are_texts(signature, 2):
        return None
    if len(signature.types) == 2:  # noqa: PLR2004 - without a threshold
        return one_by_one(_distance, _INT)

    known = constants(
        signature, 2
    )  # of a threshold that is NULL, Spark means one thing compiled and another interpreted
    if known is None:
        return None

    def within(left: str, right: str, _: int) -> int:
        found = _distance(left, right)
        return found if found <= known[0] else -1

    return one_by_one(within, _INT)


def _distance(left: str, right: str) -> int:
    """By Myers' algorithm: a column of the table is two integers, of which each bit says where it rises or falls."""
    if not left or not right:
        return max(len(left), len(right))
    places: dict[str, int] = {}
    for at, character in enumerate(left):
        places[character] = places.get(character, 0) | 1 << at
    everywhere, last = (1 << len(left)) - 1, 1 << (len(left) - 1)
    rises, falls, distance = everywhere, 0, len(left)
    for character in right:
        check()
        equal = places.get(character, 0)
        vertical = equal | falls
        horizontal = (((equal & rises) + rises) ^ rises) | equal
        up = falls | (~(horizontal | rises) & everywhere)
        down = rises & horizontal
        if up & last:
            distance += 1
        elif down & last:
            distance -= 1
        up = (up << 1 | 1) & everywhere
        down = down << 1 & everywhere
        rises = down | (~(vertical | up) & everywhere)
        falls = up & vertical
    return distance


def luhn_check(signature: CallSignature) -> Kernel | None:
    """Whether digits end with the one that they are to be checked by."""
    return one_by_one(_is_checked, pa.bool_()) if are_texts(signature, 1) else None


def _is_checked(text: str) -> bool:
    if not (text.isascii() and text.isdigit()):
        return False
    digits = [int(digit) for digit in reversed(text)]
    doubled = [2 * digit for digit in digits[1::2]]
    return (sum(digits[0::2]) + sum(one // 10 + one % 10 for one in doubled)) % 10 == 0


def find_in_set(signature: CallSignature) -> Kernel | None:
    """The place of a word among those between commas, from 1; 0 if it is not there."""
    return one_by_one(_place, _INT) if are_texts(signature, 2) else None


def _place(word: str, words: str) -> int:
    if "," in word:
        return 0
    found = words.split(",")
    return found.index(word) + 1 if word in found else 0


def overlay(signature: CallSignature) -> Kernel | None:
    """``overlay(text, replacement, position, length)``; a negative length is that of the replacement."""
    if len(signature.types) != 4 or not are_texts(signature, 2, binary=True):  # noqa: PLR2004 - the binder fills in
        return None
    return growing(_overlaid, signature, size=len if signature.result == pa.binary() else _most)


def _most(text: str) -> int:
    return 4 * len(text)


def _overlaid(text: Any, replacement: Any, position: int, length: int) -> Any:
    size = length if length >= 0 else len(replacement)
    behind = (position + size - _SMALLEST) % _INTS + _SMALLEST
    before = (position - 1 - _SMALLEST) % _INTS + _SMALLEST
    return substring_of(text, 1, before) + replacement + substring_of(text, behind, (1 << 31) - 1)


def quote(signature: CallSignature) -> Kernel | None:
    """The text as a literal."""
    return one_by_one(lambda text: "'" + text.replace("'", "\\'") + "'", _STRING) if are_texts(signature, 1) else None


def mask(signature: CallSignature) -> Kernel | None:
    """``mask(text, upper, lower, digit, other)``: a character for each of a kind; NULL leaves that kind as it is."""
    if len(signature.types) != 5 or not are_texts(signature, 5):  # noqa: PLR2004 - the binder fills in
        return None
    masks = signature.constants[1:]
    if any(one is None for one in masks):
        return None
    upper, lower, digit, other = (None if one is None else one.as_py() for one in masks)
    if any(one is not None and (len(one) != 1 or not one.isascii()) for one in (upper, lower, digit, other)):
        return None

    def masked(text: str, *_: Any) -> str:
        return "".join(_mask(character, upper, lower, digit, other) for character in text)

    return partial(_first_of, one_by_one(masked, _STRING))


def _first_of(kernel: Kernel, value: Value, *_: Value) -> Value:
    return kernel(value)


def _mask(character: str, upper: str | None, lower: str | None, digit: str | None, other: str | None) -> str:
    if ord(character) > _LAST_PLAIN:  # two of Java's characters, which are of no kind
        return character if other is None else other * 2
    kind = "" if ord(character) in _AFTER_JAVA else unicodedata.category(character)
    return {"Lu": upper, "Ll": lower, "Nd": digit}.get(kind, other) or character


def elt(signature: CallSignature, nodes: list[Node]) -> Node | None:
    """``elt(n, ...)``: the n-th of the others, which alone is evaluated.

    What is not there is an error, or NULL if the function's name says so.
    """
    if signature.types[0] != _INT or any(kind != signature.result for kind in signature.types[1:]):
        return None
    tolerant, position, count = signature.function.startswith("try_"), signature.position, len(nodes) - 1

    def run(rows: Rows) -> Value:
        places = broadcast(nodes[0](rows), rows.length)
        wanted = places.fill_null(0).to_numpy()
        wrong = (wanted < 1) | (wanted > count)
        if not tolerant and (wrong & places.is_valid().to_numpy(zero_copy_only=False)).any():
            message = f"elt() has {count} values to choose from, from 1 on."
            raise failure("INVALID_ARRAY_INDEX", message, position)
        result = pa.nulls(rows.length, signature.result)
        for place, node in enumerate(nodes[1:], 1):
            chosen = wanted == place
            if chosen.any():
                result = pc.if_else(pa.array(chosen), _evaluated(node, signature.result, rows, chosen), result)
        return result

    return run


def _evaluated(node: Node, kind: pa.DataType, rows: Rows, chosen: Any) -> Value:
    try:
        return node(rows)
    except DataError:
        return evaluate_where(node, kind, rows, np.asarray(chosen))


FUNCTIONS: dict[str, Builder] = {
    "soundex": soundex,
    "levenshtein": levenshtein,
    "luhn_check": luhn_check,
    "find_in_set": find_in_set,
    "overlay": overlay,
    "quote": quote,
    "mask": mask,
}
FORMS: dict[str, FormBuilder] = {"elt": elt, "try_elt": elt}
