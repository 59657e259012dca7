"""Spark's resolved expressions as ours."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Protocol

import pyarrow as pa

from weirflow.errors import NotIncremental, Reason
from weirflow.sql.clock.reading import is_clock, told
from weirflow.sql.expr import Call, Column, Exists, Expr, InSubquery, Literal, OuterColumn, ScalarSubquery, SortKey
from weirflow.sql.functions.arrays import arrays_zip
from weirflow.sql.functions.collections import item, map_value
from weirflow.sql.functions.conditionals import case
from weirflow.sql.functions.dates import with_unit
from weirflow.sql.functions.json import from_json, to_json
from weirflow.sql.functions.lookup import SCALARS, scalar
from weirflow.sql.functions.modes import EvalMode, call_in, cast_in
from weirflow.sql.functions.operators import OPERATORS
from weirflow.sql.functions.times import PARTS, by_zone, formatted, parsed_in
from weirflow.sql.resolved.eval_mode import eval_mode
from weirflow.sql.resolved.functions import CHILD_ONLY, FUNCTIONS, Function
from weirflow.sql.resolved.lambdas import HIGHER_ORDER, read_higher_order, read_variable
from weirflow.sql.resolved.missing_values import at_least
from weirflow.sql.resolved.node import LeftToBinder
from weirflow.sql.resolved.types import literal, type_of
from weirflow.sql.traverse import parts
from weirflow.sql.types import BIGINT, BOOLEAN, DATE, INT, STRING, TIMESTAMP, TIMESTAMP_NTZ, array_of
from weirflow.sql.typing.coercion import explicit_cast
from weirflow.sql.zoned import UTC_ZONE, there, zone_name
from weirflow.stack import grows

if TYPE_CHECKING:
    from weirflow.sql.functions.rules import Rule
    from weirflow.sql.resolved.node import Node
    from weirflow.sql.resolved.relations import Relation

_NOT_DETERMINISTIC_NAMES = """
CurrentDate CurrentTimestamp Now LocalTimestamp CurrentTime CurrentTimeZone CurrentDatabase CurrentCatalog CurrentUser
Rand Randn RandStr Uniform Uuid Shuffle MonotonicallyIncreasingID SparkPartitionID InputFileName InputFileBlockStart
InputFileBlockLength SparkVersion AesEncrypt
"""
NOT_DETERMINISTIC = frozenset(_NOT_DETERMINISTIC_NAMES.split())
_CLOCKS = {"Now": TIMESTAMP, "CurrentTimestamp": TIMESTAMP, "CurrentDate": DATE, "LocalTimestamp": TIMESTAMP_NTZ}
_TIME_PARTS = {"Hour": "hour", "Minute": "minute", "Second": "second"}
_WITH_UNIT = {
    "TimestampAdd": ("timestampadd", ("quantity", "timestamp")),
    "TimestampDiff": ("timestampdiff", ("startTimestamp", "endTimestamp")),
}
_TRIMS = {"StringTrim": "trim", "StringTrimLeft": "ltrim", "StringTrimRight": "rtrim"}


class Foreign(Protocol):
    """Makes calls that Spark evaluates of what has no counterpart here."""

    def __call__(self, node: Node, scope: Scope) -> Expr | None:
        """Such a call for a node; None if it cannot be one."""

    def computes(self, call: Call) -> bool:
        """Whether a counterpart, with arguments of these types and these constants, is computed here."""


@dataclass(frozen=True)
class Scope:
    """What expressions may refer to.

    Attributes:
        columns: by Spark's id, the columns of the node's input.
        around: that of the query around a subquery.
        common: by their ids, expressions that are written once and used several times.
        relation: reads the plan of a subquery in this scope.
        zone: the session's time zone, where a node does not say its own.
        ansi: whether the session is in ANSI mode, likewise.
        aggregate: reads an aggregate, where there are groups.
        keys: what the rows are grouped by, where there are groups.
        foreign: for nodes that have no counterpart; without it they are refused.
        variables: by Spark's id, those of the lambdas around.
    """

    columns: Mapping[int, Column]
    relation: Callable[[Node, Scope], Relation]
    zone: str
    around: Scope | None = None
    common: Mapping[int, Expr] = field(default_factory=dict)
    aggregate: Callable[[Node], Expr] | None = None
    keys: tuple[Expr, ...] = ()
    foreign: Foreign | None = None
    ansi: bool = True
    variables: Mapping[int, Expr] = field(default_factory=dict)

    def find(self, number: int) -> Column | None:
        """The column of the node's input with this id."""
        return self.columns.get(number)

    def find_outside(self, node: Node) -> Expr:
        """A column of a query around this one."""
        number, depth, scope = node.value("exprId"), 1, self.around
        while scope is not None:
            found = scope.find(number)
            if found is not None:
                return OuterColumn(found.index, found.name, found.type, depth)
            scope, depth = scope.around, depth + 1
        raise refused(node)


