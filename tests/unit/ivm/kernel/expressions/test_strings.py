# ruff: noqa: E501 - tables of values read better in long lines
import pytest
from support.exprs import (
    BIGINT,
    BINARY,
    BOOLEAN,
    INT,
    STRING,
    apply,
    apply_rows,
    array_of,
    call,
    condition_of,
    first_unsupported,
    lit,
)

from weirflow.sql.expr import Column

TEXT = "a😀é"


def text(value):
    return lit(value, STRING)


def number(value):
    return lit(value, INT)


@pytest.mark.parametrize(
    ("function", "value", "expected"),
    [
        ("upper", "ßaİıǆﬁ", "SSAİIǄFI"),
        ("lower", "ΑΣ ΣΑ aΣb", "ας σα aσb"),
        ("lower", "İI", "i̇i"),
        ("upper", "\u019b", "\ua7dc"),
        ("lower", "\ua7dc", "\u019b"),
        ("initcap", "hello wORLD ß a-b\tx  ΣΣ", "Hello World Ss A-b\tx  Σς"),
        ("trim", "  a b ", "a b"),
        ("trim", "\t a \n", "\t a \n"),
        ("ltrim", "  a ", "a "),
        ("rtrim", "  a ", "  a"),
        ("reverse", TEXT, "é😀a"),
        ("upper", "", ""),
    ],
)
def test_one_text(function, value, expected):
    assert apply_rows(function, STRING, ([value, None], STRING)) == [expected, None]


def test_lengths():
    assert apply("length", INT, (TEXT, STRING)) == 3
    assert apply("octet_length", INT, (TEXT, STRING)) == 7
    assert apply("bit_length", INT, (TEXT, STRING)) == 56
    assert apply("length", INT, (b"\xff\x00", BINARY)) == 2


@pytest.mark.parametrize(
    ("position", "size", "expected"),
    [(1, 2, "a😀"), (0, 2, "a😀"), (-2, 1, "😀"), (-10, 9, "a😀"), (2, -1, ""), (2, 2**31 - 1, "😀é"), (-3, 2**31 - 1, TEXT), (2**31 - 1, 3, ""), (-(2**31), 2**31 - 1, "a😀"), (-1, 0, "")],
)  # fmt: skip
def test_substring_by_constants_and_by_columns(position, size, expected):
    assert apply("substring", STRING, (TEXT, STRING), number(position), number(size)) == expected
    assert apply("substring", STRING, (TEXT, STRING), (position, INT), (size, INT)) == expected


def test_substring_of_bytes():
    assert apply("substring", BINARY, (b"\x01\x02\x03", BINARY), number(2), number(1)) == b"\x02"
    assert apply("left", BINARY, (b"\x01\x02", BINARY), number(1)) == b"\x01"


@pytest.mark.parametrize(("size", "left", "right"), [(2, "a😀", "😀é"), (0, "", ""), (-1, "", ""), (9, TEXT, TEXT)])
def test_left_right(size, left, right):
    for given in (number(size), (size, INT)):
        assert apply("left", STRING, (TEXT, STRING), given) == left
        assert apply("right", STRING, (TEXT, STRING), given) == right


def test_concat_is_null_and_concat_ws_is_not():
    assert apply_rows("concat", STRING, (["a", None], STRING), text("-"), (["b", "b"], STRING)) == ["a-b", None]
    parts = (["a", None, None], STRING), (["b", "b", None], STRING)
    assert apply_rows("concat_ws", STRING, text(","), *parts) == ["a,b", "b", ""]
    assert apply_rows("concat_ws", STRING, ([None, "-"], STRING), (["a", "a"], STRING), text("x")) == [None, "a-x"]
    strings = array_of(STRING)
    assert apply_rows("concat_ws", STRING, text(","), ([["x", None, "y"], [], None], strings), text("z")) == [
        "x,y,z",
        "z",
        "z",
    ]
    assert apply("concat", BINARY, (b"\x01", BINARY), (b"\xff", BINARY)) == b"\x01\xff"


@pytest.mark.parametrize(
    ("function", "arguments", "expected"),
    [
        ("replace", ("aaa", "aa", "b"), "ba"),
        ("replace", ("abc", "", "x"), "abc"),
        ("translate", ("abca", "aa", "12"), "1bc1"),
        ("translate", ("abc", "abc", "1"), "1"),
        ("translate", ("abc", "b", "\0"), "ac"),
        ("trim", ("xyabcyx", "xy"), "abc"),
        ("trim", (" a ", ""), " a "),
        ("rtrim", ("b😀a😀", "😀a"), "b"),
    ],
)
def test_texts_by_constants_and_by_columns(function, arguments, expected):
    assert apply(function, STRING, (arguments[0], STRING), *[text(each) for each in arguments[1:]]) == expected
    assert apply(function, STRING, *[(each, STRING) for each in arguments]) == expected


