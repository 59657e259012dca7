"""Clauses that sqlglot reads otherwise than Spark: pipes, PIVOT and UNPIVOT, ``TABLE name``.

A pipe stays what was written, a query and its steps, so that each step can be given Spark's meaning.
"""

from __future__ import annotations

from typing import Any, ClassVar

from sqlglot import exp
from sqlglot.tokenizer_core import TokenType

from weirflow.sql.syntax.operators import SparkOperators

WHERE, SELECT, EXTEND, SET, DROP, AS = "WHERE", "SELECT", "EXTEND", "SET", "DROP", "AS"
AGGREGATE, ORDER_BY, LIMIT, OFFSET = "AGGREGATE", "ORDER BY", "LIMIT", "OFFSET"
JOIN, PIVOT, COMBINE, SAMPLE = "JOIN", "PIVOT", "UNION, EXCEPT or INTERSECT", "TABLESAMPLE"


_RESULT_STEPS = (ORDER_BY, LIMIT, OFFSET)
_RESULT_CLAUSES = (TokenType.ORDER_BY, TokenType.LIMIT, TokenType.OFFSET)
_SELECT_PARTS = ("expressions", "distinct", "hint", "windows")


class PipeQuery(exp.Expression, exp.Query):
    """A query, and the steps that its rows go through."""

    arg_types: ClassVar[dict[str, bool]] = {
        "this": True,
        "steps": True,
        "with_": False,
        "order": False,
        "limit": False,
        "offset": False,
    }


class PipeStep(exp.Expression):
    """What follows one ``|>``.

    ``this`` is the clause as it stands in other queries, for AS the new name; EXTEND, SET, DROP and AGGREGATE have a
    list, AGGREGATE also the list of its keys, and LIMIT maybe its OFFSET as one.
    """

    arg_types: ClassVar[dict[str, bool]] = {"kind": True, "this": False, "expressions": False, "keys": False}