@grows
def read_expression(node: Node, scope: Scope) -> Expr:
    """The same expression in ours; ``NotIncremental`` if there is none, or if the node has more to it."""
    foreign = scope.foreign
    if foreign is None:
        return _counterpart(node, scope)
    try:
        own = _counterpart(node, scope)
    except LeftToBinder:
        raise
    except NotIncremental:
        found = foreign(node, scope)
        if found is None:
            raise
        return found
    if not isinstance(own, Call) or is_clock(own) or foreign.computes(own):
        return own
    return foreign(node, scope) or own


def _counterpart(node: Node, scope: Scope) -> Expr:
    read = _READERS.get(node.kind)
    if read is not None:
        found = read(node, scope)
    elif node.kind in CHILD_ONLY:
        found = read_expression(node.children[0], scope)
        node.ignore(*CHILD_ONLY[node.kind])
    elif node.kind in FUNCTIONS:
        found = _call(node, FUNCTIONS[node.kind], scope)
    elif node.has("replacement"):  # written by its inventor in terms of others; the rest of it is how it was called
        return read_expression(node.child("replacement"), scope)
    else:
        raise refused(node)
    node.finish()
    return found


def read_all(nodes: Sequence[Node], scope: Scope) -> tuple[Expr, ...]:
    """Several expressions."""
    return tuple(read_expression(node, scope) for node in nodes)


def read_order(nodes: Sequence[Node], scope: Scope) -> tuple[SortKey, ...]:
    """The keys of an order."""
    return tuple(_sort_key(node, scope) for node in nodes)


def applied(rule: Rule, arguments: tuple[Expr, ...], node: Node) -> Expr:
    """A rule applied to arguments that Spark has cast already; refused if the rule would cast them once more."""
    made = rule(arguments, None)
    if isinstance(made, Call) and made.function != "cast":
        given = {id(one) for one in arguments}
        if any(_is_cast(one) and id(one) not in given for one in made.arguments):
            raise refused(node)
    return made


def _is_cast(expr: Expr) -> bool:
    """Whether a value may become another; a decimal that is made wider does not."""
    return (
        isinstance(expr, Call)
        and expr.function == "cast"
        and not (pa.types.is_decimal(expr.type) and pa.types.is_decimal(expr.arguments[0].type))
    )


def _sort_key(node: Node, scope: Scope) -> SortKey:
    descending = node.value("direction") == "Descending"
    key = SortKey(read_expression(node.child("child"), scope), descending, node.value("nullOrdering") == "NullsFirst")
    node.ignore("sameOrderExpressions")
    node.finish()
    return key


def _call(node: Node, function: Function, scope: Scope) -> Expr:
    arguments = read_all([node.child(name) for name in function.arguments if node.has(name)], scope)
    if function.rest is not None:
        arguments += read_all(node.children_of(function.rest), scope)
    for name, wanted in function.settings.items():
        if (zone(node) if name == "timeZoneId" else node.value(name, wanted)) != wanted:
            raise refused(node)
    node.ignore(*function.ignored)
    rule = OPERATORS.get(function.name) or scalar(function.name)
    assert rule is not None, f"{function.name} has a rule"
    made = applied(rule, arguments, node)
    return made if function.mode is None else _meant(made, eval_mode(node, function.mode), node)


