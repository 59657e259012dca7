"""Typed expressions to functions over columns: compiled once, called once for each tick.

Evaluation is optimistic: an argument is evaluated for all rows, and only if that raises is it evaluated again for just
the rows for which Spark would (those not decided by an earlier condition, those whose earlier arguments are not NULL).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa

from weirflow.errors import DataError, UnsupportedError
from weirflow.ivm.kernel.expressions.foreign import CompiledForeign, ForeignCalls
from weirflow.ivm.kernel.expressions.nested.elements import CompiledLambda, variable_key
from weirflow.ivm.kernel.expressions.numbers.tolerant import without_zeros
from weirflow.ivm.kernel.expressions.registry import (
    ALL_EVALUATED,
    FORMS,
    FUNCTIONS,
    HIGHER_ORDER,
    RIGHT_FIRST,
    ZERO_IS_NULL,
    UnknownFunction,
)
from weirflow.ivm.kernel.expressions.retype import retyped
from weirflow.ivm.kernel.expressions.rows import Rows, broadcast, evaluate_where, valid_mask
from weirflow.ivm.kernel.expressions.signature import CallSignature
from weirflow.rows.arrays import scalar
from weirflow.sql.clock.reading import is_clock
from weirflow.sql.expr import Call, Column, Expr, Literal
from weirflow.sql.foreign import PYTHON, foreign_parts, is_foreign
from weirflow.sql.lambdas import is_lambda, is_variable, lambda_parts, number_of
from weirflow.sql.traverse import parts
from weirflow.stack import grows

if TYPE_CHECKING:
    from weirflow.ivm.kernel.expressions.rows import Node, Value
    from weirflow.ivm.kernel.expressions.signature import Kernel

Evaluator = Callable[[Sequence[pa.Array], int], pa.Array]
"""Columns of a batch and its length to one array (never chunked) of exactly the expression's type.

Raises ``DataError`` if a row breaks a rule; no row is ever skipped. Nothing that changes a result is kept between
calls, so an evaluator may be called from several threads.
"""


def compile_expression(expr: Expr) -> Evaluator:
    """An evaluator of one expression; ``UnknownFunction`` if a part of it has none.

    >>> import pyarrow as pa
    >>> from weirflow.sql.expr import Call, Column, Literal
    >>> total = Call("add", (Column(0, "x", pa.int32()), Literal(1, pa.int32())), pa.int32())
    >>> compile_expression(total)([pa.array([1, None], pa.int32())], 2).to_pylist()
    [2, None]
    """
    compiler, kind = _Compiler([expr]), expr.type
    node, prepare = compiler.node(expr), compiler.foreign.prepare

    def evaluate(columns: Sequence[pa.Array], length: int) -> pa.Array:
        if length == 0:
            return pa.array([], kind)
        rows = Rows(columns, length)
        prepare(rows)
        return retyped(broadcast(node(rows), length), kind)

    return evaluate


def compile_expressions(exprs: Sequence[Expr]) -> Callable[[Sequence[pa.Array], int], list[pa.Array]]:
    """An evaluator of several expressions over the same rows; what they have in common is evaluated once."""
    columns = [(expr.index, expr.type) for expr in exprs if isinstance(expr, Column)]
    if len(columns) == len(exprs):
        return lambda given, _: [retyped(given[index], kind) for index, kind in columns]
    compiler = _Compiler(exprs)
    outputs, prepare = [(compiler.node(expr), expr.type) for expr in exprs], compiler.foreign.prepare

    def evaluate(columns: Sequence[pa.Array], length: int) -> list[pa.Array]:
        if length == 0:
            return [pa.array([], kind) for _, kind in outputs]
        rows = Rows(columns, length)
        prepare(rows)
        return [retyped(broadcast(node(rows), length), kind) for node, kind in outputs]

    return evaluate


def computes(call: Call) -> bool:
    """Whether there is an evaluator for a call of arguments of these types and these constants.

    >>> from weirflow.sql.expr import Column
    >>> computes(Call("sentences", (Column(0, "x", pa.string()),), pa.string()))
    False
    """
    if is_foreign(call):
        return True
    given = [
        one if _is_constant(one) or is_lambda(one) else Column(at, "", one.type)
        for at, one in enumerate(call.arguments)
    ]
    try:
        compile_expression(replace(call, arguments=tuple(given)))
    except UnsupportedError:
        return False
    return True


def _is_constant(expr: Expr) -> bool:
    """Whether a value is known without rows; that of a subquery is computed before those of a row, as a column's."""
    return all(isinstance(part, Literal | Call) and not is_foreign(part) and not is_clock(part) for part in parts(expr))


