# ruff: noqa: E501 - tables of values read better in long lines
import math

import pyarrow as pa
from support.exprs import BOOLEAN, DOUBLE, INT, STRING, apply, apply_rows, array_of, condition_of, lit

INTS, STRINGS = array_of(INT), array_of(STRING)
MAP = pa.map_(STRING, INT)
STRUCT = pa.struct([pa.field("a", INT), pa.field("b", STRING)])


def test_fields_of_null_are_null():
    rows = [{"a": 1, "b": "x"}, None, {"a": None, "b": "y"}]
    assert apply_rows("get_struct_field", INT, (rows, STRUCT), lit(0, INT)) == [1, None, None]
    nested = [[{"a": 1, "b": "x"}, None], None, []]
    assert apply_rows("get_array_struct_field", INTS, (nested, array_of(STRUCT)), lit(0, INT)) == [[1, None], None, []]


def test_array_items():
    assert apply_rows("get_array_item", INT, ([[1, 2], None, [3]], INTS), ([1, 0, None], INT)) == [2, None, None]
    for index in (2, -1):
        assert condition_of("get_array_item", INT, ([1, 2], INTS), (index, INT)) == "INVALID_ARRAY_INDEX"
    sliced = pa.array([[9], [1, 2], [3], None], INTS).slice(1)
    assert apply_rows("get_array_item", INT, (sliced, INTS), ([1, 0, 5], INT)) == [2, 3, None]


def test_element_at():
    assert apply_rows("element_at", INT, ([[1, 2], [1, 2]], INTS), ([1, -1], INT)) == [1, 2]
    assert condition_of("element_at", INT, ([1], INTS), (0, INT)) == "INVALID_INDEX_OF_ZERO"
    assert condition_of("element_at", INT, ([1], INTS), (-2, INT)) == "INVALID_ARRAY_INDEX_IN_ELEMENT_AT"


def test_map_values():
    maps = [[("a", 1), ("b", None)], [], None, [("b", 3)]]
    assert apply_rows("get_map_value", INT, (maps, MAP), lit("b", STRING)) == [None, None, None, 3]
    assert apply_rows("element_at", INT, (maps, MAP), (["a", "a", "a", None], STRING)) == [1, None, None, None]
    assert apply_rows("map_keys", STRINGS, (maps, MAP)) == [["a", "b"], [], None, ["b"]]
    assert apply_rows("map_values", INTS, (pa.array(maps, MAP).slice(2), MAP)) == [None, [3]]


def test_size():
    assert apply_rows("size", INT, ([[1, None], [], None], INTS)) == [2, 0, None]
    assert apply_rows("size", INT, ([[("a", 1)], None], MAP)) == [1, None]


def test_array_contains():
    arrays = [[1, None], [1, None], [2], [], None]
    assert apply_rows("array_contains", BOOLEAN, (arrays, INTS), ([1, 2, 1, 1, 1], INT)) == [
        True,
        None,
        False,
        False,
        None,
    ]
    doubles = array_of(DOUBLE)
    assert apply_rows("array_contains", BOOLEAN, ([[math.nan], [0.0]], doubles), ([math.nan, -0.0], DOUBLE)) == [
        True,
        True,
    ]


def test_constructors():
    assert apply_rows("named_struct", STRUCT, lit("a", STRING), ([1, None], INT), lit("b", STRING), lit("x", STRING)) == [
        {"a": 1, "b": "x"}, {"a": None, "b": "x"},
    ]  # fmt: skip
    assert apply_rows("array", INTS, ([1, None], INT), lit(5, INT)) == [[1, 5], [None, 5]]
    assert apply_rows("map", MAP, (["a", "b"], STRING), ([1, None], INT)) == [[("a", 1)], [("b", None)]]
    assert condition_of("map", MAP, (None, STRING), (1, INT)) == "NULL_MAP_KEY"
    assert condition_of("map", MAP, ("a", STRING), (1, INT), ("a", STRING), (2, INT)) == "DUPLICATED_MAP_KEY"


def test_whole_arrays():
    assert apply_rows("concat", INTS, ([[1], None], INTS), ([[2, None], [1]], INTS)) == [[1, 2, None], None]
    assert apply("reverse", INTS, ([1, None], INTS)) == [None, 1]
    assert apply_rows("array_min", INT, ([[3, None, 1], [None], []], INTS)) == [1, None, None]
    assert math.isnan(apply("array_max", DOUBLE, ([1.0, math.nan], array_of(DOUBLE))))
    assert apply("sort_array", INTS, ([2, None, 1], INTS), lit(value=True, kind=BOOLEAN)) == [None, 1, 2]
    assert apply("sort_array", INTS, ([2, None, 1], INTS), lit(value=False, kind=BOOLEAN)) == [2, 1, None]
    assert apply_rows("flatten", INTS, ([[[1], []], [[1], None]], array_of(INTS))) == [[1], None]
    assert apply("array_join", STRING, (["a", None, "b"], STRINGS), lit(",", STRING)) == "a,b"
    assert apply("array_join", STRING, (["a", None, "b"], STRINGS), lit(",", STRING), lit("?", STRING)) == "a,?,b"