def _meant(made: Expr, mode: EvalMode | None, node: Node) -> Expr:
    """A call by the rules of ANSI mode, with what it means in another."""
    found = None if mode is None else call_in(mode, made)
    if found is None:
        raise refused(node)
    return found


def _attribute(node: Node, scope: Scope) -> Expr:
    found = scope.find(node.value("exprId"))
    if found is None or found.type != type_of(node.value("dataType")):
        raise refused(node)
    node.ignore("name", "nullable", "metadata", "qualifier")
    return found


def _outer(node: Node, scope: Scope) -> Expr:
    return scope.find_outside(node.value("e"))


def _literal(node: Node, _: Scope) -> Expr:
    return literal(node.value("value"), type_of(node.value("dataType")))


def _typed_null(node: Node, scope: Scope) -> Expr:
    """NULL, of the type that its child has."""
    return literal(None, read_expression(node.child("child"), scope).type)


def _cast(node: Node, scope: Scope) -> Expr:
    inner, kind = read_expression(node.child("child"), scope), type_of(node.value("dataType"))
    if inner.type == kind:  # Spark may write it nevertheless
        node.ignore("evalMode", "timeZoneId")
        return inner
    return _cast_in(EvalMode(node.value("evalMode")), inner, kind, node)


def _cast_in(mode: EvalMode, inner: Expr, kind: pa.DataType, node: Node) -> Expr:
    """A cast, which may look at the clocks of the node's time zone."""
    made = explicit_cast(inner, kind) if mode is EvalMode.ANSI else cast_in(mode, inner, kind)
    return made if made is inner else by_clock(made, node)


def by_clock(made: Expr, node: Node) -> Expr:
    """What was made of a node as if its time zone were UTC, in its own."""
    own = zone(node)
    return there(made, own) if isinstance(made, Call) else made


def zone(node: Node) -> str:
    """The time zone of a node, by one name for all that are UTC."""
    return zone_name(node.value("timeZoneId", UTC_ZONE))


def _alias(node: Node, scope: Scope) -> Expr:
    node.ignore("name", "exprId", "qualifier", "explicitMetadata", "nonInheritableMetadataKeys")
    return read_expression(node.child("child"), scope)


def _case(node: Node, scope: Scope) -> Expr:
    branches = tuple(
        (read_expression(condition, scope), read_expression(value, scope))
        for condition, value in node.value("branches")
    )
    default = (
        read_expression(node.value("elseValue"), scope) if node.has("elseValue") else literal(None, branches[0][1].type)
    )
    return case(branches, default, None)


def _if(node: Node, scope: Scope) -> Expr:
    condition, yes, no = (read_expression(node.child(name), scope) for name in ("predicate", "trueValue", "falseValue"))
    return case(((condition, yes),), no, None)


def _with(node: Node, scope: Scope) -> Expr:
    common = dict(scope.common)
    for one in node.children_of("defs"):
        common[one.value("id")] = read_expression(one.child("child"), scope)
        one.finish()
    return read_expression(node.child("child"), replace(scope, common=common))


def _common(node: Node, scope: Scope) -> Expr:
    node.ignore("dataType", "nullable")
    return scope.common[node.value("id")]


def _scalar_subquery(node: Node, scope: Scope) -> Expr:
    plan = _subquery(node, scope)
    return ScalarSubquery(plan, plan.fields[0].type)


def _exists(node: Node, scope: Scope) -> Expr:
    return Exists(_subquery(node, scope), BOOLEAN)


def _in_subquery(node: Node, scope: Scope) -> Expr:
    query = node.child("query")
    query.ignore("numCols")
    plan = _subquery(query, scope)
    query.finish()
    return InSubquery(read_all(node.children_of("values"), scope), plan, BOOLEAN)


