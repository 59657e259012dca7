"""Operators nested as Spark's grammar nests them.

sqlglot's own order is that of several databases at once: ``||`` below ``+``, all bitwise operators alike, ``=`` below
``<``. Spark's, from what binds least: OR, AND, NOT, one predicate (IS, IN, LIKE, BETWEEN ...), comparisons, ``|``,
``^``, ``&``, shifts, sums and ``||``, products, signs.
"""

from __future__ import annotations

from itertools import pairwise

from sqlglot import exp
from sqlglot.parsers.spark import SparkParser
from sqlglot.tokenizer_core import TokenType

from weirflow.stack import grows

_COMPARISON, _OR, _XOR, _AND, _SHIFT, _SUM, _PRODUCT, _COLLATION = range(8)
_BINARY: dict[TokenType, tuple[int, type[exp.Expr]]] = {
    TokenType.EQ: (_COMPARISON, exp.EQ),
    TokenType.NEQ: (_COMPARISON, exp.NEQ),
    TokenType.NULLSAFE_EQ: (_COMPARISON, exp.NullSafeEQ),
    TokenType.LT: (_COMPARISON, exp.LT),
    TokenType.LTE: (_COMPARISON, exp.LTE),
    TokenType.GT: (_COMPARISON, exp.GT),
    TokenType.GTE: (_COMPARISON, exp.GTE),
    TokenType.PIPE: (_OR, exp.BitwiseOr),
    TokenType.CARET: (_XOR, exp.BitwiseXor),
    TokenType.AMP: (_AND, exp.BitwiseAnd),
    TokenType.PLUS: (_SUM, exp.Add),
    TokenType.DASH: (_SUM, exp.Sub),
    TokenType.DPIPE: (_SUM, exp.DPipe),
    TokenType.STAR: (_PRODUCT, exp.Mul),
    TokenType.SLASH: (_PRODUCT, exp.Div),
    TokenType.MOD: (_PRODUCT, exp.Mod),
    TokenType.DIV: (_PRODUCT, exp.IntDiv),
    TokenType.COLLATE: (_COLLATION, exp.Collate),
}
_SHIFTS = {
    (TokenType.LT, 2): "shiftleft",
    (TokenType.GT, 2): "shiftright",
    (TokenType.GT, 3): "shiftrightunsigned",
}
"""Written as several signs; named as the functions they are."""
_MATCHES = {TokenType.LIKE: exp.Like, TokenType.ILIKE: exp.ILike, TokenType.RLIKE: exp.RegexpLike}
_QUANTIFIERS = {"ANY": exp.Any, "SOME": exp.Any, "ALL": exp.All}