@pytest.mark.parametrize(
    ("value", "size", "filler", "left", "right"),
    [("abc", 5, "xy", "xyabc", "abcxy"), ("abc", 2, "xy", "ab", "ab"), ("abc", 5, "", "abc", "abc"), ("abc", -1, "x", "", ""), ("a😀", 4, "é", "ééa😀", "a😀éé"), ("", 3, "ab", "aba", "aba")],
)  # fmt: skip
def test_pad(value, size, filler, left, right):
    assert apply("lpad", STRING, (value, STRING), number(size), text(filler)) == left
    assert apply("rpad", STRING, (value, STRING), number(size), text(filler)) == right


def test_positions_are_code_points():
    assert apply("instr", INT, (TEXT, STRING), text("é")) == 3
    assert apply("instr", INT, ("", STRING), text("")) == 1
    assert [apply("locate", INT, text("b"), ("abcb", STRING), (start, INT)) for start in (1, 3, 5, 0, -1, None)] == [
        2,
        4,
        0,
        0,
        0,
        0,
    ]
    assert apply("locate", INT, text(""), ("abc", STRING), number(10)) == 1
    assert apply("locate", INT, lit(None, STRING), ("abc", STRING), number(1)) is None


def test_contains():
    for function, part, expected in (
        ("startswith", "a", True),
        ("endswith", "é", True),
        ("contains", "😀", True),
        ("contains", "", True),
        ("contains", "x", False),
    ):
        assert apply(function, BOOLEAN, (TEXT, STRING), text(part)) is expected
        assert apply(function, BOOLEAN, (TEXT, STRING), (part, STRING)) is expected


def test_repeat_space_ascii_chr():
    assert [apply("repeat", STRING, ("ab", STRING), (count, INT)) for count in (2, 0, -1)] == ["abab", "", ""]
    assert apply("space", STRING, (2, INT)) == "  "
    assert [apply("ascii", INT, (value, STRING)) for value in ("", "é", "😀")] == [0, 233, 128512]
    assert [apply("chr", STRING, (code, BIGINT)) for code in (65, 321, -1, 0)] == ["A", "A", "", "\0"]


def test_parts():
    assert [apply("split_part", STRING, ("a.b.c", STRING), text("."), (index, INT)) for index in (2, -1, 5)] == [
        "b",
        "c",
        "",
    ]
    assert condition_of("split_part", STRING, ("a", STRING), text("."), (0, INT)) == "INVALID_INDEX_OF_ZERO"
    assert [apply("substring_index", STRING, ("a.b.c", STRING), text("."), (count, INT)) for count in (2, -2, 0)] == [
        "a.b",
        "b.c",
        "",
    ]


@pytest.mark.parametrize(
    ("value", "pattern", "expected"),
    [("a", "_", True), ("😀", "_", True), ("a\nb", "a%b", True), ("a%", "a\\%", True), ("ab", "a\\%", False), ("", "%", True), ("abc", "ABC", False), ("a.c", "a.c", True), ("abc", "a.c", False), ("abc", "%b%", True), ("a\\b", "a\\\\b", True), ("axbyc", "a%b%c", True), ("(", "(", True)],
)  # fmt: skip
def test_like_by_constant_and_by_column(value, pattern, expected):
    assert apply("like", BOOLEAN, (value, STRING), text(pattern), text("\\")) is expected
    assert apply("like", BOOLEAN, (value, STRING), (pattern, STRING), text("\\")) is expected


def test_like_escapes():
    assert apply("like", BOOLEAN, ("a%b", STRING), text("a/%b"), text("/")) is True
    assert apply("ilike", BOOLEAN, ("ÄBC", STRING), text("ä_c"), text("\\")) is True
    column = Column(0, "s", STRING)
    assert first_unsupported(call("like", BOOLEAN, column, text("a\\b"), text("\\"))) is not None
    assert (
        condition_of("like", BOOLEAN, ("ab", STRING), ("a\\b", STRING), text("\\"))
        == "INVALID_FORMAT.ESC_IN_THE_MIDDLE"
    )
    assert (
        condition_of("like", BOOLEAN, ("ab", STRING), ("ab\\", STRING), text("\\")) == "INVALID_FORMAT.ESC_AT_THE_END"
    )


@pytest.mark.parametrize(("count", "expected"), [(1, ""), (2, "a"), (3, "aa"), (4, "aaaa"), (-1, ""), (-2, "a"), (-4, "aaaa")])  # fmt: skip
def test_occurrences_of_a_delimiter_may_overlap(count, expected):
    assert apply("substring_index", STRING, ("aaaa", STRING), text("aa"), (count, INT)) == expected
