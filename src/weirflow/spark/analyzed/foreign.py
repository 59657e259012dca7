"""``ForeignReader``: expressions that have no counterpart here, as calls that Spark evaluates.

Of such an expression Spark's text is made over placeholders, which stand for the columns it reads. The text is then
analyzed again: only if Spark reads the same expression in it, all of its fields included, is it taken.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.errors import PySparkException

from weirflow.errors import NotIncremental, Reason
from weirflow.spark.analyzed.tree import expression_node
from weirflow.spark.frames.arrow import empty_relation
from weirflow.sql.clock.reading import is_clock
from weirflow.sql.expr import Call, Column
from weirflow.sql.foreign import MARK, PYTHON, column_name, foreign_call, is_foreign, placeholder, placements
from weirflow.sql.lambdas import is_lambda, is_variable
from weirflow.sql.quoting import quoted
from weirflow.sql.registered import PREFIX, DeclaredFunction
from weirflow.sql.resolved.reading import NOT_DETERMINISTIC, Scope, read_expression, refused
from weirflow.sql.resolved.types import type_of
from weirflow.sql.types import DAY_TIME_INTERVAL, NULL, YEAR_MONTH_INTERVAL
from weirflow.stack import grows

if TYPE_CHECKING:
    from weirflow.sql.expr import Expr
    from weirflow.sql.resolved.node import Node

_EXPRESSIONS = "org.apache.spark.sql.catalyst.expressions."
_SUBQUERIES = frozenset({"ScalarSubquery", "Exists", "InSubquery"})
_REFERENCES = _SUBQUERIES | {"AttributeReference", "OuterReference", "AggregateExpression"}
_NEVER_NAMES = """
Alias AttributeReference OuterReference AggregateExpression ScalarSubquery Exists InSubquery ListQuery LateralSubquery
WindowExpression GroupingID Grouping SortOrder TimeWindow SessionWindow WindowTime PreciseTimestampConversion
PythonUDAF CommonExpressionRef CommonExpressionDef With
"""
_NEVER = frozenset(_NEVER_NAMES.split()) | NOT_DETERMINISTIC
_USER_FUNCTIONS = ("PythonUDF", "ScalaUDF")
_BATCHED = 100
"""Spark's number for Python functions of plain values."""
_MOST_NODES = 2_000


class _Unfit(Exception):
    """The expression cannot be one that Spark evaluates."""


