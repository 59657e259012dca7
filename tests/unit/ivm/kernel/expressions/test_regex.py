# ruff: noqa: E501 - tables of values read better in long lines
import pytest
from support.exprs import BOOLEAN, INT, STRING, apply, apply_rows, array_of, call, first_unsupported, lit

from weirflow.sql.expr import Column

S = Column(0, "s", STRING)


def text(value):
    return lit(value, STRING)


@pytest.mark.parametrize(
    ("value", "expression", "expected"),
    [
        ("abc\n", "c$", True),
        ("abc\r\n", "c$", True),
        ("abc\n\n", "c$", False),
        ("abc\r\n", "c\\r$", False),
        ("a\rb", "a.b", False),
        ("a\u2028b", "a.b", False),
        ("a😀b", "a.b", True),
        ("a\x0bb", "a\\sb", True),
        ("é", "\\w", False),
        ("٣", "\\d", False),
        ("a\nb", "^b", False),
        ("KELVIN \u212a", "(?i)[k]$", False),
        ("Kelvin", "(?i)^kELV", True),
        ("a-b", "[a-]+b", True),
        ("a&b", "^[a&]+b", True),
        ("x=1&y", "x=[^&]*y", False),
        ("a{2}", "a\\{2\\}", True),
        ("", "^$", True),
    ],
)
def test_rlike_as_in_java(value, expression, expected):
    assert apply_rows("rlike", BOOLEAN, ([value, None], STRING), text(expression)) == [expected, None]


@pytest.mark.parametrize(
    "expression",
    ["\\bx", "(?=a)", "a*+", "(a*)*", "[a&&b]", "[&&a]", "[#-&]", "[[a]b]", "\\p{L}", "(a)\\1", "\\Qa\\E", "(?s).", "a{", "(", "[", "*", "\\u0041", "(?<n>a)", "x{1000}", "\\", "a||)"],
)  # fmt: skip
def test_what_engines_read_differently_is_refused(expression):
    assert first_unsupported(call("rlike", BOOLEAN, S, text(expression))) is not None


def test_patterns_that_are_not_constant_are_refused():
    assert first_unsupported(call("rlike", BOOLEAN, S, S)) is not None


def test_extract():
    assert apply("regexp_extract", STRING, ("100-200", STRING), text("(\\d+)-(\\d+)"), lit(2, INT)) == "200"
    assert apply("regexp_extract", STRING, ("foo", STRING), text("(\\d+)"), lit(1, INT)) == ""
    assert apply("regexp_extract", STRING, ("a", STRING), text("(b)?a"), lit(1, INT)) == ""
    assert first_unsupported(call("regexp_extract", STRING, S, text("(a)"), lit(2, INT))) is not None


@pytest.mark.parametrize(
    ("expression", "replacement", "expected"),
    [("b(c)", "[$1]", "a[c]a[c]"), ("b", "\\$", "a$ca$c"), ("(a)(b)", "$21", "b1cb1c"), ("b", "$0$0", "abbcabbc"), ("(b)|c", "<$1>", "a<b><>a<b><>")],
)  # fmt: skip
def test_replace(expression, replacement, expected):
    assert (
        apply("regexp_replace", STRING, ("abcabc", STRING), text(expression), text(replacement), lit(1, INT))
        == expected
    )


def test_replacing_nothing_is_refused():
    assert first_unsupported(call("regexp_replace", STRING, S, text("a*"), text("x"), lit(1, INT))) is not None


@pytest.mark.parametrize(
    ("value", "expression", "limit", "expected"),
    [
        ("a,b,,c,,", ",", -1, ["a", "b", "", "c", "", ""]),
        ("a,b,,c,,", ",", 0, ["a", "b", "", "c", "", ""]),
        ("a,b,c", ",", 2, ["a", "b,c"]),
        ("", ",", -1, [""]),
        ("a😀b", "", -1, ["a", "😀", "b"]),
        ("abc", "", 2, ["a", "bc"]),
        ("a1b22c", "[0-9]+", -1, ["a", "b", "c"]),
        (",a", "(,)", -1, ["", "a"]),
    ],
)
def test_split(value, expression, limit, expected):
    kind = array_of(STRING)
    assert apply_rows("split", kind, ([value, None], STRING), text(expression), lit(limit, INT)) == [expected, None]
