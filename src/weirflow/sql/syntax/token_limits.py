"""How many tokens SQL may have, and how many may be open at once: looked at before they are parsed."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot.tokenizer_core import Token, TokenType

from weirflow.sql.limits import MAX_NESTING, MAX_TOKENS, check_depth, too_deep, too_long

_OPENING = frozenset({TokenType.L_PAREN, TokenType.L_BRACKET, TokenType.L_BRACE, TokenType.CASE})
_CLOSING = frozenset({TokenType.R_PAREN, TokenType.R_BRACKET, TokenType.R_BRACE, TokenType.END})
_PREFIXES = frozenset({TokenType.NOT, TokenType.DASH, TokenType.PLUS, TokenType.TILDE})
_OPEN_TYPES = frozenset({TokenType.ARRAY, TokenType.STRUCT, TokenType.MAP})


def check_tokens(tokens: Sequence[Token]) -> None:
    """Raise ``SqlTooComplex`` for too many tokens, or too many that are open at once."""
    if len(tokens) > MAX_TOKENS:
        raise too_long(f"{len(tokens):,} words and signs", f"{MAX_TOKENS:,}")
    opened: list[int] = []
    depth = signs = types = 0
    before: TokenType | None = None
    for token in tokens:
        kind = token.token_type
        if kind in _PREFIXES:
            signs += 1
        elif kind in _OPENING:
            opened.append(1 + signs)
            depth += 1 + signs
            signs = 0
        else:
            if kind in _CLOSING and opened:
                depth -= opened.pop()
            elif kind == TokenType.LT and before in _OPEN_TYPES:
                types += 1
            elif kind == TokenType.GT and types:
                types -= 1
            signs = 0
        before = kind
        if depth + signs > MAX_NESTING:
            raise too_deep(MAX_NESTING)
        check_depth(types - 1)  # a schema is written as one struct around its columns