def _subquery(node: Node, scope: Scope) -> Any:
    if node.value("joinCond", ()):
        raise refused(node)
    node.ignore("outerAttrs", "exprId", "hint", "mayHaveCountBug", "needSingleJoin")
    return scope.relation(node.value("plan"), scope).plan


def _aggregate(node: Node, scope: Scope) -> Expr:
    if scope.aggregate is None:
        raise refused(node)
    return scope.aggregate(node)


def _struct_field(node: Node, scope: Scope) -> Expr:
    struct, index = read_expression(node.child("child"), scope), node.value("ordinal")
    node.ignore("name")
    return Call("get_struct_field", (struct, Literal(index, INT)), struct.type.field(index).type)


def _array_struct_field(node: Node, scope: Scope) -> Expr:
    array, index = read_expression(node.child("child"), scope), node.value("ordinal")
    node.ignore("field", "numFields", "containsNull")
    kind = array_of(array.type.value_type.field(index).type)
    return Call("get_array_struct_field", (array, Literal(index, INT)), kind)


def _array_item(node: Node, scope: Scope) -> Expr:
    array, index = (read_expression(node.child(name), scope) for name in ("child", "ordinal"))
    return _meant(item(array, index, None), eval_mode(node, "failOnError"), node)


def _map_value(node: Node, scope: Scope) -> Expr:
    mapping, key = (read_expression(node.child(name), scope) for name in ("child", "key"))
    if key.type != mapping.type.key_type:
        raise refused(node)
    return map_value(mapping, key, None)


def _higher_order(node: Node, scope: Scope) -> Expr:
    found = read_higher_order(node, scope, read_expression)
    if found is None:
        raise refused(node)
    return found


def _variable(node: Node, scope: Scope) -> Expr:
    found = read_variable(node, scope)
    if found is None:
        raise refused(node)
    return found


def _arrays_zip(node: Node, scope: Scope) -> Expr:
    names = tuple(one.value("value") for one in node.value("names", ()))
    if not all(isinstance(name, str) for name in names):
        raise refused(node)
    return arrays_zip(names, read_all(node.children_of("children"), scope))


def _sequence(node: Node, scope: Scope) -> Expr:
    given = read_all([node.child(name) for name in ("start", "stop", "stepOpt") if node.has(name)], scope)
    made = SCALARS["sequence"](given, None)
    return by_clock(made, node)


def _trim(node: Node, scope: Scope) -> Expr:
    parts = [read_expression(node.child("srcStr"), scope)]
    if node.has("trimStr"):
        parts.append(read_expression(node.child("trimStr"), scope))
    return Call(_TRIMS[node.kind], tuple(parts), STRING)


def _parsed(node: Node, scope: Scope) -> Expr:
    """``to_date`` and ``to_timestamp``, which without a format are casts."""
    mode = eval_mode(node, "ansiEnabled" if node.kind == "ParseToDate" else "failOnError")
    kind = DATE if node.kind == "ParseToDate" else type_of(node.value("dataType"))
    if mode is None:
        raise refused(node)
    text = read_expression(node.child("left"), scope)
    if not node.has("format"):
        return _cast_in(mode, text, kind, node)
    read = TIMESTAMP if kind == DATE else kind
    if text.type != STRING:
        raise refused(node)
    made = parsed_in(node.kind, (text, read_expression(node.child("format"), scope)), read, None)
    moment = by_clock(_meant(made, mode, node), node)
    return moment if kind == read else _cast_in(mode, moment, kind, node)


def _formatted(node: Node, scope: Scope) -> Expr:
    """``date_format`` and ``from_unixtime``."""
    names = ("left", "right") if node.kind == "DateFormatClass" else ("sec", "format")
    value, pattern = (read_expression(node.child(name), scope) for name in names)
    return by_clock(formatted(value, pattern, None), node)


