"""Nothing in a syntax tree is passed over: what no binder reads is refused before any of them looks.

sqlglot reads the SQL of many databases and keeps what it found in the arguments of its nodes; a new release may add
some. Each kind of node is listed here with the arguments that are read, so that one nobody has heard of is an error,
not a wrong answer.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sqlglot import exp

from weirflow.errors import NotIncremental, Reason, SqlSyntaxError
from weirflow.sql.syntax.clauses import PipeQuery, PipeStep

if TYPE_CHECKING:
    from collections.abc import Iterator

    from weirflow.errors import SqlPosition
    from weirflow.sql.syntax.positions import TextPositions

_QUERY = "with_ order limit offset"
_PAIR = "this expression"
_READ: dict[type[exp.Expr], str] = {
    exp.Select: f"{_QUERY} expressions distinct from_ joins laterals where group having windows hint",
    exp.Subquery: f"{_QUERY} this alias joins laterals pivots",
    PipeQuery: f"{_QUERY} this steps",
    PipeStep: "kind this expressions keys",
    exp.Pivot: "expressions fields unpivot include_nulls alias",
    exp.Values: "expressions alias pivots",
    exp.With: "expressions recursive",
    exp.CTE: "this alias",
    exp.TableAlias: "this columns",
    exp.From: "this",
    exp.Table: "this alias db catalog joins laterals pivots",
    exp.Lateral: "this view outer alias",
    exp.Join: "this on side kind using method pivots",
    exp.Where: "this",
    exp.Having: "this",
    exp.Group: "expressions grouping_sets cube rollup all",
    exp.Order: "expressions",
    exp.Ordered: "this desc nulls_first",
    exp.Limit: "expression",
    exp.Offset: "expression",
    exp.Distinct: "expressions",
    exp.Hint: "expressions",
    exp.Alias: "this alias",
    exp.Aliases: "this expressions",
    exp.Star: "except_",
    exp.Column: "this table db catalog",
    exp.Identifier: "this quoted",
    exp.Literal: "this is_string",
    exp.RawString: "this",
    exp.HexString: "this",
    exp.Boolean: "this",
    exp.Var: "this",
    exp.Interval: "this unit fraction_in_string",
    exp.Cast: "this to",
    exp.TryCast: "this to safe",
    exp.DataType: "this expressions nested",
    exp.DataTypeParam: "this",
    exp.ColumnDef: "this kind",
    exp.Anonymous: "this expressions",
    exp.Window: "this partition_by order spec alias over",
    exp.WindowSpec: "kind start start_side end end_side",
    exp.Bracket: "this expressions",
    exp.Case: "this ifs default",
    exp.If: "this true",
    exp.In: "this expressions query",
    exp.Between: "this low high",
    exp.Like: f"{_PAIR} negate",
    exp.ILike: f"{_PAIR} negate",
    exp.Trim: f"{_PAIR} position",
    exp.Substring: "this start length",
    exp.StrPosition: "this substr position",
    exp.Overlay: "this expression from_ for_",
    exp.Concat: "expressions",
    exp.Lambda: "this expressions",
    exp.Null: "",
}
_ALIKE = {
    f"{_QUERY} {_PAIR} distinct": "Union Intersect Except",
    "expressions": "Rollup Cube GroupingSets Tuple",
    "this": "Paren Not Neg BitwiseNot Any All Exists IgnoreNulls RespectNulls",
    _PAIR: """
    Add Sub Mul Div Mod IntDiv DPipe EQ NEQ LT LTE GT GTE NullSafeEQ NullSafeNEQ And Or BitwiseAnd BitwiseOr BitwiseXor
    RegexpLike Is Escape Dot Extract IntervalSpan Filter WithinGroup
    """,
}
_READ.update({getattr(exp, name): parts for parts, names in _ALIKE.items() for name in names.split()})
_CLAUSES = {
    "joins": "JOIN",
    "laterals": "LATERAL VIEW",
    "where": "WHERE",
    "group": "GROUP BY",
    "having": "HAVING",
    "windows": "WINDOW",
    "order": "ORDER BY",
    "limit": "LIMIT",
    "offset": "OFFSET",
}
"""In the order in which they are written."""
_PARTS = {kind: frozenset(parts.split()) for kind, parts in _READ.items()}

_SHAPES: dict[tuple[type[exp.Expr], str], tuple[type[exp.Expr], ...]] = {
    (exp.Alias, "alias"): (exp.Identifier,),
    (exp.Aliases, "expressions"): (exp.Identifier,),
    (exp.TableAlias, "this"): (exp.Identifier,),
    (exp.TableAlias, "columns"): (exp.Identifier,),
    (exp.Window, "alias"): (exp.Identifier,),
    (exp.Join, "using"): (exp.Identifier,),
    (exp.Column, "table"): (exp.Identifier,),
    (exp.Select, "limit"): (exp.Limit,),
    (exp.Subquery, "limit"): (exp.Limit,),
    (exp.SetOperation, "limit"): (exp.Limit,),
    (exp.Extract, "this"): (exp.Var,),
    (exp.Star, "except_"): (exp.Identifier, exp.Column),
}
"""Arguments of which only the name is read, or which could be something else than what they are read as."""

_CALLS = (exp.Anonymous, exp.Distinct, exp.Bracket)
"""What is inside of these is read by its kind, one by one."""

_WORDS: dict[str, str] = {
    "qualify": "QUALIFY, which is not in Spark SQL (filter in a query around this one),",
    "sort": "SORT BY, which orders rows inside partitions,",
    "cluster": "CLUSTER BY, which distributes rows,",
    "distribute": "DISTRIBUTE BY, which distributes rows,",
    "match": "MATCH_RECOGNIZE",
    "connect": "CONNECT BY, which is not in Spark SQL (use WITH RECURSIVE),",
    "select kind": "SELECT AS STRUCT or VALUE, which is not in Spark SQL,",
    "into": "SELECT INTO, which is not a query,",
    "sample": "TABLESAMPLE",
    "locks": "FOR UPDATE, which is not in Spark SQL,",
    "prewhere": "PREWHERE, which is not in Spark SQL,",
    "operation_modifiers": "This word after SELECT",
    "exclude": "EXCLUDE, which is not in Spark SQL (use EXCEPT),",
    "limit_options": "PERCENT, ROWS or WITH TIES after LIMIT, which is not in Spark SQL,",
    "limit offset": "LIMIT with two numbers, which is not in Spark SQL (use OFFSET),",
    "by_name": "UNION BY NAME",
    "totals": "WITH TOTALS, which is not in Spark SQL,",
    "distinct on": "DISTINCT ON, which is not in Spark SQL,",
    "with_fill": "WITH FILL, which is not in Spark SQL,",
    "replace": "REPLACE after *",
    "rename": "RENAME after *",
    "ilike": "ILIKE after *",
    "except_": "EXCEPT with anything but names of columns",
    "version": "VERSION or TIMESTAMP AS OF",
    "system_time": "Time travel",
    "when": "Time travel",
    "changes": "Time travel",
    "only": "ONLY before a table, which is not in Spark SQL,",
    "hints": "A hint after a table, which is not in Spark SQL,",
    "hint": "A hint inside a join, which is not in Spark SQL,",
    "partition": "PARTITION after a table",
    "match_condition": "MATCH_CONDITION, which is not in Spark SQL,",
    "using": "USING with anything but names of columns",
    "materialized": "MATERIALIZED, which is not in Spark SQL,",
    "search": "SEARCH after a recursive CTE, which is not in Spark SQL,",
    "cycle": "CYCLE after a recursive CTE, which is not in Spark SQL,",
    "collate": "COLLATE",
    "collation": "COLLATE",
    "format": "FORMAT",
    "windowspec exclude": "EXCLUDE in a window frame, which is not in Spark SQL,",
    "symmetric": "SYMMETRIC, which is not in Spark SQL,",
    "field": "IN without parentheses, which is not in Spark SQL,",
    "unnest": "UNNEST, which is not in Spark SQL,",
    "join_mark": "(+) as a join, which is not in Spark SQL,",
    "siblings": "ORDER SIBLINGS BY, which is not in Spark SQL,",
    "ordinality": "WITH ORDINALITY, which is not in Spark SQL,",
    "cross_apply": "APPLY, which is not in Spark SQL,",
    "alias": "This alias",
}
_ANYTHING = "What is written here"
_NAMES: dict[type[exp.Expr], str] = {
    exp.Fetch: "FETCH, which is not in Spark SQL (use LIMIT),",
    exp.Lambda: "A lambda",
    exp.Slice: "A slice",
    exp.Collate: "COLLATE",
    exp.Kwarg: "An argument by name",
    exp.PropertyEQ: "An assignment",
    exp.Placeholder: "A parameter marker",
    exp.Parameter: "A parameter marker",
    exp.SessionParameter: "A parameter marker",
    exp.JSONExtract: "-> or :",
    exp.JSONExtractScalar: "->>",
    exp.Unnest: "UNNEST, which is not in Spark SQL,",
    exp.Lateral: "LATERAL",
    exp.HavingMax: "HAVING inside a call, which is not in Spark SQL,",
    exp.Star: "* in this place",
    exp.Any: "ANY in this place",
    exp.All: "ALL in this place",
    exp.Tuple: "This list",
    exp.Var: "This word",
    exp.Order: "ORDER BY inside a call",
    exp.Limit: "LIMIT inside a call",
    exp.Describe: "DESCRIBE",
    exp.Summarize: "SUMMARIZE",
    exp.DataType: "A type in this place",
    exp.QueryTransform: "TRANSFORM",
}


def refusal(node: exp.Expr, position: SqlPosition | None) -> NotIncremental:
    """The error for a construct that has no meaning in an incremental view."""
    return _refusal(_NAMES.get(type(node), _ANYTHING), position)


def check_syntax(tree: exp.Expr, positions: TextPositions) -> None:
    """``NotIncremental`` where the tree has a part that no binder reads.

    Expressions of unknown kinds are left to the binder of expressions, which refuses them by their kind.
    """
    for node in tree.walk():
        if isinstance(node, exp.Query):
            _check_order(node, positions)
        known = _PARTS.get(type(node))
        if known is None:
            if not isinstance(node, exp.Condition) and not isinstance(node.parent, _CALLS):
                raise refusal(node, positions.of(node))
            continue
        for part, value in node.args.items():
            if not _is_set(value) and part != "materialized":
                continue
            if value is not None and (part not in known or not _has_shape(node, part, value)):
                place = next((positions.of(one) for one in _nodes(value)), None)
                raise _refusal(_words(node, part), place or positions.of(node))


def _refusal(words: str, position: SqlPosition | None) -> NotIncremental:
    return NotIncremental(
        f"{words} is not supported in an incremental view.",
        reason=Reason.OPERATOR_NOT_INCREMENTALIZABLE,
        hint="leave it out, or run the query on Spark",
        position=position,
    )


def _check_order(query: exp.Query, positions: TextPositions) -> None:
    """Clauses come in one order only; those of a whole UNION come after its last query."""
    before: SqlPosition | None = None
    for part, name in _CLAUSES.items():
        for clause in _nodes(query.args.get(part)):
            place = positions.of(clause)
            if before is not None and place is not None and (place.line, place.column) < (before.line, before.column):
                raise SqlSyntaxError(f"{name} is in the wrong place.", position=place)
            before = place or before
    left = query.this if isinstance(query, exp.SetOperation) else None
    if isinstance(left, exp.Select) and any(left.args.get(part) for part in ("order", "limit", "offset")):
        raise SqlSyntaxError(
            "ORDER BY, LIMIT and OFFSET come after the last query of a set operation.",
            hint="put the query they belong to in parentheses",
            position=positions.of(left),
        )


def _words(node: exp.Expr, part: str) -> str:
    if part in ("this", "expressions"):
        return _NAMES.get(type(node), _ANYTHING)
    return _WORDS.get(f"{node.key} {part}") or _WORDS.get(part, _ANYTHING)


def _is_set(value: Any) -> bool:
    return value is not None and value is not False and value != []


def _has_shape(node: exp.Expr, part: str, value: Any) -> bool:
    shape = _SHAPES.get((type(node), part)) or (
        _SHAPES.get((exp.SetOperation, part)) if isinstance(node, exp.SetOperation) else None
    )
    return shape is None or all(isinstance(one, shape) for one in _nodes(value))


def _nodes(value: Any) -> Iterator[exp.Expr]:
    yield from (one for one in (value if isinstance(value, list) else [value]) if isinstance(one, exp.Expr))
