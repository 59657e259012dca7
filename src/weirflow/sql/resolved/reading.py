"""Spark's resolved expressions as ours."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Protocol

import pyarrow as pa

from weirflow.sql.expr import Call, Column, Exists, Expr, InSubquery, Literal, OuterColumn, ScalarSubquery, SortKey
from weirflow.sql.functions.collections import item, map_value
from weirflow.sql.functions.conditionals import case
from weirflow.sql.functions.lookup import scalar
from weirflow.sql.functions.operators import OPERATORS
from weirflow.sql.refusal import NotIncremental, Reason
from weirflow.sql.resolved.functions import CHILD_ONLY, FUNCTIONS, UTC, Function
from weirflow.sql.resolved.node import LeftToBinder
from weirflow.sql.resolved.types import literal, type_of
from weirflow.sql.types import BOOLEAN, DATE, INT, STRING, TIMESTAMP, TIMESTAMP_NTZ, array_of, is_numeric
from weirflow.sql.typing.coercion import cast, explicit_cast
from weirflow.stack import grows

if TYPE_CHECKING:
    from weirflow.sql.functions.rules import Rule
    from weirflow.sql.resolved.node import Node
    from weirflow.sql.resolved.relations import Relation

ANSI = "ANSI"
_UTC_NAMES = frozenset({"UTC", "Etc/UTC", "Z", "GMT", "Etc/GMT", "+00:00", "UCT", "Etc/UCT", "Zulu", "Etc/Zulu"})
_NOT_DETERMINISTIC_NAMES = """
CurrentDate CurrentTimestamp Now LocalTimestamp CurrentTime CurrentTimeZone CurrentDatabase CurrentCatalog CurrentUser
Rand Randn RandStr Uniform Uuid Shuffle MonotonicallyIncreasingID SparkPartitionID InputFileName InputFileBlockStart
InputFileBlockLength SparkVersion AesEncrypt
"""
NOT_DETERMINISTIC = frozenset(_NOT_DETERMINISTIC_NAMES.split())
_TIME_PARTS = {"Hour": "hour", "Minute": "minute", "Second": "second"}
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
        aggregate: reads an aggregate, where there are groups.
        keys: what the rows are grouped by, where there are groups.
        foreign: for nodes that have no counterpart; without it they are refused.
    """

    columns: Mapping[int, Column]
    relation: Callable[[Node, Scope], Relation]
    zone: str
    around: Scope | None = None
    common: Mapping[int, Expr] = field(default_factory=dict)
    aggregate: Callable[[Node], Expr] | None = None
    keys: tuple[Expr, ...] = ()
    foreign: Foreign | None = None

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
    return own if not isinstance(own, Call) or foreign.computes(own) else foreign(node, scope) or own


def _counterpart(node: Node, scope: Scope) -> Expr:
    read = _READERS.get(node.kind)
    if read is not None:
        found = read(node, scope)
    elif node.kind in CHILD_ONLY:
        found = read_expression(node.children[0], scope)
        node.ignore(*CHILD_ONLY[node.kind])
    elif node.has("replacement"):  # written by its inventor in terms of others; the rest of it is how it was called
        return read_expression(node.child("replacement"), scope)
    elif node.kind in FUNCTIONS:
        found = _call(node, FUNCTIONS[node.kind], scope)
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
    return applied(rule, arguments, node)


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


def _cast(node: Node, scope: Scope) -> Expr:
    inner, kind = read_expression(node.child("child"), scope), type_of(node.value("dataType"))
    if inner.type == kind:  # Spark may write it nevertheless
        node.ignore("evalMode", "timeZoneId")
        return inner
    mode, there = node.value("evalMode"), zone(node)
    if mode == "TRY" and (there == UTC or not _is_local(inner.type, kind)):
        return Call("try_cast", (inner,), kind)
    if mode != ANSI:
        raise refused(node)
    return explicit_cast(inner, kind) if there == UTC else _cast_there(inner, kind, there, node)


def _cast_there(inner: Expr, kind: pa.DataType, there: str, node: Node) -> Expr:
    """A cast that may look at the clock of a time zone."""
    if inner.type == TIMESTAMP and kind in (DATE, STRING, TIMESTAMP_NTZ):
        return cast(local_time(inner, there), kind)
    if kind == TIMESTAMP and inner.type in (DATE, TIMESTAMP_NTZ, STRING):
        return Call("utc_time", (inner, Literal(there, STRING)), TIMESTAMP)
    if _is_local(inner.type, kind) and not (is_numeric(inner.type) or is_numeric(kind)):
        raise refused(node)
    return explicit_cast(inner, kind)


def local_time(moment: Expr, there: str) -> Expr:
    """What a clock of a time zone shows."""
    return Call("local_time", (moment, Literal(there, STRING)), TIMESTAMP_NTZ)


def zone(node: Node) -> str:
    """The time zone of a node, by one name for all that are UTC."""
    found: str = node.value("timeZoneId", UTC)
    return UTC if is_utc(found) else found


def is_utc(name: str) -> bool:
    """Whether a time zone of this name is UTC."""
    return name in _UTC_NAMES


def _is_local(*kinds: pa.DataType) -> bool:
    """Whether a cast between these looks at the clock of a zone."""
    return any(_has(kind, TIMESTAMP) for kind in kinds)


def _has(kind: pa.DataType, wanted: pa.DataType) -> bool:
    return kind == wanted or any(_has(kind.field(index).type, wanted) for index in range(kind.num_fields))