def _unix_time(node: Node, scope: Scope) -> Expr:
    """``unix_timestamp`` of what it is given."""
    mode, value = eval_mode(node, "failOnError"), read_expression(node.child("timeExp"), scope)
    pattern = read_expression(node.child("format"), scope)
    if value.type == STRING:
        value = by_clock(_meant(parsed_in(node.kind, (value, pattern), TIMESTAMP, None), mode, node), node)
    elif value.type == DATE:
        value = _cast_in(EvalMode.ANSI, value, TIMESTAMP, node)
    elif value.type != TIMESTAMP:
        raise refused(node)
    else:
        zone(node)
    return Call("truncated_seconds", (value,), BIGINT)


def _json(node: Node, scope: Scope) -> Expr:
    """``from_json`` and ``to_json``."""
    value, options = read_expression(node.child("child"), scope), node.value("options") or None
    if node.kind == "StructsToJson":
        return by_clock(to_json(value, options), node)
    node.ignore("variantAllowDuplicateKeys")
    return by_clock(from_json(value, type_of(node.value("schema")), options), node)


def _json_schema(node: Node, scope: Scope) -> Expr:
    """``schema_of_json`` without options; what it is of is a constant."""
    if node.value("options"):
        raise refused(node)
    return applied(SCALARS["schema_of_json"], (read_expression(node.child("child"), scope),), node)


def _made_time(node: Node, scope: Scope) -> Expr:
    """``make_timestamp`` and its like."""
    given = read_all([node.child(name) for name in ("year", "month", "day", "hour", "min", "sec")], scope)
    kind, mode = type_of(node.value("dataType")), eval_mode(node, "failOnError")
    if node.has("timezone"):
        zone(node)
        made = _meant(Call("make_timestamp", given, TIMESTAMP_NTZ), mode, node)
        return by_zone("utc_time", made, read_expression(node.child("timezone"), scope), TIMESTAMP, None)
    return by_clock(_meant(Call("make_timestamp", given, kind), mode, node), node)


def _months_between(node: Node, scope: Scope) -> Expr:
    given = read_all([node.child(name) for name in ("date1", "date2", "roundOff")], scope)
    return by_clock(SCALARS["months_between"](given, None), node)


def _part(node: Node, scope: Scope) -> Expr:
    name = "second_with_fraction" if node.kind == "SecondWithFraction" else "year_of_week"
    return by_clock(PARTS[name]((read_expression(node.child("child"), scope),), None), node)


def _attempt(node: Node, scope: Scope) -> Expr:
    """``TryEval``: NULL where what is inside raises, whatever that is; so it must raise just where Spark does."""
    inner = read_expression(node.child("child"), scope)
    if any(
        isinstance(part, Call) and part.type == TIMESTAMP and part.arguments[0].type == STRING for part in parts(inner)
    ):
        raise refused(node)  # texts with the names of zones are read by Spark alone
    return Call("try", (inner,), inner.type)


def _window(node: Node, _: Scope) -> Expr:
    """Part of ``window`` or ``session_window``: whether sessions are merged is in no field of the plan."""
    raise LeftToBinder(f"{node.shown} is read from the text.", reason=Reason.OPERATOR_NOT_INCREMENTALIZABLE)


def _time_part(node: Node, scope: Scope) -> Expr:
    return by_clock(Call(_TIME_PARTS[node.kind], (read_expression(node.child("child"), scope),), INT), node)


def _truncated(node: Node, scope: Scope) -> Expr:
    unit, moment = (read_expression(node.child(name), scope) for name in ("format", "timestamp"))
    return by_clock(Call("date_trunc", (unit, moment), TIMESTAMP), node)


