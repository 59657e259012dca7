"""Random chains of PySpark's frame methods, as Python's source text: ``table('t0').where(...).groupBy(...)``."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from support.generator.frame_columns import Columns, Named
from support.generator.kinds import COMPARED, KEYS, NESTED, SCALAR, Kind
from support.generator.relations import MOST_ROWS

if TYPE_CHECKING:
    import random
    from collections.abc import Callable, Iterable, Sequence

    from support.generator.relations import Relation

K = Kind
_MOST_COLUMNS = 4
_JOINS = ("inner", "inner", "left", "right", "full", "left_semi", "left_anti", "cross")
_SETS = ("union", "unionByName", "intersect", "intersectAll", "subtract", "exceptAll")
_GROUPS = ("groupBy", "groupBy", "groupBy", "groupBy", "rollup", "cube")


@dataclass(frozen=True)
class Frame:
    """A frame: the calls that make it, one after the other, and its columns, no two of the same name."""

    calls: tuple[str, ...]
    columns: tuple[Named, ...]
    size: int

    @property
    def text(self) -> str:
        """Python's source text; ``table`` gives a relation's frame."""
        return "".join(self.calls)

    def then(self, call: str, columns: Sequence[Named] | None = None, size: int | None = None) -> Frame:
        """With one more call, which may change columns and size."""
        return Frame(
            (*self.calls, call),
            self.columns if columns is None else tuple(columns),
            self.size if size is None else size,
        )

    @property
    def names(self) -> list[str]:
        """Of its columns."""
        return [name for name, _ in self.columns]


@dataclass(frozen=True)
class Frames:
    """Writes frames over some relations."""

    dice: random.Random
    relations: tuple[Relation, ...]

    def frame(self) -> Frame:
        """A relation, and a few steps behind it; its columns are named c0, c1, ... in the end."""
        made = self._relation()
        for _ in range(self.dice.choice((1, 2, 2, 3, 3, 4))):
            makers, weights = zip(*STEPS, strict=True)
            made = self.dice.choices(makers, weights)[0](self, made)
        return _numbered(made)

    def _relation(self) -> Frame:
        one = self.dice.choice(self.relations)
        return Frame((f"table({one.text.spark!r})",), one.columns, one.size)

    def _aliased(self, items: Sequence[tuple[str, Kind]]) -> str:
        return ", ".join(f"{text}.alias('c{place}')" for place, (text, _) in enumerate(items))

    # Steps

    def where(self, of: Frame) -> Frame:
        """Some of the rows."""
        return of.then(f".where({Columns(self.dice, of.columns).of(K.BOOL)})")

    def select(self, of: Frame) -> Frame:
        """Expressions."""
        inside = Columns(self.dice, of.columns)
        items = [inside.any() for _ in range(self.dice.randint(1, _MOST_COLUMNS))]
        return of.then(f".select({self._aliased(items)})", _placed(kind for _, kind in items))

    def with_column(self, of: Frame) -> Frame:
        """One more column, or another in the place of one."""
        text, kind = Columns(self.dice, of.columns).any()
        name = self.dice.choice([*of.names, f"n{len(of.columns)}"])
        fields = dict(of.columns) | {name: kind}
        return of.then(f".withColumn({name!r}, {text})", list(fields.items()))

    def drop(self, of: Frame) -> Frame:
        """One column less."""
        if len(of.columns) == 1:
            return self.distinct(of)
        gone = self.dice.choice(of.names)
        return of.then(f".drop({gone!r})", [one for one in of.columns if one[0] != gone])

    def rename(self, of: Frame) -> Frame:
        """Another name."""
        old, new = self.dice.choice(of.names), f"m{len(of.calls)}"
        columns = [(new if name == old else name, kind) for name, kind in of.columns]
        return of.then(f".withColumnRenamed({old!r}, {new!r})", columns)

    def distinct(self, of: Frame) -> Frame:
        """Each row once."""
        if not _comparable(of):
            return self.where(of)
        return of.then(self.dice.choice((".distinct()", ".dropDuplicates()")))

    def grouped(self, of: Frame) -> Frame:
        """Aggregates by columns, or of all rows."""
        dice = self.dice
        usable = [name for name, kind in of.columns if kind in KEYS]
        keys = dice.sample(usable, min(len(usable), dice.choice((0, 1, 1, 1, 2))))
        inside = Columns(dice, of.columns)
        calls = [self._aggregate(inside) for _ in range(dice.randint(1, 3))]
        columns = [(name, dict(of.columns)[name]) for name in keys]
        names = [f"g{len(of.calls)}_{place}" for place in range(len(calls))]
        columns += [(name, kind) for name, (_, kind) in zip(names, calls, strict=True)]
        method = dice.choice(_GROUPS) if keys else "groupBy"
        named = ", ".join(f"{text}.alias({name!r})" for name, (text, _) in zip(names, calls, strict=True))
        return of.then(f".{method}({', '.join(map(repr, keys))}).agg({named})", columns)

    def join(self, of: Frame) -> Frame:
        """Joined with a relation by a condition, both under aliases."""
        other = self._relation()
        if of.size * other.size > MOST_ROWS:
            return self.where(of)
        dice = self.dice
        left = [(f"l.{name}", kind) for name, kind in of.columns]
        right = [(f"r.{name}", kind) for name, kind in other.columns]
        how = dice.choice(_JOINS)
        both = left if how in ("left_semi", "left_anti") else left + right
        chosen = dice.sample(both, min(len(both), _MOST_COLUMNS))
        taken = self._aliased([(f"F.col({name!r})", kind) for name, kind in chosen])
        size = of.size if both is left else of.size * other.size
        columns = _placed(kind for _, kind in chosen)
        if how == "cross":
            return of.then(".alias('l')").then(
                f".crossJoin({other.text}.alias('r')).select({taken})", columns, of.size * other.size
            )
        return of.then(".alias('l')").then(
            f".join({other.text}.alias('r'), {self._condition(left, right)}, {how!r}).select({taken})", columns, size
        )

    def join_using(self, of: Frame) -> Frame:
        """Joined with a relation by a column of the same name."""
        other = self._relation()
        pairs = [(one, two) for one, kind in of.columns for two, also in other.columns if kind is also and kind in KEYS]
        if not pairs or of.size * other.size > MOST_ROWS:
            return self.join(of)
        mine, theirs = self.dice.choice(pairs)
        names = [mine if name == theirs else f"r{place}_{len(of.calls)}" for place, name in enumerate(other.names)]
        how = self.dice.choice(("inner", "left", "right", "full", "left_semi", "left_anti"))
        columns = [(mine, dict(of.columns)[mine]), *((name, kind) for name, kind in of.columns if name != mine)]
        size = of.size
        if how not in ("left_semi", "left_anti"):
            columns += [(name, kind) for name, (_, kind) in zip(names, other.columns, strict=True) if name != mine]
            size *= other.size
        renamed = f"{other.text}.toDF({', '.join(map(repr, names))})"
        return of.then(f".join({renamed}, [{mine!r}], {how!r})", columns, size)

    def combined(self, of: Frame) -> Frame:
        """A set operation with a frame of the same kinds of columns."""
        if not _comparable(of) or any(kind in NESTED for _, kind in of.columns):
            return self.where(of)
        other = self._relation()
        inside = Columns(self.dice, other.columns)
        items = ", ".join(f"{inside.of(kind, 1)}.alias({name!r})" for name, kind in of.columns)
        method = self.dice.choice(_SETS)
        return of.then(f".{method}({other.text}.select({items}))", size=of.size + other.size)

    def first_rows(self, of: Frame) -> Frame:
        """The first in an order of all columns."""
        if not _comparable(of):
            return self.where(of)
        dice = self.dice
        names = dice.sample(of.names, len(of.names))
        order = ", ".join(f"F.col({name!r}).{self._direction()}" for name in names)
        return of.then(f".orderBy({order})").then(
            dice.choice((".limit(1)", ".limit(2)", ".limit(3)", ".offset(1).limit(2)")), size=5
        )

    def windowed(self, of: Frame) -> Frame:
        """A window function beside the columns."""
        dice = self.dice
        usable = [(name, kind) for name, kind in of.columns if kind in KEYS]
        if not usable or not _comparable(of):
            return self.with_column(of)
        inside = Columns(dice, of.columns)
        names = [name for name, _ in dice.sample(usable, len(usable))]
        order = ", ".join(f"F.col({name!r}).{self._direction()}" for name in names)
        partition = f".partitionBy({dice.choice(names)!r})" if dice.random() < 0.7 else ""
        window = f"Window{partition}.orderBy({order})"
        if dice.random() < 0.5:
            kind = dice.choice(SCALAR)
            text, kind = dice.choice(
                (
                    ("F.row_number()", K.INT),
                    ("F.rank()", K.INT),
                    ("F.dense_rank()", K.INT),
                    ("F.ntile(2)", K.INT),
                    ("F.percent_rank()", K.REAL),
                    (f"F.lag({inside.of(kind, 1)})", kind),
                    (f"F.lead({inside.of(kind, 1)}, 2)", kind),
                )
            )
        else:
            text, kind = self._aggregate(inside, windowed=True)
            window += dice.choice(
                ("", ".rowsBetween(-1, 1)", ".rowsBetween(Window.unboundedPreceding, 0)", ".rowsBetween(0, 2)")
            )
        fields = dict(of.columns) | {f"w{len(of.calls)}": kind}
        return of.then(f".withColumn('w{len(of.calls)}', {text}.over({window}))", list(fields.items()))

    def exploded(self, of: Frame) -> Frame:
        """A row for each element."""
        inside = Columns(self.dice, of.columns)
        kind, item = self.dice.choice(((K.INTS, K.INT), (K.STRINGS, K.STRING)))
        made = self.dice.choice(("explode", "explode", "explode_outer"))
        name = self.dice.choice(of.names)
        text = f".select({name!r}, F.{made}({inside.of(kind, 1)}).alias('x{len(of.calls)}'))"
        return of.then(text, [(name, dict(of.columns)[name]), (f"x{len(of.calls)}", item)], of.size * 2)

    def filled(self, of: Frame) -> Frame:
        """Without NULLs in numbers or strings, or without rows that have one."""
        dice = self.dice
        name = dice.choice(of.names)
        return of.then(
            dice.choice((f".fillna(0, [{name!r}])", f".fillna('?', [{name!r}])", f".dropna(subset=[{name!r}])"))
        )

    # Pieces

    def _direction(self) -> str:
        way = self.dice.choice(("asc", "desc"))
        return f"{way}_nulls_{self.dice.choice(('first', 'last'))}()"

    def _condition(self, left: Sequence[Named], right: Sequence[Named]) -> str:
        pairs = [(one, two) for one, kind in left for two, also in right if kind is also and kind in KEYS]
        parts = []
        if pairs and self.dice.random() < 0.85:
            one, two = self.dice.choice(pairs)
            parts.append(f"(F.col({one!r}) == F.col({two!r}))")
        if not parts or self.dice.random() < 0.3:
            parts.append(Columns(self.dice, (*left, *right)).of(K.BOOL, 1))
        return " & ".join(parts)

    def _aggregate(self, inside: Columns, *, windowed: bool = False) -> tuple[str, Kind]:
        dice = self.dice
        here = [kind for _, kind in inside.scope]
        kind = dice.choice([one for one in here if one in COMPARED] or [K.INT])
        calls = [
            ("F.count('*')", K.BIGINT),
            (f"F.count({inside.of(kind, 1)})", K.BIGINT),
            (f"F.sum({inside.of(K.INT, 1)})", K.BIGINT),
            (f"F.sum({inside.of(K.DOUBLE, 1)})", K.DOUBLE),
            (f"F.sum({inside.of(K.DECIMAL, 1)})", K.DECIMAL),
            (f"F.avg({inside.of(K.INT, 1)})", K.REAL),
            (f"F.avg({inside.of(K.DECIMAL, 1)})", K.DECIMAL),
            (f"F.min({inside.of(kind, 1)})", kind),
            (f"F.max({inside.of(kind, 1)})", kind),
            (f"F.bool_and({inside.of(K.BOOL, 1)})", K.BOOL),
            (f"F.stddev({inside.of(K.DOUBLE, 1)})", K.INEXACT),
        ]
        if not windowed:
            calls += [
                (f"F.count_distinct({inside.of(kind, 1)})", K.BIGINT),
                (f"F.sum_distinct({inside.of(K.INT, 1)})", K.BIGINT),
                (f"F.sort_array(F.collect_set({inside.of(K.INT, 1)}))", K.INTS),
                (f"F.try_sum({inside.of(K.BIGINT, 1)})", K.BIGINT),
                (f"F.try_avg({inside.of(K.INT, 1)})", K.REAL),
                (f"F.median({inside.of(K.DOUBLE, 1)})", K.INEXACT),
            ]
        return dice.choice(calls)


STEPS: tuple[tuple[Callable[[Frames, Frame], Frame], int], ...] = (
    (Frames.where, 14),
    (Frames.select, 14),
    (Frames.with_column, 10),
    (Frames.grouped, 20),
    (Frames.join, 14),
    (Frames.join_using, 6),
    (Frames.combined, 7),
    (Frames.windowed, 9),
    (Frames.first_rows, 6),
    (Frames.distinct, 5),
    (Frames.exploded, 3),
    (Frames.filled, 4),
    (Frames.drop, 2),
    (Frames.rename, 2),
)
"""What may come next, and how often."""


def _placed(kinds: Iterable[Kind]) -> list[Named]:
    return [(f"c{place}", kind) for place, kind in enumerate(kinds)]


def _numbered(of: Frame) -> Frame:
    names = [f"c{place}" for place in range(len(of.columns))]
    if of.names == names:
        return of
    made = of.then(f".toDF({', '.join(map(repr, names))})")
    return replace(made, columns=tuple(zip(names, (kind for _, kind in of.columns), strict=True)))


def _comparable(of: Frame) -> bool:
    """Whether rows can be told apart and ordered."""
    return all(kind in KEYS for _, kind in of.columns)