class SparkOperators(SparkParser):
    """sqlglot's parser with Spark's operators."""

    def _parse_equality(self, parse_is: bool = True) -> exp.Expr | None:  # noqa: FBT001, FBT002, ARG002 - sqlglot's
        """What AND and OR connect: NOT of it, or a value with at most one predicate."""
        if self._match(TokenType.NOT):
            return self.expression(exp.Not(this=self._required(self._negated())))
        if self._curr.token_type is TokenType.EXISTS:
            start = self._index
            found = self._parse_unary()
            if isinstance(found, exp.Exists):
                return found
            self._retreat(start)
        value = self._parse_operators(_COMPARISON)
        return value if value is None else self._parse_predicate(value)

    @grows
    def _negated(self) -> exp.Expr | None:
        return self._parse_equality()

    def _parse_bitwise(self) -> exp.Expr | None:
        return self._parse_operators(_OR)

    def _parse_term(self, parse_mod: bool = True) -> exp.Expr | None:  # noqa: FBT001, FBT002 - sqlglot's signature
        return self._parse_operators(_SUM) if parse_mod else super()._parse_term(parse_mod)

    def _parse_operators(self, least: int) -> exp.Expr | None:
        """Operators of at least this level, those of the same from left to right."""
        this = self._parse_unary()
        while this is not None:
            kind = self._curr.token_type
            signs = self._shift_signs()
            level, node = (_SHIFT, None) if signs else _BINARY.get(kind, (-1, None))
            if level < least:
                break
            self._advance(signs or 1)
            right = self._required(self._parse_operators(level + 1))
            if node is None:
                called = exp.Anonymous(this=_SHIFTS[kind, signs], expressions=[this, right])
                called.meta["sign"] = ("<" if kind is TokenType.LT else ">") * signs
                this = self.expression(called)
            else:
                this = self.expression(node(this=this, expression=right))
        return this

    def _shift_signs(self) -> int:
        """How many signs make the shift here; 0 if there is none."""
        if self._curr.token_type not in (TokenType.LT, TokenType.GT):
            return 0
        for signs in (3, 2):
            ahead = self._tokens[self._index : self._index + signs]
            kinds = {token.token_type for token in ahead}
            close = all(one.end + 1 == other.start for one, other in pairwise(ahead))
            if len(ahead) == signs and len(kinds) == 1 and close and (next(iter(kinds)), signs) in _SHIFTS:
                return signs
        return 0

    def _parse_unary(self) -> exp.Expr | None:
        if self._match(TokenType.DASH):
            return self._parse_negative()
        if self._match(TokenType.PLUS):
            operand = self._required(self._parse_unary())
            return self.expression(exp.Anonymous(this="positive", expressions=[operand]))
        if self._match(TokenType.TILDE):
            return self.expression(exp.BitwiseNot(this=self._required(self._parse_unary())))
        return self._parse_type()

    def _parse_negative(self) -> exp.Expr:
        """The sign is part of a number, so ``-1::string`` is a cast of -1; of anything else it is an operator."""
        is_number = self._curr.token_type is TokenType.NUMBER
        operand = self._required(self._parse_unary())
        if is_number and isinstance(operand, exp.Cast) and not operand.meta_get("suffix"):
            number = operand
            while isinstance(number.this, exp.Cast) and not number.this.meta_get("suffix"):
                number = number.this
            number.set("this", self.expression(exp.Neg(this=number.this)))
            return operand
        return self.expression(exp.Neg(this=operand))

    def _parse_predicate(self, value: exp.Expr) -> exp.Expr:
        if self._match(TokenType.IS):
            return self._parse_is_predicate(value)
        negated = bool(self._match(TokenType.NOT))
        if self._match(TokenType.BETWEEN):
            predicate = self._parse_bounds(value)
        elif self._match(TokenType.IN):
            if self._curr.token_type is not TokenType.L_PAREN:
                self.raise_error("Expecting (")
            predicate = self._parse_in(value)
        elif self._match_set(_MATCHES):
            return self._parse_pattern(value, _MATCHES[self._prev.token_type], negated=negated)
        else:
            if negated:
                self._retreat(self._index - 1)
            return value
        return self.expression(exp.Not(this=predicate)) if negated else predicate

    def _parse_bounds(self, value: exp.Expr) -> exp.Expr:
        low = self._required(self._parse_operators(_COMPARISON))
        if not self._match(TokenType.AND):
            self.raise_error("Expecting AND")
        return self.expression(
            exp.Between(this=value, low=low, high=self._required(self._parse_operators(_COMPARISON)))
        )

    def _parse_pattern(self, value: exp.Expr, node: type[exp.Expr], *, negated: bool) -> exp.Expr:
        """NOT LIKE is NOT around LIKE, as any other NOT; only LIKE ANY and ALL negate each pattern."""
        if node is not exp.RegexpLike and self._match_texts(_QUANTIFIERS):
            quantifier = _QUANTIFIERS[self._prev.text.upper()]
            patterns = self.expression(exp.Tuple(expressions=self._parse_wrapped_csv(self._parse_disjunction)))
            return self.expression(node(this=value, expression=quantifier(this=patterns), negate=negated or None))
        found = self.expression(node(this=value, expression=self._required(self._parse_operators(_COMPARISON))))
        predicate = found if node is exp.RegexpLike else self._required(self._parse_escape(found))
        return self.expression(exp.Not(this=predicate)) if negated else predicate

    def _parse_is_predicate(self, value: exp.Expr) -> exp.Expr:
        negated = bool(self._match(TokenType.NOT))
        if self._match_text_seq("DISTINCT", "FROM"):
            node = exp.NullSafeEQ if negated else exp.NullSafeNEQ
            return self.expression(node(this=value, expression=self._required(self._parse_operators(_COMPARISON))))
        kind = self._curr.token_type
        unknown = self._curr.text.upper() == "UNKNOWN"
        if kind not in (TokenType.NULL, TokenType.TRUE, TokenType.FALSE) and not unknown:
            self.raise_error("Expecting NULL, TRUE, FALSE, UNKNOWN or DISTINCT FROM")
        self._advance()
        is_null = kind is TokenType.NULL or unknown
        wanted: exp.Expr = exp.Null() if is_null else exp.Boolean(this=kind is TokenType.TRUE)
        predicate = self.expression(exp.Is(this=value, expression=wanted))
        if not negated:
            return predicate
        opposite = self.expression(exp.Not(this=predicate))
        opposite.meta["is_not"] = True
        return opposite

    def _required(self, operand: exp.Expr | None) -> exp.Expr:
        if operand is None:
            self.raise_error("Something is missing")
        assert operand is not None, "raise_error raises"
        return operand