def _alias(node: Node, scope: Scope) -> Expr:
    node.ignore("name", "exprId", "qualifier", "explicitMetadata", "nonInheritableMetadataKeys")
    return read_expression(node.child("child"), scope)


def _typed_null(node: Node, scope: Scope) -> Expr:
    """NULL, of the type of what it is written with: what ``nullif`` gives for equal values."""
    return literal(None, read_expression(node.child("child"), scope).type)


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
    if not node.value("failOnError"):
        raise refused(node)
    return item(read_expression(node.child("child"), scope), read_expression(node.child("ordinal"), scope), None)


def _map_value(node: Node, scope: Scope) -> Expr:
    mapping, key = (read_expression(node.child(name), scope) for name in ("child", "key"))
    if key.type != mapping.type.key_type:
        raise refused(node)
    return map_value(mapping, key, None)


def _trim(node: Node, scope: Scope) -> Expr:
    parts = [read_expression(node.child("srcStr"), scope)]
    if node.has("trimStr"):
        trimmed = node.value("trimStr")
        parts.append(read_expression(node.children[trimmed] if isinstance(trimmed, int) else trimmed, scope))
    return Call(_TRIMS[node.kind], tuple(parts), STRING)


def _parsed(node: Node, scope: Scope) -> Expr:
    """``to_date`` and ``to_timestamp``, which without a format are casts."""
    strict = node.value("ansiEnabled") if node.kind == "ParseToDate" else node.value("failOnError")
    kind = DATE if node.kind == "ParseToDate" else type_of(node.value("dataType"))
    if not strict or node.has("format"):
        raise refused(node)
    inner, there = read_expression(node.child("left"), scope), zone(node)
    return explicit_cast(inner, kind) if there == UTC else _cast_there(inner, kind, there, node)


def _window(node: Node, _: Scope) -> Expr:
    """Part of ``window`` or ``session_window``: whether sessions are merged is in no field of the plan."""
    raise LeftToBinder(f"{node.shown} is read from the text.", reason=Reason.OPERATOR_NOT_INCREMENTALIZABLE)


def _time_part(node: Node, scope: Scope) -> Expr:
    moment, there = read_expression(node.child("child"), scope), zone(node)
    shown = local_time(moment, there) if moment.type == TIMESTAMP and there != UTC else moment
    return Call(_TIME_PARTS[node.kind], (shown,), INT)


def _truncated(node: Node, scope: Scope) -> Expr:
    unit, moment = (read_expression(node.child(name), scope) for name in ("format", "timestamp"))
    there = zone(node)
    if there == UTC:
        return Call("date_trunc", (unit, moment), TIMESTAMP)
    return Call("local_trunc", (unit, moment, Literal(there, STRING)), TIMESTAMP)


def _whole_days(node: Node, scope: Scope) -> Expr:
    """The days of a constant interval, which is what Spark adds to a date."""
    interval = read_expression(node.child("child"), scope)
    if not isinstance(interval, Literal) or not isinstance(interval.value, timedelta):
        raise refused(node)
    return Literal(interval.value // timedelta(days=1), INT)


def _added_interval(node: Node, scope: Scope) -> Expr:
    start, interval = (read_expression(node.child(name), scope) for name in ("start", "interval"))
    if zone(node) != UTC and start.type == TIMESTAMP and not is_below_a_day(interval):
        raise refused(node)
    return OPERATORS["add"]((start, interval), None)


def is_below_a_day(interval: Expr) -> bool:
    """Whether an interval is a constant of which no part is counted in days, which clocks make longer and shorter."""
    if isinstance(interval, Call) and interval.function == "negate":
        return is_below_a_day(interval.arguments[0])
    value = interval.value if isinstance(interval, Literal) else None
    return isinstance(value, timedelta) and abs(value) < timedelta(days=1)


def _added_months(node: Node, scope: Scope) -> Expr:
    start, interval = (
        read_expression(node.child(name), scope)
        for name in (("date", "interval") if node.kind == "DateAddYMInterval" else ("timestamp", "interval"))
    )
    if node.has("timeZoneId") and zone(node) != UTC and start.type == TIMESTAMP:
        raise refused(node)
    return OPERATORS["add"]((start, interval), None)


def _time_between(node: Node, scope: Scope) -> Expr:
    left, right = (read_expression(node.child(name), scope) for name in ("left", "right"))
    if node.value("legacyInterval", False) or (node.has("timeZoneId") and zone(node) != UTC and left.type == TIMESTAMP):  # noqa: FBT003 - what Spark means if it says nothing
        raise refused(node)
    if left.type != right.type:
        raise refused(node)
    return OPERATORS["subtract"]((left, right), None)


def refused(node: Node) -> NotIncremental:
    """The refusal of a node that has no counterpart, or has it only with other settings."""
    if node.kind in NOT_DETERMINISTIC:
        return NotIncremental(
            f"{node.shown} gives the same rows another result each time.",
            reason=Reason.EXPRESSION_NOT_DETERMINISTIC,
        )
    return NotIncremental(f"{node.shown} is not proven equal to Spark's.", reason=Reason.FUNCTION_NOT_PROVEN)


_READERS: dict[str, Callable[[Node, Scope], Expr]] = {
    "AggregateExpression": _aggregate,
    "AttributeReference": _attribute,
    "OuterReference": _outer,
    "Literal": _literal,
    "Cast": _cast,
    "Alias": _alias,
    "TypedNullLiteral": _typed_null,
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
    "GetMapValue": _map_value,
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
}