class SparkClauses(SparkOperators):
    """sqlglot's parser with Spark's clauses."""

    SUPPORTS_TABLE_QUERY = True

    def _is_table_query(self) -> bool:
        names = (*self.ID_VAR_TOKENS, TokenType.IDENTIFIER)
        return self._curr.token_type is TokenType.TABLE and self._next.token_type in names

    def _parse_select(self, *args: Any, **kwargs: Any) -> exp.Expr | None:
        """A pipe is of the whole query before it, so none is read for one side of a set operation."""
        consumes = kwargs.get("parse_set_operation", True) and kwargs.pop("consume_pipe", True)
        query = super()._parse_select(*args, **{**kwargs, "consume_pipe": False})
        if not consumes or self._curr.token_type is not TokenType.PIPE_GT or query is None:
            return query
        piped = self._parse_pipe_syntax_query(query)
        is_table = kwargs.get("table") or (len(args) > 1 and args[1])
        return self.expression(exp.Subquery(this=piped)) if is_table else piped

    def _parse_wrapped_select(self, table: bool = False) -> exp.Expr | None:  # noqa: FBT001, FBT002 - sqlglot's
        this = super()._parse_wrapped_select(table=table)
        if this is not None and self._curr.token_type is TokenType.PIPE_GT:
            return self._parse_pipe_syntax_query(this)
        return this

    def _parse_paren(self) -> exp.Expr | None:
        found = super()._parse_paren()
        if isinstance(found, exp.Paren) and isinstance(found.this, PipeQuery):
            return self.expression(exp.Subquery(this=found.this))
        return found

    def _parse_in(self, *args: Any, **kwargs: Any) -> exp.In:
        """A list that is nothing but VALUES is a query, unless it could be a call."""
        ahead = [token.token_type for token in self._tokens[self._index + 1 : self._index + 3]]
        found = super()._parse_in(*args, **kwargs)
        listed = found.args.get("expressions") or []
        if len(listed) == 1 and ahead[-1] is not TokenType.L_PAREN and isinstance(listed[0], exp.Values):
            found.set("expressions", None)
            found.set("query", self.expression(exp.Subquery(this=listed[0])))
        return found

    def _parse_function_call(self, *args: Any, **kwargs: Any) -> exp.Expr | None:
        """EXISTS of nothing but a query is the predicate, however the query begins; the function takes an array."""
        found = super()._parse_function_call(*args, **kwargs)
        if isinstance(found, exp.Anonymous) and found.name.upper() == "EXISTS" and len(found.expressions) == 1:
            (query,) = found.expressions
            if isinstance(query, exp.Values):
                query = self.expression(exp.Subquery(this=query))
            if isinstance(query, exp.Query):
                return self.expression(exp.Exists(this=query))
        return found

    def _parse_pipe_syntax_query(self, query: exp.Expr) -> exp.Expr:  # type: ignore[override] # also of VALUES
        if any(query.args.get(part) for part in ("order", "limit", "offset")) and not isinstance(query, exp.Subquery):
            self.raise_error("ORDER BY, LIMIT and OFFSET before a pipe belong in parentheses")
        steps = []
        while self._match(TokenType.PIPE_GT):
            steps.append(self._parse_step())
        if steps[-1].args["kind"] in _RESULT_STEPS and self._curr.token_type in _RESULT_CLAUSES:
            self.raise_error("ORDER BY and LIMIT are steps of their own")
        return self.expression(PipeQuery(this=query, steps=steps))

    def _parse_step(self) -> PipeStep:  # noqa: C901, PLR0911 - one for each kind
        if self._match(TokenType.WHERE):
            return self._step(WHERE, self._required(self._parse_disjunction()))
        if self._curr.token_type is TokenType.SELECT:
            return self._step(SELECT, self._parse_select_step())
        if self._match_text_seq("EXTEND"):
            return self._step(EXTEND, listed=self._parse_expressions())
        if self._match(TokenType.SET):
            return self._step(SET, listed=self._parse_csv(self._parse_assignment_of))
        if self._match(TokenType.DROP):
            return self._step(DROP, listed=self._parse_csv(lambda: self._required(self._parse_id_var())))
        if self._match(TokenType.ALIAS):
            return self._step(AS, self._required(self._parse_id_var()))
        if self._match_text_seq("AGGREGATE"):
            return self._parse_aggregate_step()
        if self._curr.token_type in (TokenType.PIVOT, TokenType.UNPIVOT):
            return self._step(PIVOT, self._required(self._parse_pivot()))
        if self._curr.token_type is TokenType.TABLE_SAMPLE:
            return self._step(SAMPLE, self._required(self._parse_table_sample()))
        if self._curr.token_type in _RESULT_CLAUSES:
            return self._parse_result_step()
        combined = self.parse_set_operation(exp.Null())
        if combined is not None:
            return self._step(COMBINE, combined)
        join = None if self._curr.token_type is TokenType.COMMA else self._parse_join()
        if join is None:
            self.raise_error("This is no step of a pipe")
        return self._step(JOIN, join)

    def _parse_result_step(self) -> PipeStep:
        """ORDER BY, OFFSET, or LIMIT, which may be followed by the OFFSET it counts from."""
        kind = _RESULT_STEPS[_RESULT_CLAUSES.index(self._curr.token_type)]
        if kind == ORDER_BY:
            return self._step(kind, self._parse_order())
        limit = self._parse_limit()
        offset = self._parse_offset()
        return self._step(kind, limit or offset, [offset] if limit is not None and offset is not None else None)

    def _step(self, kind: str, this: exp.Expr | None = None, listed: list[exp.Expr] | None = None) -> PipeStep:
        if this is None and not listed:
            self.raise_error("Something is missing")
        return self.expression(PipeStep(kind=kind, this=this, expressions=listed))

    def _parse_select_step(self) -> exp.Expr:
        select = self._required(self._parse_select(parse_set_operation=False))
        if not isinstance(select, exp.Select) or any(
            value and part not in _SELECT_PARTS for part, value in select.args.items()
        ):
            self.raise_error("SELECT in a pipe is a list of columns; WHERE and others are steps of their own")
        return select

    def _parse_assignment_of(self) -> exp.Expr:
        name = self._required(self._parse_id_var())
        if not self._match(TokenType.EQ):
            self.raise_error("Expecting =")
        return self.expression(exp.Alias(this=self._required(self._parse_disjunction()), alias=name))

    def _parse_aggregate_step(self) -> PipeStep:
        listed = [] if self._curr.token_type is TokenType.GROUP_BY else self._parse_expressions()
        keys = self._parse_csv(self._parse_expression) if self._match(TokenType.GROUP_BY) else []
        if not listed and not keys:
            self.raise_error("AGGREGATE of nothing")
        return self.expression(PipeStep(kind=AGGREGATE, expressions=listed, keys=keys))

    # PIVOT and UNPIVOT

    def _parse_pivot(self) -> exp.Pivot | None:
        if not self._match_set((TokenType.PIVOT, TokenType.UNPIVOT)):
            return None
        unpivot = self._prev.token_type is TokenType.UNPIVOT
        nulls = None
        if unpivot and self._match_texts(("INCLUDE", "EXCLUDE")):
            nulls = self._prev.text.upper() == "INCLUDE"
            if not self._match_text_seq("NULLS"):
                self.raise_error("Expecting NULLS")
        if not self._match(TokenType.L_PAREN):
            self.raise_error("Expecting (")
        made = [self._parse_names()] if unpivot else self._parse_csv(lambda: self._required(self._parse_expression()))
        if not made or not self._match(TokenType.FOR):
            self.raise_error("Expecting FOR")
        of = self._required(self._parse_id_var()) if unpivot else self._parse_names()
        if not self._match(TokenType.IN):
            self.raise_error("Expecting IN")
        values = self._parse_wrapped_csv(lambda: self._required(self._parse_expression()))
        self._match_r_paren()
        field = self.expression(exp.In(this=of, expressions=values))
        pivot = self.expression(exp.Pivot(expressions=made, fields=[field], unpivot=unpivot, include_nulls=nulls))
        named = self._curr.token_type in (TokenType.ALIAS, TokenType.VAR, TokenType.IDENTIFIER)
        if named and not unpivot:
            self.raise_error("What PIVOT makes has no name of its own")
        if named:
            pivot.set("alias", self._parse_table_alias())
        return pivot

    def _parse_names(self) -> exp.Expr:
        """One name, or several in parentheses."""
        if self._curr.token_type is not TokenType.L_PAREN:
            return self._required(self._parse_id_var())
        return self.expression(
            exp.Tuple(expressions=self._parse_wrapped_csv(lambda: self._required(self._parse_id_var())))
        )
