"""Spark SQL text to sqlglot's syntax tree, with every function call as it was written.

sqlglot knows many functions by many names and rewrites them while it parses (``nvl`` becomes ``COALESCE``, ``date_sub``
an addition). Names and argument rules are ours (``weirflow.sql.functions``), so those rewrites are switched off.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from sqlglot import exp
from sqlglot.dialects.spark import Spark
from sqlglot.errors import ParseError, SqlglotError
from sqlglot.parsers.spark import SparkParser
from sqlglot.tokenizer_core import Token, TokenType

from weirflow.errors import SqlSyntaxError
from weirflow.sql.operators import SparkOperators
from weirflow.sql.limits import check_text, check_tokens, check_tree, out_of_room
from weirflow.sql.positions import TextPositions
from weirflow.sql.statements.composed import position_at
from weirflow.stack import grows

NUMBER_SUFFIXES = frozenset({"Y", "S", "L", "F", "D", "BD"})
_KEYWORD_SYNTAX = ("CAST", "TRY_CAST", "EXTRACT", "OVERLAY", "POSITION", "SUBSTRING", "TRIM")
_CALLABLE_KEYWORDS = (TokenType.WINDOW, TokenType.CURRENT_DATE, TokenType.CURRENT_TIMESTAMP)


def _typed_literal(parser: SparkParser, text: exp.Expr, kind: exp.DataType) -> exp.Expr:
    """``DATE '2020-01-01'``: a cast that remembers it was written as a literal."""
    literal = parser.expression(exp.Cast(this=text, to=kind))
    literal.meta["typed_literal"] = True
    return literal


class _PlainCalls(SparkOperators):
    """Spark's grammar; a call stays ``exp.Anonymous`` unless it has a syntax of its own (CAST, EXTRACT, ...)."""

    FUNCTIONS: ClassVar[dict[str, Callable[..., exp.Expr]]] = {}
    FUNCTION_PARSERS: ClassVar[dict[str, Callable[..., exp.Expr]]] = {
        name: SparkParser.FUNCTION_PARSERS[name] for name in _KEYWORD_SYNTAX
    }
    TYPE_LITERAL_PARSERS: ClassVar[dict[exp.DType, Callable[..., exp.Expr]]] = dict.fromkeys(
        (exp.DType.DATE, exp.DType.TIMESTAMP, exp.DType.TIMESTAMPTZ, exp.DType.TIMESTAMPLTZ, exp.DType.TIMESTAMPNTZ),
        _typed_literal,
    )
    STRICT_CAST = True
    NO_PAREN_FUNCTION_PARSERS: ClassVar[dict[str, Callable[..., exp.Expr]]] = {
        "CASE": SparkParser.NO_PAREN_FUNCTION_PARSERS["CASE"],
    }

    # Whatever is nested in a query passes one of these on the way down.

    @grows
    def _parse_statement(self) -> exp.Expr | None:
        return super()._parse_statement()

    @grows
    def _parse_unary(self) -> exp.Expr | None:
        return super()._parse_unary()

    @grows
    def _parse_select(self, *args: Any, **kwargs: Any) -> exp.Expr | None:
        return super()._parse_select(*args, **kwargs)

    @grows
    def _parse_table(self, *args: Any, **kwargs: Any) -> exp.Expr | None:
        return super()._parse_table(*args, **kwargs)

    @grows
    def _parse_types(self, *args: Any, **kwargs: Any) -> exp.Expr | None:
        return super()._parse_types(*args, **kwargs)

    def build_cast(self, strict: bool, **kwargs: Any) -> exp.Expr:  # noqa: FBT001 - sqlglot's signature
        """Marks the casts that stand for a literal's suffix, as in ``1L`` or ``1.5BD``."""
        number = kwargs["this"]
        suffix = self._prev.text.upper()
        is_suffix = isinstance(number, exp.Literal) and not number.is_string and suffix in NUMBER_SUFFIXES
        cast = super().build_cast(strict, **kwargs)
        if is_suffix:
            cast.meta["suffix"] = suffix
            cast.meta["digits"] = number.name
        return cast


class _Dialect(Spark):
    """Spark with plain calls; used here only."""

    Parser = _PlainCalls


_DIALECT = _Dialect()


_kept: dict[str, exp.Query] = {}
"""The query that was read last, for whoever reads it next; nobody has it then but them."""


def parse_query(sql: str, *, keep: bool = False) -> exp.Query:
    """The syntax tree of the one query in ``sql``; ``SqlSyntaxError`` if it is not exactly one.

    Whoever only looks at the tree may ``keep`` it, which saves the next one who wants the same tree from reading the
    text again.

    >>> parse_query("SELECT nvl(a, 0) FROM t").selects[0].name
    'nvl'
    """
    kept = _kept.pop(sql, None)
    tree = _query(sql) if kept is None else kept
    if keep:
        _kept.clear()
        _kept[sql] = tree
    return tree


