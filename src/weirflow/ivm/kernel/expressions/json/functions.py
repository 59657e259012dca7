"""Functions that take JSON texts apart: what is no JSON gives NULL."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from weirflow.ivm.kernel.deadline import checked
from weirflow.ivm.kernel.expressions.json.reader import LENIENT, Fields, Malformed, whole
from weirflow.ivm.kernel.expressions.json.writer import string_text, value_text
from weirflow.ivm.kernel.expressions.rows import on_arrays

if TYPE_CHECKING:
    from weirflow.ivm.kernel.expressions.signature import Builder, CallSignature, Kernel

_STEP = re.compile(r"\.([A-Za-z_][A-Za-z0-9_-]*)|\['([^'?\[\]*]+)'\]|\[([0-9]{1,9})\]|\[(\*)\]", re.ASCII)
ALL = "*"
"""All places of an array, as a step ``(ALL,)``."""


def _of_texts(signature: CallSignature, function: Callable[[Any], Any]) -> Kernel:
    """A function of values that are read; NULL for texts that are no JSON."""

    def one(text: str | None) -> Any:
        if text is None:
            return None
        try:
            return function(LENIENT(text))
        except Malformed:
            return None

    alone = on_arrays(lambda texts: pa.array([one(text) for text in checked(texts.to_pylist())], signature.result))
    return lambda texts, *_: alone(texts)


def get_json_object(signature: CallSignature) -> Kernel | None:
    """``get_json_object(text, path)``: what is at the path, a string without quotes."""
    path = signature.constants[1]
    steps = None if path is None or not path.is_valid else steps_of(path.as_py())
    if steps is None or signature.types[0] != pa.string():
        return None
    return _of_texts(signature, lambda value: _found(value, steps, quoted=False))


def steps_of(path: str) -> list[Any] | None:
    """The steps of a path; None if it has others than names, places and one ``[*]``.

    >>> steps_of("$.a[0]['b c']")
    ['a', 0, 'b c']
    """
    if not path.startswith("$"):
        return None
    steps: list[Any] = []
    at = 1
    while at < len(path):
        found = _STEP.match(path, at)
        if found is None:
            return None
        name, quoted, place, everything = found.groups()
        steps.append((ALL,) if everything else int(place) if place else name or quoted)
        at = found.end()
    return steps if steps.count((ALL,)) <= 1 else None


def _found(  # noqa: PLR0911 - one for each kind of step
    value: Any, steps: list[Any], *, quoted: bool, text: Callable[[Any], str] = value_text
) -> str | None:
    """What ``text`` writes of what the steps lead to; None if they lead nowhere."""
    if not steps:
        return text(value) if type(value) is not str or quoted else _complete(value)
    step, *rest = steps
    if isinstance(step, str):
        if not isinstance(value, Fields):
            return None
        for name, inner in value:
            found = _found(inner, rest, quoted=quoted, text=text) if name == step and inner is not None else None
            if found is not None:
                return found
        return None
    if not isinstance(value, list) or isinstance(value, Fields):
        return None
    if isinstance(step, int):
        several = bool(rest) and rest[0] == (ALL,)
        return _found(value[step], rest, quoted=quoted or several, text=text) if step < len(value) else None
    of_one = text if quoted else _as_characters  # Spark collects them before it knows how many there are
    pieces = [piece for piece in (_found(one, rest, quoted=True, text=of_one) for one in value) if piece is not None]
    joined = ",".join(pieces)
    if quoted:
        return f"[{joined}]" if pieces else None
    return _complete(joined if len(pieces) == 1 else f"[{joined}]") if pieces else None


def _as_characters(value: Any) -> str:
    return value_text(value, string_text)


def _complete(text: str) -> str | None:
    """A text; None if there is half of a character in it, which Spark cannot write."""
    return text if whole(text) == text else None


def json_array_length(signature: CallSignature) -> Kernel | None:
    """How many elements an array has; NULL for anything else."""
    if signature.types[0] != pa.string():
        return None
    return _of_texts(
        signature, lambda value: len(value) if isinstance(value, list) and not isinstance(value, Fields) else None
    )


def json_object_keys(signature: CallSignature) -> Kernel | None:
    """The names in an object, in order; NULL for anything else."""
    if signature.types[0] != pa.string():
        return None
    return _of_texts(signature, lambda value: [whole(name) for name, _ in value] if isinstance(value, Fields) else None)


def json_fields(signature: CallSignature) -> Kernel | None:
    """What ``json_tuple(text, name, ...)`` makes of a text: a struct, of NULLs for what is not there."""
    if any(kind != pa.string() for kind in signature.types):
        return None
    fields = [field.name for field in signature.result]

    def found(text: str | None, *names: str | None) -> dict[str, str | None]:
        made: dict[str, str | None] = dict.fromkeys(fields)
        nothing = dict(made)
        try:
            value = None if text is None else LENIENT(text)
        except Malformed:
            return nothing
        for name, inner in value if isinstance(value, Fields) else ():
            if name in names and inner is not None:
                shown = _complete(inner) if type(inner) is str else value_text(inner)
                if shown is None:
                    return nothing
                made.update((field, shown) for field, wanted in zip(fields, names, strict=True) if wanted == name)
        return made

    def run(*arrays: pa.Array) -> pa.Array:
        rows = checked(zip(*(array.to_pylist() for array in arrays), strict=True))
        return pa.array([found(*row) for row in rows], signature.result)

    return on_arrays(run)


FUNCTIONS: dict[str, Builder] = {
    "get_json_object": get_json_object,
    "json_array_length": json_array_length,
    "json_object_keys": json_object_keys,
    "json_fields": json_fields,
}
