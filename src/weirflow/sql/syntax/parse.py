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
from weirflow.sql.limits import check_text, check_tree, out_of_room
from weirflow.sql.statements.composed import position_at
from weirflow.sql.syntax.clauses import SparkClauses
from weirflow.sql.syntax.positions import TextPositions
from weirflow.sql.syntax.token_limits import check_tokens
from weirflow.sql.type_names import unknown_type
from weirflow.stack import grows

NUMBER_SUFFIXES = frozenset({"Y", "S", "L", "F", "D", "BD"})
_NOT_TYPES = frozenset({"INT1", "INT2", "INT4", "INT8", "INT16", "INT32", "INT64", "INT128", "INT256"})
"""Words that other databases take for types, each for another one."""
_KEYWORD_SYNTAX = ("CAST", "TRY_CAST", "EXTRACT", "OVERLAY", "POSITION", "SUBSTRING", "TRIM")
_CALLABLE_KEYWORDS = (TokenType.WINDOW, TokenType.CURRENT_DATE, TokenType.CURRENT_TIMESTAMP)
_NOT_KEYWORDS = (TokenType.ASOF, TokenType.POSITIONAL, TokenType.ISNULL, TokenType.NOTNULL)
"""Names in Spark, whatever they are elsewhere."""
_BEFORE_ALL = frozenset(
    {
        TokenType.SELECT,
        TokenType.UNION,
        TokenType.EXCEPT,
        TokenType.INTERSECT,
        TokenType.LIKE,
        TokenType.ILIKE,
        TokenType.L_PAREN,
    }
)
_AFTER_NAME = frozenset({TokenType.COMMA, TokenType.DOT, TokenType.R_PAREN, TokenType.SEMICOLON})
_BEFORE_NAME = frozenset(
    {
        TokenType.SELECT,
        TokenType.DOT,
        TokenType.WHERE,
        TokenType.GROUP_BY,
        TokenType.HAVING,
        TokenType.ORDER_BY,
        TokenType.AND,
        TokenType.OR,
        TokenType.NOT,
        TokenType.ON,
        TokenType.ALIAS,
    }
)
_DATETIMES = frozenset(
    {
        exp.DType.DATE,
        exp.DType.TIME,
        exp.DType.TIMESTAMP,
        exp.DType.TIMESTAMPTZ,
        exp.DType.TIMESTAMPLTZ,
        exp.DType.TIMESTAMPNTZ,
    }
)


def _typed_literal(parser: SparkParser, text: exp.Expr, kind: exp.DataType) -> exp.Expr:
    """``DATE '2020-01-01'``: a cast that remembers it was written as a literal."""
    if kind.this not in _DATETIMES or not (isinstance(text, exp.Literal) and text.is_string):
        parser.raise_error("Only dates and timestamps have literals that begin with their type; use CAST")
    literal = parser.expression(exp.Cast(this=text, to=kind))
    literal.meta["typed_literal"] = True
    return literal


def _hex_string(parser: SparkParser, token: Token) -> exp.Expr:
    if parser.sql[token.start] not in "xX":
        parser.raise_error("A binary literal is written as X'1F'", token)
    return parser.expression(exp.HexString(this=token.text), token)