def _query(sql: str) -> exp.Query:
    trees = _trees(sql)
    statements = [tree for tree in trees if tree is not None and not isinstance(tree, exp.Semicolon)]
    if len(statements) != 1:
        found = "none" if not statements else f"{len(statements)} statements"
        raise SqlSyntaxError(f"Expected one query, found {found}.", hint="give each view one SELECT")
    tree = statements[0]
    if isinstance(tree, exp.Values):
        return exp.select("*").from_(tree)
    if not isinstance(tree, exp.Query):
        kind = (tree.name if isinstance(tree, exp.Command) else tree.key).upper()
        raise SqlSyntaxError(
            f"{kind} is not a query.",
            hint="a view is a SELECT, VALUES or WITH query",
            position=TextPositions(sql, tree).of(tree),
        )
    return tree


def parse_any(sql: str) -> list[exp.Expr]:
    """The syntax trees of whatever statements are in ``sql``; none if it cannot be read as SQL.

    Raises:
        SqlTooComplex: it is too long or nested too deeply to be read.
    """
    try:
        trees = _trees(sql)
    except SqlSyntaxError:
        return []
    return [tree for tree in trees if tree is not None]


def tokenize(sql: str) -> list[Token]:
    """The tokens of any SQL text; ``SqlSyntaxError`` if it cannot be cut into tokens, ``SqlTooComplex`` if too long."""
    check_text(sql)
    try:
        tokens = _tokens(sql)
    except SqlglotError as error:
        raise SqlSyntaxError(f"The text cannot be read as SQL: {_first_line(str(error))}") from None
    check_tokens(tokens)
    return tokens


def parse_type(text: str) -> exp.DataType:
    """The syntax tree of a Spark type such as ``STRUCT<a: INT>``; ``SqlSyntaxError`` if it is none."""
    try:
        check_text(text)
        tokens = _tokens(text)
        check_tokens(tokens)
        parsed = _parsed_type(tokens, text)
    except SqlglotError as error:
        raise SqlSyntaxError(f"{text!r} is not a Spark type: {_first_line(str(error))}") from None
    if not parsed or not isinstance(parsed[0], exp.DataType):
        raise SqlSyntaxError(f"{text!r} is not a Spark type.")
    return parsed[0]


@grows
def _tokens(sql: str) -> list[Token]:
    return _DIALECT.tokenize(sql)


def _trees(sql: str) -> list[exp.Expr | None]:
    """The statements in ``sql``, not higher than what is walked afterwards."""
    tokens = _readable(tokenize(sql))
    try:
        trees = _parsed(tokens, sql)
    except ParseError as error:
        raise _syntax_error(error, sql) from None
    except SqlglotError as error:
        raise SqlSyntaxError(f"The text cannot be read as SQL: {_first_line(str(error))}") from None
    except (RecursionError, MemoryError):
        raise out_of_room() from None
    for tree in trees:
        if tree is not None:
            check_tree(tree)
    return trees


@grows
def _parsed(tokens: list[Token], sql: str) -> list[exp.Expr | None]:
    return _DIALECT.parser().parse(tokens, sql)


@grows
def _parsed_type(tokens: list[Token], text: str) -> list[exp.Expr | None]:
    return _DIALECT.parser().parse_into(exp.DataType, tokens, text)


def _readable(tokens: list[Token]) -> list[Token]:
    """Keywords that are followed by a parenthesis are function names: ``GROUP BY window(ts, '1 hour')``."""
    following = [*tokens[1:], None][: len(tokens)]
    return [
        Token(TokenType.VAR, token.text, token.line, token.col, token.start, token.end, token.comments)
        if token.token_type in _CALLABLE_KEYWORDS and after is not None and after.token_type == TokenType.L_PAREN
        else token
        for token, after in zip(tokens, following, strict=True)
    ]


def _syntax_error(error: ParseError, sql: str) -> SqlSyntaxError:
    detail = error.errors[0] if error.errors else {}
    message = f"The text cannot be read as SQL: {_first_line(str(detail.get('description') or error))}"
    fragment = str(detail.get("highlight") or "")
    context = str(detail.get("start_context") or "")
    offset = sql.find(context + fragment) if context or fragment else -1
    if offset < 0:
        return SqlSyntaxError(message)
    return SqlSyntaxError(message, position=position_at(sql, offset + len(context), fragment))


def _first_line(text: str) -> str:
    return text.splitlines()[0] if text else "no detail"