_LOW = 3
"""Calls that may nest in an expression wherever the tick comes from."""
_HIGH = 12
"""Calls that may nest between two that look whether there is room: each takes a few of Python's."""


class _CompiledNode(NamedTuple):
    node: Node
    constant: pa.Scalar | None
    height: int = 0
    """How many calls nest until one looks whether there is room on the stack."""


class _Compiler:
    """Turns expressions into nodes; equal sub-expressions become one node that is evaluated once for a batch."""

    def __init__(self, exprs: Sequence[Expr]) -> None:
        self._slots: dict[Hashable, int] = {}
        self._slot_of: dict[int, int] = {}
        self._uses: Counter[int] = Counter()
        self._compiled: dict[int, _CompiledNode] = {}
        self.foreign = ForeignCalls()
        for expr in exprs:
            self._uses[self._intern(expr)] += 1

    def node(self, expr: Expr) -> Node:
        compiled = self._compile(expr)
        return grows(compiled.node) if compiled.height > _LOW else compiled.node

    @grows
    def _intern(self, expr: Expr) -> int:
        """A number that is the same for sub-expressions that always have the same value."""
        known = self._slot_of.get(id(expr))
        if known is not None:
            return known
        key: Hashable
        if isinstance(expr, Column):
            key = ("column", expr.index)
        elif isinstance(expr, Literal):
            # Not the value itself: 0.0 equals -0.0, and lists do not hash.
            key = ("literal", repr(expr.value), expr.type)
        elif isinstance(expr, Call):
            key = (expr.function, *(self._intern(each) for each in expr.arguments), expr.type)
        else:
            raise UnsupportedError(f"{type(expr).__name__} cannot be evaluated row by row.")
        new = key not in self._slots
        slot = self._slots.setdefault(key, len(self._slots))
        self._slot_of[id(expr)] = slot
        if new and isinstance(expr, Call):
            for argument in expr.arguments:
                self._uses[self._slot_of[id(argument)]] += 1
        return slot

    @grows
    def _compile(self, expr: Expr) -> _CompiledNode:
        slot = self._slot_of[id(expr)]
        if slot not in self._compiled:
            self._compiled[slot] = self._new(expr, slot)
        return self._compiled[slot]

    def _new(self, expr: Expr, slot: int) -> _CompiledNode:  # noqa: PLR0911 - one for each kind of expression
        if isinstance(expr, Column):
            return _CompiledNode(_column(expr.index), None)
        if isinstance(expr, Literal):
            return _constant(scalar(expr.value, expr.type))
        assert isinstance(expr, Call)
        if is_foreign(expr):
            return self._foreign(expr, slot)
        if is_variable(expr):
            return _CompiledNode(_column(variable_key(number_of(expr))), None)
        if any(is_lambda(one) for one in expr.arguments):
            return self._higher_order(expr, slot)
        arguments = [self._compile(each) for each in expr.arguments]
        node = _call(expr, arguments)
        if all(each.constant is not None for each in arguments):
            try:
                value = node(Rows((), 1))
            except DataError:
                return _CompiledNode(node, None)  # raised again if a row asks for it
            return _constant(value if isinstance(value, pa.Scalar) else value[0])
        height = 1 + max(each.height for each in arguments)
        if height > _HIGH:
            node, height = grows(node), 0
        return _CompiledNode(_once(node, slot) if self._uses[slot] > 1 else node, None, height)

    def _higher_order(self, call: Call, slot: int) -> _CompiledNode:
        """A function of lambdas: their bodies are evaluated for the elements, not for the rows."""
        given: list[Node | CompiledLambda] = []
        height = 0
        for one in call.arguments:
            parts = lambda_parts(one) if is_lambda(one) else None
            compiled = self._compile(one if parts is None else parts.body)
            height = max(height, compiled.height)
            if parts is None:
                given.append(compiled.node)
            else:
                numbers = tuple(number_of(each) for each in parts.variables)
                given.append(CompiledLambda(numbers, self.node(parts.body), one.type))
        types = tuple(one.type for one in call.arguments)
        signature = CallSignature(call.function, types, call.type, (None,) * len(types), call.position)
        build = HIGHER_ORDER.get(call.function)
        node = None if build is None else build(signature, given)
        if node is None:
            raise UnknownFunction(call.function, types, call.position)
        height += 2  # the function and its lambda
        if height > _HIGH:
            node, height = grows(node), 0
        return _CompiledNode(_once(node, slot) if self._uses[slot] > 1 else node, None, height)

    def _foreign(self, call: Call, slot: int) -> _CompiledNode:
        """A call that an engine evaluates: never while expressions are compiled, though its arguments be constant."""
        found = foreign_parts(call)
        arguments = [self._compile(each) for each in found.arguments]
        compiled = CompiledForeign(slot, found.text, found.settings, tuple(one.node for one in arguments), call.type)
        if call.function == PYTHON:
            return _CompiledNode(_once(self.foreign.python(compiled), slot), None, 1)
        is_inner = not any(is_foreign(part) for one in found.arguments for part in parts(one))
        height = 1 + max((one.height for one in arguments), default=0)
        return _CompiledNode(self.foreign.node(compiled, is_inner=is_inner), None, height)


