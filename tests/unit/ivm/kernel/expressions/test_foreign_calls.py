"""Foreign calls: the different rows go to the engine once, and only those that a row's meaning asks for may fail."""

import pyarrow as pa
import pytest

from weirflow.errors import DataError, EngineMissing
from weirflow.ivm.kernel.expressions.compile import compile_expression, compile_expressions, computes
from weirflow.ivm.kernel.expressions.foreign import evaluated_by
from weirflow.sql.expr import Call, Column, Literal
from weirflow.sql.foreign import PYTHON, foreign_call, foreign_calls, shown
from weirflow.sql.passes.optimize import optimized
from weirflow.sql.plan import Field, Filter, Join, JoinKind, Project, Scan
from weirflow.sql.stored import decode_plan, encode_plan
from weirflow.sql.traverse import shift

NAME, NUMBER = Column(0, "name", pa.string()), Column(1, "number", pa.int64())
REVERSED = foreign_call("reversed(`_wf0`)", {"zone": "UTC"}, [NAME], pa.string())
INVERSE = foreign_call("inverse(`_wf0`)", {"zone": "UTC"}, [NUMBER], pa.float64())
CALLED = foreign_call("`clean`(`_wf0`)", {"function:clean": "1"}, [NAME], pa.string(), PYTHON)
ROWS = [pa.array(["ab", "cd", None, "ab"]), pa.array([1, 2, 0, 4], pa.int64())]


class Reversing:
    """Evaluates the two functions of these tests, and remembers what it was asked."""

    def __init__(self):
        self.asked = []

    def evaluate(self, expressions, settings, rows):
        self.asked.append((tuple(expressions), dict(settings), rows.to_pydict()))
        return pa.table({str(at): self._value(text, rows) for at, text in enumerate(expressions)})

    def _value(self, text, rows):
        function, _, column = text.rstrip(")").partition("(")
        values = rows.column(column.strip("`")).to_pylist()
        if function == "reversed":
            return pa.array([None if one is None else one[::-1] for one in values], pa.string())
        if function == "same":
            return pa.array(values, pa.float64())
        if 0 in values:
            raise DataError("Division by zero.")
        return pa.array([None if one is None else 1 / one for one in values], pa.float64())


@pytest.fixture
def engine():
    return Reversing()


def evaluated(engine, *exprs, rows=ROWS):
    with evaluated_by(engine):
        evaluate = compile_expressions(exprs)
    return [column.to_pylist() for column in evaluate(rows, len(rows[0]))]


def test_different_rows_are_sent_once(engine):
    assert evaluated(engine, REVERSED) == [["ba", "dc", None, "ba"]]
    ((texts, settings, rows),) = engine.asked
    assert (texts, settings) == (("reversed(`_wf0`)",), {"zone": "UTC"})
    assert sorted(rows["_wf0"], key=str) == [None, "ab", "cd"]


def test_calls_of_one_operator_are_one_question(engine):
    rows = [ROWS[0], pa.array([1, 2, 5, 4], pa.int64())]
    assert evaluated(engine, REVERSED, INVERSE, REVERSED, rows=rows) == [
        ["ba", "dc", None, "ba"],
        [1.0, 0.5, 0.2, 0.25],
        ["ba", "dc", None, "ba"],
    ]
    assert len(engine.asked) == 1


def test_what_is_not_chosen_cannot_fail(engine):
    is_zero = Call("equal", (NUMBER, Literal(0, pa.int64())), pa.bool_())
    chosen = Call("case", (is_zero, Literal(-1.0, pa.float64()), INVERSE), pa.float64())
    assert evaluated(engine, chosen, REVERSED) == [[1.0, 0.5, -1.0, 0.25], ["ba", "dc", None, "ba"]]
    with pytest.raises(DataError):
        evaluated(engine, INVERSE)


def test_a_constant_is_asked_for_once_and_not_while_it_is_compiled(engine):
    constant = foreign_call("reversed(`_wf0`)", {}, [Literal("xy", pa.string())], pa.string())
    with evaluated_by(engine):
        evaluate = compile_expression(constant)
    assert engine.asked == []
    assert evaluate(ROWS, 4).to_pylist() == ["yx"] * 4
    assert engine.asked[0][2] == {"_wf0": ["xy"]}


def test_a_call_inside_a_call_is_evaluated_first(engine):
    twice = foreign_call("reversed(`_wf0`)", {}, [REVERSED], pa.string())
    assert evaluated(engine, twice) == [["ab", "cd", None, "ab"]]


def test_without_an_engine_it_is_said_what_is_missing():
    evaluate = compile_expression(REVERSED)
    with pytest.raises(EngineMissing, match=r"reversed\(…\)"):
        evaluate(ROWS, 4)
    assert evaluate([one.slice(0, 0) for one in ROWS], 0).to_pylist() == []


STORED = (
    '{"version":1,"types":["string","int64"],"nodes":[["scan","t",[["name",0],["number",1]],null],'
    '["literal","`clean`(`_wf0`)",0],["literal","{\\"function:clean\\":\\"1\\"}",0],["column",0,"name",0],'
    '["call","python",[1,2,3],0,null],["project",0,[4],[["name",0]]]]}'
)


def test_what_is_stored_is_read_by_later_versions():
    fields = (Field("name", pa.string()), Field("number", pa.int64()))
    plan = Project(Scan("t", fields), (CALLED,), (fields[0],))
    assert decode_plan(STORED) == plan
    assert encode_plan(plan) == STORED


def test_plans_with_such_calls_are_stored():
    fields = (Field("name", pa.string()), Field("number", pa.int64()))
    wanted = Call("equal", (REVERSED, Literal("ba", pa.string())), pa.bool_())
    plan = Project(Filter(Scan("t", fields), wanted), (INVERSE,), (Field("x", pa.float64()),))
    assert decode_plan(encode_plan(plan)) == plan
    assert [shown(call) for call in foreign_calls(plan)] == ["reversed(name)", "inverse(number)"]


@pytest.mark.parametrize(
    ("call", "known"),
    [
        (Call("upper", (REVERSED,), pa.string()), True),
        (Call("rlike", (NAME, Literal("(?=a)b", pa.string())), pa.bool_()), False),
        (Call("rlike", (NAME, Literal("ab", pa.string())), pa.bool_()), True),
        (REVERSED, True),
    ],
)
def test_what_is_computed_here_depends_on_constants(call, known):
    assert computes(call) is known


def test_relations_are_joined_by_such_calls_not_multiplied():
    fields = (Field("name", pa.string()), Field("number", pa.int64()))
    both = Call("equal", (REVERSED, shift(REVERSED, 2)), pa.bool_())
    crossed = Join(Scan("t", fields), Scan("u", fields), JoinKind.INNER, (), ())
    plan = optimized(Filter(crossed, both))
    assert isinstance(plan, Join)
    assert (plan.left_keys, plan.right_keys) == ((REVERSED,), (REVERSED,))
    guarded = optimized(Filter(crossed, Call("equal", (REVERSED, Literal("ba", pa.string())), pa.bool_())))
    assert isinstance(guarded, Filter)  # it may fail for a row that nothing is joined with


def test_rows_that_differ_by_the_sign_of_zero_are_different(engine):
    same = foreign_call("same(`_wf0`)", {}, [Column(0, "x", pa.float64())], pa.float64())
    (values,) = evaluated(engine, same, rows=[pa.array([0.0, -0.0, 0.0])])
    assert str(values) == "[0.0, -0.0, 0.0]"
    assert len(engine.asked[0][2]["_wf0"]) == 2