class _PlainCalls(SparkClauses):
    """Spark's grammar; a call stays ``exp.Anonymous`` unless it has a syntax of its own (CAST, EXTRACT, ...).

    What only other databases have, and sqlglot would read without a trace in the tree, is an error here.
    """

    FUNCTIONS: ClassVar[dict[str, Callable[..., exp.Expr]]] = {}
    FUNCTION_PARSERS: ClassVar[dict[str, Callable[..., exp.Expr]]] = {
        name: SparkParser.FUNCTION_PARSERS[name] for name in _KEYWORD_SYNTAX
    }
    TYPE_LITERAL_PARSERS: ClassVar[dict[exp.DType, Callable[..., exp.Expr]]] = dict.fromkeys(exp.DType, _typed_literal)
    PRIMARY_PARSERS: ClassVar[dict[TokenType, Callable[..., exp.Expr | None]]] = {
        **SparkParser.PRIMARY_PARSERS,
        TokenType.HEX_STRING: _hex_string,
    }
    STRICT_CAST = True
    ADD_JOIN_ON_TRUE = False
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
        table = super()._parse_table(*args, **kwargs)
        if isinstance(table, exp.Table) and self._prev.token_type is TokenType.STAR:
            self.raise_error("Unexpected *", self._prev)
        return table

    @grows
    def _parse_types(self, *args: Any, **kwargs: Any) -> exp.Expr | None:
        return None if self._curr.text.upper() in _NOT_TYPES else super()._parse_types(*args, **kwargs)

    def _parse_csv(self, parse_method: Callable[[], Any], sep: TokenType = TokenType.COMMA) -> list[Any]:
        items = [item for item in (parse_method(),) if item is not None]
        while self._match(sep):
            items.append(self._required(parse_method()))
        return items

    def _parse_with(self, *args: Any, **kwargs: Any) -> exp.With | None:
        start, depth = self._index, 0
        found = super()._parse_with(*args, **kwargs)
        for token in self._tokens[start + 1 : self._index]:
            depth += (token.token_type is TokenType.L_PAREN) - (token.token_type is TokenType.R_PAREN)
            if found is not None and token.token_type is TokenType.WITH and not depth:
                self.raise_error("A query has one WITH", token)
        return found

    def _parse_join(self, *args: Any, **kwargs: Any) -> exp.Join | None:
        follows_comma = self._curr.token_type is TokenType.COMMA
        join = super()._parse_join(*args, **kwargs)
        if follows_comma or join is not None:
            self._required(join)
        if join is not None and isinstance(join.this, exp.Table) and join.this.args.get("joins"):
            self.raise_error("A join follows its own ON or USING; put joins that are joined in parentheses")
        return join

    def _parse_interval(self, *args: Any, **kwargs: Any) -> exp.Expr | None:  # type: ignore[override]
        interval = super()._parse_interval(*args, **kwargs)
        if isinstance(interval, exp.Add):
            interval.meta["is_interval"] = True
        return interval

    def _parse_substring(self) -> exp.Substring:
        given = self._parse_csv(self._parse_bitwise)
        if len(given) == 1 and self._match(TokenType.FROM):
            given.append(self._required(self._parse_bitwise()))
            if self._match(TokenType.FOR):
                given.append(self._required(self._parse_bitwise()))
        if len(given) not in (2, 3):
            self.raise_error("substring() takes a text, a start and perhaps a length")
        return self.expression(exp.Substring(**dict(zip(("this", "start", "length"), given, strict=False))))

    def _parse_group(self, skip_group_by_token: bool = False) -> exp.Group | None:  # noqa: FBT001, FBT002 - sqlglot's
        """Keys, then at most one of WITH ROLLUP, WITH CUBE and GROUPING SETS over all of them."""
        if not skip_group_by_token and not self._match(TokenType.GROUP_BY):
            return None
        keys = self._parse_csv(
            lambda: self._parse_grouping_sets() or self._parse_cube_or_rollup() or self._parse_disjunction()
        )
        group = self.expression(exp.Group(expressions=keys))
        self._required(group if keys else None)
        if self._match(TokenType.WITH):
            node = self._required(self._parse_cube_or_rollup(with_prefix=True))
            group.set("rollup" if isinstance(node, exp.Rollup) else "cube", [node])
        elif (sets := self._parse_grouping_sets()) is not None:
            group.set("grouping_sets", [sets])
        return group

    def _parse_limit(self, *args: Any, **kwargs: Any) -> exp.Expr | None:
        limit = super()._parse_limit(*args, **kwargs)
        if isinstance(limit, exp.Limit) and limit.args.get("offset") is not None:
            self.raise_error("LIMIT takes one number, and OFFSET is a clause of its own")
        return limit

    def _parse_offset(self, this: exp.Expr | None = None) -> exp.Expr | None:
        offset = super()._parse_offset(this)
        if isinstance(offset, exp.Offset) and self._prev.text.upper() in ("ROW", "ROWS"):
            self.raise_error("OFFSET takes a number alone", self._prev)
        return offset

    def _parse_star_op(self, *keywords: str) -> list[exp.Expr] | None:
        if "EXCEPT" not in keywords:
            return super()._parse_star_op(*keywords)
        if not self._match_pair(TokenType.EXCEPT, TokenType.L_PAREN, advance=False):
            return None
        self._advance()
        return self._parse_wrapped_csv(lambda: self._required(self._parse_column()))

    def _parse_using_identifiers(self) -> list[exp.Expr]:
        return self._parse_wrapped_csv(lambda: self._required(self._parse_id_var()))

    def _parse_function(self, *args: Any, **kwargs: Any) -> exp.Expr | None:
        if self._curr.token_type is TokenType.L_BRACE:
            self.raise_error("Unexpected {")
        return super()._parse_function(*args, **kwargs)

    def _parse_position(self, *_: Any) -> exp.Expr:  # type: ignore[override] # a plain call with commas
        """``position(a IN b)``; with commas it is a call as any other."""
        arguments = self._parse_csv(self._parse_bitwise)
        if len(arguments) == 1 and self._match(TokenType.IN):
            return self.expression(exp.StrPosition(this=self._required(self._parse_bitwise()), substr=arguments[0]))
        return self.expression(exp.Anonymous(this="position", expressions=arguments))

    def _parse_extract(self) -> exp.Expr:  # type: ignore[override]
        field = self._curr
        if field.token_type is TokenType.STRING or self._next.token_type is not TokenType.FROM:
            self.raise_error("Expected EXTRACT(field FROM value)")
        self._advance(2)
        what = self.expression(exp.Var(this=field.text), field)
        return self.expression(exp.Extract(this=what, expression=self._required(self._parse_bitwise())))

    def _warn_unsupported(self) -> None:
        """Nothing is logged of what a user gave: it is refused."""

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

    SUPPORTS_ORDER_BY_ALL = False  # whether it is a column of that name is not seen from the text

    class Tokenizer(Spark.Tokenizer):
        """Quotes are doubled inside of quotes, too."""

        STRING_ESCAPES: ClassVar[list[str]] = ["\\", "'", '"']

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
        query = exp.select("*")
        for part in ("order", "limit", "offset"):
            query.set(part, tree.args.pop(part, None))
        return query.from_(tree, copy=False)
    if not isinstance(tree, exp.Query):
        kind = tokenize(sql)[0].text.upper()
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