def _column(index: int) -> Node:
    def read(rows: Rows) -> Value:
        return rows.columns[index]

    return read


def _constant(value: pa.Scalar) -> _CompiledNode:
    def constant(_: Rows) -> Value:
        return value

    return _CompiledNode(constant, value)


def _once(node: Node, slot: int) -> Node:
    def once(rows: Rows) -> Value:
        value = rows.cache.get(slot)
        if value is None:
            value = rows.cache[slot] = node(rows)
        return value

    return once


def _call(call: Call, arguments: list[_CompiledNode]) -> Node:
    signature = CallSignature(
        call.function,
        tuple(each.type for each in call.arguments),
        call.type,
        tuple(each.constant for each in arguments),
        call.position,
    )
    nodes = [each.node for each in arguments]
    unknown = UnknownFunction(call.function, signature.types, call.position)
    if call.function in FORMS:
        form = FORMS[call.function](signature, nodes)
        if form is None:
            raise unknown
        return form
    if call.function not in FUNCTIONS:
        raise unknown
    kernel = FUNCTIONS[call.function](signature)
    if kernel is None:
        raise unknown
    if call.function in ALL_EVALUATED:
        return lambda rows: kernel(*[node(rows) for node in nodes])
    if call.function in ZERO_IS_NULL:
        nodes[-1] = _zeros_as_nulls(nodes[-1])
    return _strict(kernel, nodes, signature.types, right_first=call.function in RIGHT_FIRST)


def _zeros_as_nulls(node: Node) -> Node:
    return lambda rows: without_zeros(node(rows))


def _strict(kernel: Kernel, nodes: list[Node], types: Sequence[pa.DataType], *, right_first: bool) -> Node:
    """A call that is NULL as soon as an argument is: later arguments are then not evaluated."""
    if len(nodes) == 1:
        only = nodes[0]
        return lambda rows: kernel(only(rows))
    if len(nodes) == 2:  # noqa: PLR2004 - operators, the common case, without a loop
        left, right = nodes
        if right_first:

            def last_first(rows: Rows) -> Value:
                value = right(rows)
                return kernel(_evaluated(left, types[0], rows, (value,)), value)

            return last_first

        def in_order(rows: Rows) -> Value:
            value = left(rows)
            return kernel(value, _evaluated(right, types[1], rows, (value,)))

        return in_order

    def one_by_one(rows: Rows) -> Value:
        values: list[Value] = []
        for node, kind in zip(nodes, types, strict=True):
            values.append(_evaluated(node, kind, rows, values))
        return kernel(*values)

    return one_by_one


def _evaluated(node: Node, kind: pa.DataType, rows: Rows, earlier: Sequence[Value]) -> Value:
    try:
        return node(rows)
    except DataError:
        wanted = np.ones(rows.length, np.bool_)
        for value in earlier:
            wanted &= valid_mask(value, rows.length)
        if wanted.all():
            raise
        return evaluate_where(node, kind, rows, wanted)