def _whole_days(node: Node, scope: Scope) -> Expr:
    """The days of a constant interval, which is what Spark adds to a date."""
    interval = read_expression(node.child("child"), scope)
    if not isinstance(interval, Literal) or not isinstance(interval.value, timedelta):
        raise refused(node)
    return Literal(interval.value // timedelta(days=1), INT)


def _added_interval(node: Node, scope: Scope) -> Expr:
    start, interval = (read_expression(node.child(name), scope) for name in ("start", "interval"))
    return by_clock(OPERATORS["add"]((start, interval), None), node)


def _added_months(node: Node, scope: Scope) -> Expr:
    start, interval = (
        read_expression(node.child(name), scope)
        for name in (("date", "interval") if node.kind == "DateAddYMInterval" else ("timestamp", "interval"))
    )
    return by_clock(OPERATORS["add"]((start, interval), None), node)


def _time_between(node: Node, scope: Scope) -> Expr:
    left, right = (read_expression(node.child(name), scope) for name in ("left", "right"))
    if node.value("legacyInterval", False) or left.type != right.type:  # noqa: FBT003 - what Spark means if it says nothing
        raise refused(node)
    return by_clock(OPERATORS["subtract"]((left, right), None), node)


def _with_unit(node: Node, scope: Scope) -> Expr:
    """``timestampadd`` and ``timestampdiff``."""
    function, names = _WITH_UNIT[node.kind]
    given = read_all([node.child(name) for name in names], scope)
    return by_clock(with_unit(function, node.value("unit"), given, None), node)


def refused(node: Node) -> NotIncremental:
    """The refusal of a node that has no counterpart, or has it only with other settings."""
    if node.kind in NOT_DETERMINISTIC:
        return NotIncremental(
            f"{node.shown} gives the same rows another result each time.",
            reason=Reason.EXPRESSION_NOT_DETERMINISTIC,
        )
    return NotIncremental(f"{node.shown} is not proven equal to Spark's.", reason=Reason.FUNCTION_NOT_PROVEN)


def _clock(node: Node, _: Scope) -> Expr:
    return by_clock(told(_CLOCKS[node.kind]), node)


def _at_least(node: Node, scope: Scope) -> Expr:
    found = at_least(node.value("n"), read_all(node.children_of("children"), scope))
    if found is None:
        raise refused(node)
    return found


_READERS: dict[str, Callable[[Node, Scope], Expr]] = {
    **dict.fromkeys(_CLOCKS, _clock),
    "AggregateExpression": _aggregate,
    "AtLeastNNonNulls": _at_least,
    "AttributeReference": _attribute,
    "OuterReference": _outer,
    "Literal": _literal,
    "TypedNullLiteral": _typed_null,
    "Cast": _cast,
    "Alias": _alias,
    "CaseWhen": _case,
    "If": _if,
    "With": _with,
    "CommonExpressionRef": _common,
    "ScalarSubquery": _scalar_subquery,
    "Exists": _exists,
    "InSubquery": _in_subquery,
    "ExtractANSIIntervalDays": _whole_days,
    "PreciseTimestampConversion": _window,
    "Hour": _time_part,
    "Minute": _time_part,
    "Second": _time_part,
    "TruncTimestamp": _truncated,
    "GetStructField": _struct_field,
    "GetArrayStructFields": _array_struct_field,
    "GetArrayItem": _array_item,
    "TryEval": _attempt,
    "GetMapValue": _map_value,
    **dict.fromkeys(HIGHER_ORDER, _higher_order),
    "NamedLambdaVariable": _variable,
    "ArraysZip": _arrays_zip,
    "Sequence": _sequence,
    "StringTrim": _trim,
    "StringTrimLeft": _trim,
    "StringTrimRight": _trim,
    "ParseToDate": _parsed,
    "ParseToTimestamp": _parsed,
    "TimestampAddInterval": _added_interval,
    "TimeAdd": _added_interval,
    "DateAddYMInterval": _added_months,
    "TimestampAddYMInterval": _added_months,
    "SubtractDates": _time_between,
    "SubtractTimestamps": _time_between,
    "JsonToStructs": _json,
    "StructsToJson": _json,
    "SchemaOfJson": _json_schema,
    "DateFormatClass": _formatted,
    "FromUnixTime": _formatted,
    "UnixTimestamp": _unix_time,
    "ToUnixTimestamp": _unix_time,
    "MakeTimestamp": _made_time,
    "MonthsBetween": _months_between,
    "SecondWithFraction": _part,
    "YearOfWeek": _part,
    "TimestampAdd": _with_unit,
    "TimestampDiff": _with_unit,
}
