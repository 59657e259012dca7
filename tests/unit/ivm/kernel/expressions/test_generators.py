import pyarrow as pa
import pytest
from support.exprs import INT, STRING, array_of, call

from weirflow.ivm.kernel.expressions import UnknownFunction, compile_generator
from weirflow.sql.expr import Column

INTS, MAP = array_of(INT), pa.map_(STRING, INT)
STRUCTS = array_of(pa.struct([pa.field("a", INT), pa.field("b", STRING)]))


def generate(function, values, kind, *, outer=False, **made):
    expr = call(function, pa.struct(list(made.items())), Column(0, "x", kind))
    rows, columns = compile_generator(expr, outer=outer)([pa.array(values, kind)], len(values))
    assert rows.type == pa.int64()
    assert [column.type for column in columns] == list(made.values())
    return list(zip(rows.to_pylist(), *[column.to_pylist() for column in columns], strict=True))


def test_explode():
    assert generate("explode", [[1, None], [], None, [2]], INTS, col=INT) == [(0, 1), (0, None), (3, 2)]


def test_outer_keeps_rows_that_make_none():
    assert generate("explode", [[1], [], None, [2]], INTS, outer=True, col=INT) == [
        (0, 1),
        (1, None),
        (2, None),
        (3, 2),
    ]
    assert generate("posexplode", [None], INTS, outer=True, pos=INT, col=INT) == [(0, None, None)]


def test_positions_and_maps():
    assert generate("posexplode", [[7, 8], [9]], INTS, pos=INT, col=INT) == [(0, 0, 7), (0, 1, 8), (1, 0, 9)]
    assert generate("explode", [[("a", 1)], None, [("b", None)]], MAP, key=STRING, value=INT) == [
        (0, "a", 1),
        (2, "b", None),
    ]


def test_inline_of_a_null_struct_is_a_row_of_nulls():
    rows = [[{"a": 1, "b": "x"}, None], []]
    assert generate("inline", rows, STRUCTS, a=INT, b=STRING) == [(0, 1, "x"), (0, None, None)]


def test_no_rows():
    assert generate("posexplode", [], INTS, pos=INT, col=INT) == []


def test_others_are_refused():
    with pytest.raises(UnknownFunction):
        compile_generator(call("stack", pa.struct([("a", INT)]), Column(0, "x", INTS)))