class ForeignReader:
    """Makes calls that Spark evaluates; see ``Scope.foreign``.

    Args:
        native: the classic session in which the view is read.
        settings: those of the session that give expressions their meaning.
        computes: whether the kernel has an evaluator for a call, whatever its arguments are made of.
        is_plain: whether values of a type are the same in Python here as in a function that Spark runs.
        find: the function that the Session knows by a name.
    """

    def __init__(
        self,
        native: Any,
        settings: Mapping[str, str],
        computes: Callable[[Call], bool],
        is_plain: Callable[[pa.DataType], bool],
        find: Callable[[str], DeclaredFunction | None],
    ) -> None:
        self._kernel_computes = computes
        self._computed: dict[int, Call] = {}
        self._is_plain = is_plain
        self._find = find
        self._native = native
        self._settings = settings
        self._jvm = native._jvm  # noqa: SLF001 - no public way

    def __call__(self, node: Node, scope: Scope) -> Expr | None:
        """A call that Spark evaluates, if the expression may be one and its text is proven."""
        key = _grouped(node, scope)
        if key is not None:
            return key
        self._require_same_values(node)
        if node.kind in _USER_FUNCTIONS:
            declared = self.declared(node)
            if declared.call is not None and _is_row_by_row(node):
                return self._called(node, declared.name, declared.version, scope)
        return self._by_spark(node, scope)

    @grows
    def computes(self, call: Call) -> bool:
        """See ``Foreign``: one node of Spark's may be several calls here, and each has to have an evaluator."""
        if id(call) in self._computed:
            return True
        if not self._kernel_computes(call):
            return False
        inside = [one for one in call.arguments if isinstance(one, Call) and not _is_evaluated_apart(one)]
        if not is_foreign(call) and not all(self.computes(one) for one in inside):
            return False
        self._computed[id(call)] = call
        return True

    def _by_spark(self, node: Node, scope: Scope) -> Expr | None:
        try:
            kind = self._fit(node)
            written = _Writing(self, scope)
            text = written.text(node)
            if written.placements != placements(text):  # a name of the user's looks like a placeholder
                return None
            if not self._is_proven(node, text, written.arguments, written.origins):
                return None
        except (_Unfit, NotIncremental):
            return None
        return foreign_call(text, {**self._settings, **written.functions}, written.arguments, kind)

    def _require_same_values(self, node: Node) -> None:
        """Raise ``NotIncremental`` for an expression that may give the same rows another value."""
        for one in _all(node):
            if one.kind in _USER_FUNCTIONS:
                self.declared(one)
            if one.kind in NOT_DETERMINISTIC:
                raise refused(one)
        if not node.origin.get().deterministic():
            raise NotIncremental(
                f"{node.shown} gives the same rows another result each time.",
                reason=Reason.EXPRESSION_NOT_DETERMINISTIC,
            )

    def declared(self, node: Node) -> DeclaredFunction:
        """The function of a user's that a node calls; ``NotIncremental`` unless somebody vouches for it."""
        name = _function_name(node)
        found = None if name is None else self._find(name)
        if found is None or not found.is_deterministic:
            shown = repr(name) if name is not None and name.isidentifier() else None
            raise NotIncremental(
                f"Nobody has declared the function {name or '<lambda>'!r} deterministic.",
                reason=Reason.FUNCTION_NOT_DECLARED,
                hint=f"use what session.udf({shown}, ..., deterministic=True) returns, if it gives equal "
                "rows equal values",
            )
        return found

    def _called(self, node: Node, name: str, version: str, scope: Scope) -> Expr | None:
        """A call that this process runs, if its types are the same in Python here as in Spark."""
        try:
            kind = _type(node.origin.get())
        except _Unfit:
            return None
        arguments = tuple(read_expression(one, scope) for one in node.children)
        if not all(self._is_plain(one.type) for one in arguments) or not self._is_plain(kind):
            return self._by_spark(node, scope)
        text = f"{quoted(name)}({', '.join(placeholder(at) for at in range(len(arguments)))})"
        if not self._is_proven(node, text, arguments, [one.origin.get() for one in node.children]):
            raise NotIncremental(
                f"The function {name!r} of the frame is not the one that is registered under that name.",
                reason=Reason.FUNCTION_NOT_DECLARED,
                hint="call what session.udf returned",
            )
        return foreign_call(text, {**self._settings, PREFIX + name: version}, arguments, kind, PYTHON)

    def is_inherited(self, expression: Any) -> bool:
        """Whether an expression is written by its parameters, and its child is what it means."""
        return self._is_a("InheritAnalysisRules", expression)

    def _is_a(self, kind: str, expression: Any) -> bool:
        return bool(self._jvm.java.lang.Class.forName(_EXPRESSIONS + kind).isInstance(expression))

    def attribute(self, text: str, kind: Any) -> Any:
        """An expression of a type that is written as a text."""
        return self._jvm.org.apache.spark.sql.catalyst.expressions.PrettyAttribute(text, kind)

    def sequence(self, values: Sequence[Any]) -> Any:
        """A sequence of Scala's."""
        found = self._jvm.java.util.ArrayList()
        for one in values:
            found.add(one)
        return self._jvm.scala.jdk.javaapi.CollectionConverters.asScala(found).toSeq()

    def _fit(self, node: Node) -> pa.DataType:
        """The type of an expression that Spark may evaluate for each row by itself."""
        if node.kind in _NEVER or node.kind in ("Literal", "NamedLambdaVariable", "LambdaFunction"):
            raise _Unfit
        expression = node.origin.get()
        if self._is_a("Generator", expression):
            raise _Unfit
        kind = _type(expression)
        if _has_interval(kind):
            raise _Unfit
        return kind

    def _is_proven(self, node: Node, text: str, arguments: Sequence[Expr], origins: Sequence[Any]) -> bool:
        """Whether Spark reads the same in a text."""
        columns = pa.schema([(column_name(at), one.type) for at, one in enumerate(arguments)])
        try:
            frame = empty_relation(self._native, columns).selectExpr(text)
            plan = frame._jdf.queryExecution().analyzed()  # noqa: SLF001 - no public way
        except PySparkException:
            return False
        if plan.getClass().getSimpleName() != "Project":
            return False
        found = plan.projectList().apply(0)
        if found.getClass().getSimpleName() == "Alias":
            found = found.child()
        output = plan.child().output()
        places = [(origin, output.apply(at)) for at, origin in enumerate(origins)]
        wanted = self._replaced(node.origin.get(), places)
        return _type(found) == _type(node.origin.get()) and bool(wanted.semanticEquals(found))

    @grows
    def _replaced(self, expression: Any, places: Sequence[tuple[Any, Any]]) -> Any:
        """An expression with columns in the place of what they stand for."""
        for origin, column in places:
            if expression.semanticEquals(origin):
                return column
        children = expression.children()
        if not children.size():
            return expression
        return expression.withNewChildren(
            self.sequence([self._replaced(children.apply(at), places) for at in range(children.size())])
        )