def parse_expression(sql: str) -> exp.Expr:
    """The syntax tree of the one expression in ``sql``; ``SqlSyntaxError`` if it is none, or has more behind it."""
    trees = _whole_trees(sql, lambda tokens: _parsed_expression(tokens, sql))
    if len(trees) != 1 or trees[0] is None:
        raise SqlSyntaxError("The text cannot be read as SQL: an expression was expected.")
    return trees[0]


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
    return _whole_trees(sql, lambda tokens: _parsed(tokens, sql))


def _whole_trees(sql: str, parsed: Callable[[list[Token]], list[exp.Expr | None]]) -> list[exp.Expr | None]:
    tokens = _readable(tokenize(sql))
    try:
        trees = parsed(tokens)
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
def _parsed_expression(tokens: list[Token], sql: str) -> list[exp.Expr | None]:
    return _DIALECT.parser().parse_into(exp.Condition, tokens, sql)


@grows
def _parsed_type(tokens: list[Token], text: str) -> list[exp.Expr | None]:
    return _DIALECT.parser().parse_into(exp.DataType, tokens, text)


def _readable(tokens: list[Token]) -> list[Token]:
    """Keywords that are names where they stand: ``GROUP BY window(ts, '1 hour')``, ``SELECT all FROM t``."""
    return [
        Token(TokenType.VAR, token.text, token.line, token.col, token.start, token.end, token.comments)
        if _is_name(tokens, at)
        else token
        for at, token in enumerate(tokens)
    ]


def _is_name(tokens: list[Token], at: int) -> bool:
    kind = tokens[at].token_type
    after = tokens[at + 1].token_type if at + 1 < len(tokens) else None
    if kind in _CALLABLE_KEYWORDS:
        return after is TokenType.L_PAREN
    if kind is TokenType.ALL:
        before = tokens[at - 1].token_type if at else None
        if before is TokenType.LIMIT:
            return False
        return before not in _BEFORE_ALL or after is None or after in _AFTER_NAME
    if kind is TokenType.VALUES:
        before = tokens[at - 1].token_type if at else None
        return before in _BEFORE_NAME or after in _AFTER_NAME or after in (TokenType.FROM, TokenType.ALIAS)
    return kind in _NOT_KEYWORDS


def _syntax_error(error: ParseError, sql: str) -> SqlSyntaxError:
    detail = error.errors[0] if error.errors else {}
    message = f"The text cannot be read as SQL: {_plain(str(detail.get('description') or error))}"
    fragment = str(detail.get("highlight") or "")
    context = str(detail.get("start_context") or "")
    offset = sql.find(context + fragment) if context or fragment else -1
    if offset < 0:
        return SqlSyntaxError(message)
    position = position_at(sql, offset + len(context), fragment)
    if "Expected TYPE" in message and fragment.isidentifier():
        return unknown_type(fragment, position)
    return SqlSyntaxError(message, position=position)


def _plain(text: str) -> str:
    """What the parser says, without the names of its own classes."""
    line = _first_line(text).partition(" but got ")[0]
    if "<class" in line:
        return "a part is missing here"
    return line.replace("Invalid expression / Unexpected token", "this is not expected here")


def _first_line(text: str) -> str:
    return text.splitlines()[0] if text else "no detail"
