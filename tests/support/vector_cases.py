"""Random documents and standing queries that come and go, and the nearest of them by brute force in plain Python."""

import math
import random
import struct
from collections import Counter

import pyarrow as pa

from weirflow import DeltaBatch

METRICS = ("l2", "cosine", "inner")


def single(value):
    """The nearest FLOAT."""
    return struct.unpack("<f", struct.pack("<f", value))[0]


def distance(one, other, metric):
    """As it is defined: products and sums in DOUBLE, element by element; None for NULL."""
    if one is None or other is None or len(one) != len(other) or None in one or None in other:
        return None
    total = squares = others = 0.0
    for x, y in zip(one, other, strict=True):
        if metric == "l2":
            total += (x - y) * (x - y)
        else:
            total += x * y
            squares += x * x
            others += y * y
    if metric == "l2":
        return root(total)
    if metric == "inner":
        return 0.0 - total
    scale = root(squares) * root(others)
    return None if scale == 0.0 else 1.0 - total / scale


def root(value):
    return value if math.isnan(value) or math.isinf(value) else math.sqrt(value)


def bits(value):
    """Equal for the same bits; there is one NaN."""
    if not isinstance(value, float):
        return value
    return "NaN" if math.isnan(value) else struct.pack("<d", value).hex()


class Vector(tuple):
    """Equal to those of the same bits: 0.0 and -0.0 are two documents."""

    __slots__ = ()

    def __eq__(self, other):
        return isinstance(other, Vector) and tuple(map(bits, self)) == tuple(map(bits, other))

    def __hash__(self):
        return hash(tuple(map(bits, self)))


class VectorCase:
    """One view over random rows: metric, k, filter, NULLs first or last, kinds of vectors, all by the seed."""

    def __init__(self, seed):
        self.dice = random.Random(seed)
        choose = self.dice.choice
        self.metric, self.limit = choose(METRICS), choose([1, 1, 2, 3, 5, 30])
        self.dimension, self.shape = choose([1, 2, 3, 8]), choose(["grid", "close", "spread", "spread"])
        self.kind = choose(["FLOAT", "DOUBLE"])
        self.nulls_first, self.filtered, self.oddities = choose([True, False]), choose([True, False]), choose([0, 1, 4])
        self.keyed, self.ties = choose([True, False]), choose(["id", "id DESC", "tag, id"])
        self.documents = choose([6, 20, 60])
        self.outer = choose([False, False, True])
        self.rows = {"docs": Counter(), "queries": Counter()}

    @property
    def sources(self):
        key = ["id"] if self.keyed else None
        array = f"ARRAY<{self.kind}>"
        return {"docs": (f"id BIGINT, tag STRING, v {array}", key), "queries": (f"id BIGINT, v {array}", key)}

    def sql(self, distance="vector_distance(q.v, d.v, '{metric}')", *, limit=None, metric=None, filtered=None):
        condition = "WHERE d.tag = 'a'" if (self.filtered if filtered is None else filtered) else ""
        ties = ", ".join(f"d.{one}" for one in self.ties.split(", "))
        return (
            "SELECT q.id AS q, n.id AS d, n.tag, n.dist FROM queries q "
            f"{'LEFT JOIN' if self.outer else 'JOIN'} LATERAL ("
            f"SELECT d.id, d.tag, {distance.format(metric=metric or self.metric)} AS dist FROM docs d {condition} "
            f"ORDER BY dist NULLS {'FIRST' if self.nulls_first else 'LAST'}, {ties} "
            f"LIMIT {limit or self.limit}) n ON true"
        )

    def vector(self):
        dice, size = self.dice, self.dimension
        if dice.random() < self.oddities * 0.08:
            strange = [None, [0.0] * size, [1.0] * (size + 1), [], [math.nan] + [1.0] * (size - 1)]
            strange += [
                [math.inf] * size,
                [-math.inf] + [1.0] * (size - 1),
                [1e30] * size,
                [1e-30] * size,
                [-0.0] * size,
            ]
            strange += [[None] + [1.0] * (size - 1), [1e-42] * size, [3e38] * size]
            return self.fitting(dice.choice(strange))
        if self.shape == "grid":
            return [float(dice.randint(-2, 2)) for _ in range(size)]
        if self.shape == "close":  # too close for products of single precision to tell them apart
            return self.fitting([1000.0 + dice.random() * 1e-3 for _ in range(size)])
        return self.fitting([dice.gauss(0, 1) for _ in range(size)])

    def fitting(self, vector):
        if vector is None or self.kind == "DOUBLE":
            return vector
        return [None if one is None else single(one) for one in vector]

    def row(self, name):
        own = (self.dice.choice(["a", "a", "b", None]),) if name == "docs" else ()
        vector = self.vector()
        key = self.dice.randrange(self.documents if name == "docs" else 7)
        return (key, *own, None if vector is None else Vector(vector))

    def changes(self):
        """A tick: for each source the rows that change, with weights; none for most sources of most ticks."""
        found = {}
        for name, many in (("docs", self.dice.choice([0, 1, 3, 10, 40])), ("queries", self.dice.choice([0, 0, 1, 3]))):
            before = Counter(self.rows[name])
            for _ in range(many):
                self.change(name)
            delta = Counter(self.rows[name])
            delta.subtract(before)
            if any(delta.values()):
                found[name] = {row: weight for row, weight in delta.items() if weight}
        return found

    def change(self, name):
        rows = self.rows[name]
        present = [row for row, weight in rows.items() if weight]
        if present and self.dice.random() < 0.45:
            gone = self.dice.choice(present)
            rows[gone] -= 1
            if self.dice.random() < 0.5:
                return
        row = self.row(name)
        if self.keyed:
            for other in [one for one in rows if one[0] == row[0]]:
                del rows[other]
        rows[row] += 1
        rows += Counter()

    def delta(self, changed, schema):
        """What to tick for rows that change."""
        listed = [dict(zip(schema.names, row, strict=True), _weight=weight) for row, weight in changed.items()]
        listed.sort(key=lambda row: row["_weight"])
        fields = [*schema, pa.field("_weight", pa.int64())]
        return DeltaBatch.from_weighted(pa.Table.from_pylist(listed, schema=pa.schema(fields)))

    def expected(self, *, limit=None, metric=None, filtered=None):
        """The rows of the view, as often as they are there."""
        metric, filtered = metric or self.metric, self.filtered if filtered is None else filtered
        documents = [row for row in self.rows["docs"].elements() if not filtered or row[1] == "a"]
        found = Counter()
        if self.outer and not documents:
            return Counter((query[0], None, None, None) for query in self.rows["queries"].elements())
        for query in self.rows["queries"].elements():
            listed = [(distance(query[1], row[2], metric), row) for row in documents]
            listed.sort(key=lambda pair: (self.place(pair[0]), self.tie(pair[1]), bits(pair[0]) or "", pair[1][0]))
            for far, row in listed[: limit or self.limit]:
                found[(query[0], row[0], row[1], bits(far))] += 1
        return found

    def place(self, far):
        if far is None:
            return (0 if self.nulls_first else 3, 0.0)
        return (2, 0.0) if math.isnan(far) else (1, far)

    def tie(self, row):
        tag = (row[1] is not None, row[1] or "")
        if self.ties == "id DESC":
            return (-row[0], tag)
        return (tag, row[0]) if self.ties == "tag, id" else (row[0], tag)


def rows_of(table):
    """The rows of a table, as often as they are there."""
    return Counter(zip(*([bits(value) for value in column.to_pylist()] for column in table.columns), strict=True))
