"""The grammar of PySpark's columns: one line for each method or function, with the kinds it takes and gives.

An expression is Python's source text, so that a case that fails can be printed and run again.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from support.generator.dice import risk_of
from support.generator.expressions import Column, Expressions
from support.generator.kinds import COMPARED, KEYS, SCALAR, UNREAD, Kind
from support.generator.scalars import CONSTANTS
from support.generator.text import sql

if TYPE_CHECKING:
    import random
    from collections.abc import Sequence

K = Kind
Named = tuple[str, Kind]
"""A column: its name and its kind."""


@dataclass(frozen=True)
class Method:
    """An expression of a kind: its template, and the kinds of its holes."""

    kind: Kind
    template: str
    holes: tuple[Kind, ...]
    raises: bool = False
    """Whether it fails for some rows of ordinary data in ANSI mode."""


def _m(kind: Kind, template: str, *holes: Kind, raises: bool = False) -> Method:
    return Method(kind, template, holes, raises)


def _logic() -> list[Method]:
    found = [
        *(_m(K.BOOL, f"({{}} {sign} {{}})", K.BOOL, K.BOOL) for sign in "&|&|"),
        _m(K.BOOL, "(~{})", K.BOOL),
        _m(K.BOOL, "{}.isin(0, 1, 7)", K.INT),
        _m(K.BOOL, "{}.isin('a', 'ab')", K.STRING),
        _m(K.BOOL, "F.isnan({})", K.REAL),
        _m(K.BOOL, "{}.startswith('a')", K.STRING),
        _m(K.BOOL, "{}.contains('b')", K.STRING),
        _m(K.BOOL, "{}.like('a%')", K.STRING),
        _m(K.BOOL, "{}.rlike('[a-b]+')", K.STRING),
        _m(K.BOOL, "F.array_contains({}, 1)", K.INTS),
        _m(K.BOOL, "{}.try_cast('boolean')", K.STRING),
    ]
    for kind in KEYS:
        found += [
            _m(K.BOOL, "{}.isNull()", kind),
            _m(K.BOOL, "{}.isNotNull()", kind),
            _m(K.BOOL, "({} == {})", kind, kind),
            _m(K.BOOL, "({} != {})", kind, kind),
            _m(K.BOOL, "{}.eqNullSafe({})", kind, kind),
        ]
    for kind in COMPARED:
        found += [_m(K.BOOL, f"({{}} {sign} {{}})", kind, kind) for sign in ("<", "<=", ">", ">=")]
        found += [
            _m(K.BOOL, "{}.between({}, {})", kind, kind, kind),
            _m(kind, "F.greatest({}, {})", kind, kind),
            _m(kind, "F.least({}, {})", kind, kind),
        ]
    for kind in Kind:
        if kind not in UNREAD:
            found += [
                _m(kind, "F.coalesce({}, {})", kind, kind),
                _m(kind, "F.when({}, {}).otherwise({})", K.BOOL, kind, kind),
                _m(kind, "F.when({}, {})", K.BOOL, kind),
            ]
    return found + [_m(kind, "F.nullif({}, {})", kind, kind) for kind in SCALAR]


def _numbers() -> list[Method]:
    found = [
        _m(K.INT, "({} % 3)", K.INT),
        _m(K.INT, "F.pmod({}, F.lit(7))", K.INT),
        _m(K.INT, "(-{})", K.INT, raises=True),
        _m(K.INT, "{}.cast('int')", K.BOOL),
        _m(K.INT, "{}.cast('int')", K.NUMERAL, raises=True),
        _m(K.INT, "{}.cast('tinyint')", K.INT, raises=True),
        _m(K.INT, "{}.cast('int')", K.REAL, raises=True),
        _m(K.INT, "{}.try_cast('int')", K.NUMERAL),
        _m(K.INT, "{}.bitwiseAND({})", K.INT, K.INT),
        _m(K.INT, "F.bitwise_not({})", K.INT),
        _m(K.BIGINT, "{}.cast('bigint')", K.INT),
        _m(K.BIGINT, "{}.bitwiseXOR({})", K.BIGINT, K.BIGINT),
        _m(K.BIGINT, "F.try_add({}, {})", K.BIGINT, K.BIGINT),
        _m(K.BIGINT, "F.floor({})", K.REAL, raises=True),
        _m(K.REAL, "({} / 7)", K.INT),
        _m(K.REAL, "({} / {})", K.REAL, K.INT, raises=True),
        _m(K.REAL, "F.round({}, 2)", K.REAL),
        _m(K.REAL, "F.sqrt(F.abs({}))", K.REAL),
        _m(K.REAL, "F.try_divide({}, {})", K.DOUBLE, K.INT),
        _m(K.DOUBLE, "{}.cast('double')", K.INT),
        _m(K.DOUBLE, "{}.cast('double')", K.FLOAT),
        _m(K.DOUBLE, "F.rint({})", K.DOUBLE),
        _m(K.FLOAT, "{}.cast('float')", K.DOUBLE),
        _m(K.DECIMAL, "({} * {})", K.DECIMAL, K.DECIMAL),
        _m(K.DECIMAL, "({} + {})", K.DECIMAL, K.INT),
        _m(K.DECIMAL, "({} / {})", K.DECIMAL, K.DECIMAL, raises=True),
        _m(K.DECIMAL, "F.round({}, 1)", K.DECIMAL),
        _m(K.DECIMAL, "F.ceil({})", K.DECIMAL),
        _m(K.DECIMAL, "{}.cast('decimal(12,2)')", K.INT),
        _m(K.DECIMAL, "{}.cast('decimal(5,1)')", K.DECIMAL, raises=True),
    ]
    for kind in (K.INT, K.BIGINT, K.DECIMAL, K.FLOAT, K.DOUBLE):
        found += [_m(kind, f"({{}} {sign} {{}})", kind, kind, raises=True) for sign in "+-"]
        found += [_m(kind, "F.abs({})", kind, raises=True)]
    return found


def _strings() -> list[Method]:
    return [
        _m(K.STRING, "F.concat({}, {})", K.STRING, K.NUMERAL),
        _m(K.STRING, "F.concat_ws('-', {}, {})", K.STRING, K.STRING),
        *(_m(K.STRING, f"F.{name}({{}})", K.STRING) for name in ("upper", "lower", "trim", "initcap", "reverse")),
        _m(K.STRING, "{}.substr(1, 2)", K.STRING),
        _m(K.STRING, "F.substring({}, -2, 2)", K.STRING),
        _m(K.STRING, "F.lpad({}, 3, '*')", K.STRING),
        _m(K.STRING, "F.regexp_replace({}, 'a', 'b')", K.STRING),
        _m(K.STRING, "F.regexp_extract({}, '(a)(b)?', 1)", K.STRING),
        _m(K.STRING, "F.substring_index({}, ',', 1)", K.STRING),
        _m(K.STRING, "F.translate({}, 'ab', 'x')", K.STRING),
        *(_m(K.STRING, "{}.cast('string')", kind) for kind in (K.INT, K.BIGINT, K.BOOL, K.DATE, K.TIMESTAMP, K.REAL)),
        _m(K.STRING, "F.array_join({}, '-')", K.STRINGS),
        _m(K.STRING, "{}.getField('y')", K.STRUCT),
        _m(K.STRINGS, "F.split({}, ',')", K.STRING),
        _m(K.INT, "F.length({})", K.STRING),
        _m(K.INT, "F.instr({}, 'a')", K.STRING),
        _m(K.BINARY, "{}.cast('binary')", K.STRING),
    ]


def _times() -> list[Method]:
    return [
        *(_m(K.INT, f"F.{part}({{}})", K.DATE) for part in ("year", "month", "dayofweek", "weekofyear")),
        *(_m(K.INT, f"F.{part}({{}})", K.TIMESTAMP) for part in ("hour", "minute", "second", "year", "dayofmonth")),
        _m(K.INT, "F.hour({})", K.NTZ),
        _m(K.INT, "F.datediff({}, {})", K.DATE, K.DATE),
        _m(K.INT, "F.datediff({}, {})", K.TIMESTAMP, K.DATE),
        *(_m(K.DATE, "F.to_date({})", kind) for kind in (K.TIMESTAMP, K.TIMESTAMP, K.NTZ)),
        _m(K.DATE, "F.date_add({}, 1)", K.DATE),
        _m(K.DATE, "F.last_day({})", K.DATE),
        _m(K.DATE, "F.trunc({}, 'month')", K.DATE),
        _m(K.DATE, "F.add_months({}, 1)", K.DATE),
        _m(K.DATE, "{}.try_cast('date')", K.STRING),
        *(_m(K.TIMESTAMP, f"F.date_trunc('{unit}', {{}})", K.TIMESTAMP) for unit in ("hour", "day", "month", "week")),
        *(_m(K.TIMESTAMP, "{}.cast('timestamp')", kind) for kind in (K.DATE, K.NTZ)),
        _m(K.TIMESTAMP, "({} + F.expr(\"INTERVAL '90' MINUTE\"))", K.TIMESTAMP),
        *(_m(K.NTZ, "{}.cast('timestamp_ntz')", kind) for kind in (K.DATE, K.TIMESTAMP)),
        _m(K.BIGINT, "F.unix_seconds({})", K.TIMESTAMP),
        _m(K.BIGINT, "{}.cast('bigint')", K.TIMESTAMP),
    ]


def _collections() -> list[Method]:
    return [
        _m(K.INTS, "F.array({}, {})", K.INT, K.INT),
        _m(K.INTS, "F.sort_array({})", K.INTS),
        _m(K.INTS, "F.array_distinct({})", K.INTS),
        _m(K.STRINGS, "F.map_keys({})", K.MAP),
        _m(K.STRUCT, "F.struct({}.alias('x'), {}.alias('y'))", K.INT, K.STRING),
        _m(K.MAP, "F.create_map(F.lit('a'), {})", K.INT),
        _m(K.INT, "F.size({})", K.INTS),
        _m(K.INT, "{}.getField('x')", K.STRUCT),
        _m(K.INT, "{}['a']", K.MAP),
        _m(K.INT, "{}.getItem(0)", K.INTS, raises=True),
        _m(K.INT, "F.element_at({}, 1)", K.INTS, raises=True),
        _m(K.INT, "F.array_max({})", K.INTS),
    ]


METHODS: dict[Kind, list[Method]] = {kind: [] for kind in Kind}
for _method in (*_logic(), *_numbers(), *_strings(), *_times(), *_collections()):
    METHODS[_method.kind].append(_method)


@dataclass(frozen=True)
class Columns:
    """Writes expressions over columns in scope, which ``text`` writes as ``F.col``, now and then in SQL."""

    dice: random.Random
    scope: Sequence[Named]

    def of(self, kind: Kind, depth: int = 2) -> str:
        """An expression of a kind; mostly a column if there is one."""
        dice = self.dice
        found = [name for name, other in self.scope if other is kind]
        if depth <= 0 or dice.random() < (0.45 if found else 0.2):
            if found and dice.random() < 0.9:
                return f"F.col({dice.choice(found)!r})"
            return f"F.expr({dice.choice(CONSTANTS[kind])!r})"
        if dice.random() < 0.15:
            inside = Expressions(dice, [Column(sql(name), other) for name, other in self.scope])
            return f"F.expr({inside.of(kind, depth).spark!r})"
        return self._call(kind, depth)

    def any(self, depth: int = 2) -> tuple[str, Kind]:
        """An expression of any kind, those of the scope first."""
        kinds = [kind for _, kind in self.scope if kind not in UNREAD]
        kind = self.dice.choice(kinds) if kinds and self.dice.random() < 0.75 else self.dice.choice(SCALAR)
        return self.of(kind, depth), kind

    def _call(self, kind: Kind, depth: int) -> str:
        here = {other for _, other in self.scope}
        for _ in range(6):
            method = self.dice.choice(METHODS[kind]) if METHODS[kind] else None
            if method is None or (method.raises and self.dice.random() > risk_of(self.dice)):
                continue
            if here.intersection(method.holes) or self.dice.random() < 0.1:
                return method.template.format(*(self.of(hole, depth - 1) for hole in method.holes))
        return self.of(kind, 0)