class _Writing:
    """The text of one expression, while it is made.

    Attributes:
        arguments: what its placeholders stand for.
        origins: the same as Spark's objects.
        functions: those of users that it calls, as settings.
        placements: how many placeholders were written.
    """

    def __init__(self, reader: ForeignReader, scope: Scope) -> None:
        self._reader = reader
        self._scope = scope
        self._nodes = 0
        self.arguments: list[Expr] = []
        self.origins: list[Any] = []
        self.functions: dict[str, str] = {}
        self.placements = 0

    @grows
    def text(self, node: Node) -> str:
        """The text of a part; ``_Unfit`` if it has none."""
        self._nodes += 1
        if self._nodes > _MOST_NODES:
            raise _Unfit
        argument = self._argument(node)
        if argument is not None:
            return self._placed(argument, node)
        expression = node.origin.get()
        if node.kind in _NEVER:
            raise _Unfit
        written = _higher if any(one.kind == "LambdaFunction" for one in node.children) else _WRITTEN.get(node.kind)
        if written is not None:
            text = written(node, self)
        elif self._reader.is_inherited(expression):
            given = expression.parameters()
            parameters = [self.text(expression_node(given.apply(at))) for at in range(given.size())]
            text = str(expression.makeSQLString(self._reader.sequence(parameters)))
        else:
            text = self.over_children(node)
        return text

    def called(self, node: Node) -> str:
        """A call of a function of a user's."""
        found = self._reader.declared(node)
        self.functions[PREFIX + found.name] = found.version
        return f"{quoted(found.name)}({', '.join(self.text(one) for one in node.children)})"

    def over_children(self, node: Node) -> str:
        """What Spark writes of a node over what is written of its children."""
        expression = node.origin.get()
        if not node.children:
            return _own(str(expression.sql()))
        children = [self._child(one) for one in node.children]
        return str(expression.withNewChildren(self._reader.sequence(children)).sql())

    def _child(self, node: Node) -> Any:
        expression = node.origin.get()
        if node.kind == "Literal":  # how a node is written may depend on it
            _own(str(expression.sql()))
            return expression
        return self._reader.attribute(self.text(node), expression.dataType())

    def _argument(self, node: Node) -> Expr | None:
        """What a placeholder may stand for: a column, a key of the groups, or what is computed apart.

        Nothing else, though it could be read: Spark may not compute it for each row, and it may fail.
        """
        if self._scope.aggregate is not None and node.kind != "AggregateExpression":
            return _grouped(node, self._scope)
        if node.kind in _REFERENCES or (node.kind == "GetStructField" and _is_field(node)):
            return _read(node, replace(self._scope, foreign=None))
        return None

    def _placed(self, argument: Expr, node: Node) -> str:
        if _has_interval(argument.type):
            raise _Unfit
        if argument not in self.arguments:
            self.arguments.append(argument)
            self.origins.append(node.origin.get())
        self.placements += 1
        return placeholder(self.arguments.index(argument))


def _is_evaluated_apart(call: Call) -> bool:
    """Whether a call is no value of its own: a function as an argument, its variable, or the clock."""
    return is_lambda(call) or is_variable(call) or is_clock(call)


def _grouped(node: Node, scope: Scope) -> Expr | None:
    """A key of the groups that a node is."""
    if scope.aggregate is None:
        return None
    kinds = {type(key) for key in scope.keys}
    if node.kind != "AttributeReference" and kinds <= {Column}:
        return None
    found = _read(node, replace(scope, aggregate=None, keys=()))
    return found if found in scope.keys else None


def _read(node: Node, scope: Scope) -> Expr | None:
    if not any(one.kind in _REFERENCES for one in _all(node)):
        return None
    try:
        return read_expression(node, scope)
    except NotIncremental:
        return None


def _all(node: Node) -> Iterator[Node]:
    """A node and all nodes below it."""
    ahead = [node]
    while ahead:
        one = ahead.pop()
        yield one
        ahead += one.children


def _is_field(node: Node) -> bool:
    """Whether a node is a column, or a field of a struct that is one."""
    while node.kind == "GetStructField":
        node = node.children[0]
    return node.kind == "AttributeReference"


def _own(text: str) -> str:
    """What Spark writes, which must not look like a placeholder."""
    if f"`{MARK}" in text:
        raise _Unfit
    return text


def _type(expression: Any) -> pa.DataType:
    kind = expression.dataType()
    if " COLLATE " in str(kind.sql()):  # which is in no JSON of a struct's fields
        raise _Unfit
    return type_of(json.loads(kind.json()))


def _has_interval(kind: pa.DataType) -> bool:
    if kind in (DAY_TIME_INTERVAL, YEAR_MONTH_INTERVAL, NULL):
        return True
    return any(_has_interval(kind.field(at).type) for at in range(kind.num_fields))


def _function_name(node: Node) -> str | None:
    """What a function of a user's is called."""
    if node.kind == "PythonUDF":
        return str(node.value("name"))
    found = node.origin.get().udfName()
    return str(found.get()) if found.isDefined() else None


def _is_row_by_row(node: Node) -> bool:
    """Whether Spark would give a Python function the values of one row at a time."""
    return node.kind == "PythonUDF" and node.value("evalType") == _BATCHED


def _variable(node: Node, _: _Writing) -> str:
    return f"`{_own(node.value('name'))}_{node.value('exprId')}`"


def _higher(node: Node, writing: _Writing) -> str:
    """A function of functions, without those that Spark has put there itself."""
    given = [one for one in node.children if one.kind != "LambdaFunction" or not one.value("hidden")]
    return f"{node.origin.get().prettyName()}({', '.join(writing.text(one) for one in given)})"


def _lambda(node: Node, writing: _Writing) -> str:
    body, *variables = (writing.text(one) for one in node.children)
    taken = variables[0] if len(variables) == 1 else f"({', '.join(variables)})"
    return f"{taken} -> {body}"


def _with_schema(node: Node, writing: _Writing) -> str:
    """``from_json`` and its like, whose schema and options Spark leaves out."""
    expression = node.origin.get()
    schema = _quoted(str(expression.schema().sql()))
    given = [writing.text(node.children[0]), schema, *_options(expression)]
    return f"{expression.prettyName()}({', '.join(given)})"


def _with_options(node: Node, writing: _Writing) -> str:
    expression = node.origin.get()
    given = [writing.text(node.children[0]), *_options(expression)]
    return f"{expression.prettyName()}({', '.join(given)})"


def _options(expression: Any) -> list[str]:
    options = expression.options()
    if options.isEmpty():
        return []
    pairs = options.toSeq()
    items = [pairs.apply(at) for at in range(pairs.size())]
    return [f"map({', '.join(f'{_quoted(str(one._1()))}, {_quoted(str(one._2()))}' for one in items)})"]  # noqa: SLF001 - a pair of Scala's


def _quoted(text: str) -> str:
    escaped = _own(text).replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


def _variant_get(node: Node, writing: _Writing) -> str:
    """``variant_get``, whose type Spark leaves out."""
    child, path = (writing.text(one) for one in node.children)
    name = "variant_get" if node.value("failOnError") else "try_variant_get"
    return f"{name}({child}, {path}, {_quoted(str(node.origin.get().dataType().sql()))})"


_WRITTEN: dict[str, Callable[[Node, _Writing], str]] = {
    **dict.fromkeys(_USER_FUNCTIONS, lambda node, writing: writing.called(node)),
    "NamedLambdaVariable": _variable,
    "VariantGet": _variant_get,
    "LambdaFunction": _lambda,
    **dict.fromkeys(("JsonToStructs", "CsvToStructs", "XmlToStructs"), _with_schema),
    **dict.fromkeys(
        ("StructsToJson", "StructsToCsv", "StructsToXml", "SchemaOfJson", "SchemaOfCsv", "SchemaOfXml"), _with_options
    ),
}
