"""Tokens put as sqlglot's parser understands them, where it stumbles over how Postgres has it."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from sqlglot.tokens import Token, TokenType

_LABELS = frozenset({TokenType.SELECT, TokenType.INSERT, TokenType.UPDATE, TokenType.DELETE, TokenType.USING,
                     TokenType.WHERE, TokenType.ORDER_BY, TokenType.GROUP_BY, TokenType.HAVING})  # fmt: skip
"""Keywords that sqlglot refuses behind AS, where Postgres takes any word for a label."""


_ORDERING = {TokenType.LT: TokenType.ASC, TokenType.GT: TokenType.DESC}
"""What ORDER BY … USING says with an operator, where NULLs too go as they go behind that word."""


def mended(tokens: list[Token]) -> list[Token]:
    """``tokens`` with what sqlglot stumbles over put as it understands it: ``x::oid[]``, ``… AS update`` and
    ``ORDER BY x USING >``.

    The schema of a built-in function is left out: it says nothing, and sqlglot does not know the function behind it.
    """
    tokens = [token for at, token in enumerate(tokens) if not _needless(tokens, at) and not _is_national(tokens, at)]
    found: list[Token | None] = list(tokens)
    for at, token in enumerate(tokens[1:], 1):
        before = tokens[at - 1].token_type
        after = [t.token_type for t in tokens[at + 1 : at + 3]]
        if token.token_type == TokenType.OBJECT_IDENTIFIER and after == [TokenType.L_BRACKET, TokenType.R_BRACKET]:
            found[at] = _retyped(token, TokenType.UINT)  # four unsigned bytes, which nothing else here is
        elif before in (TokenType.CHAR, TokenType.NCHAR) and token.text.lower() == "varying":
            found[at - 1], found[at] = _retyped(tokens[at - 1], TokenType.VARCHAR), None
        elif before == TokenType.ALIAS and token.token_type in _LABELS:
            if not after or after[0] in (TokenType.COMMA, TokenType.FROM, TokenType.R_PAREN):
                found[at] = _retyped(token, TokenType.VAR)
    for at in _sorted_using(tokens):
        found[at : at + 2] = None, _retyped(tokens[at + 1], _ORDERING[tokens[at + 1].token_type])
    return [token for token in found if token is not None]


def _sorted_using(tokens: list[Token]) -> Iterator[int]:
    """Where the USING of an ORDER BY stands, with an operator behind it.  A JOIN's is none of these."""
    sorts = [False]  # of each parenthesis that is open: whether what was said last in it is ORDER BY
    for at, (token, following) in enumerate(pairwise(tokens)):
        if token.token_type == TokenType.L_PAREN:
            sorts.append(False)
        elif token.token_type == TokenType.R_PAREN and len(sorts) > 1:
            sorts.pop()
        elif token.token_type == TokenType.ORDER_BY:
            sorts[-1] = True
        elif token.token_type in (TokenType.FROM, TokenType.JOIN):
            sorts[-1] = False
        elif token.token_type == TokenType.USING and sorts[-1] and following.token_type in _ORDERING:
            yield at


def _needless(tokens: list[Token], at: int) -> bool:
    """Whether the token there is ``pg_catalog`` or the dot behind it, before the name of a function and ``(``."""
    start = at - 1 if tokens[at].token_type == TokenType.DOT else at
    kinds = [token.token_type for token in tokens[start : start + 4]] if start >= 0 else []
    return (
        len(kinds) == 4
        and kinds[0] == TokenType.VAR
        and tokens[start].text.lower() == "pg_catalog"
        and kinds[1] == TokenType.DOT
        and kinds[3] == TokenType.L_PAREN
        and (start == 0 or tokens[start - 1].token_type != TokenType.DOT)
    )


_CHARACTERS = (TokenType.CHAR, TokenType.NCHAR, TokenType.VARCHAR)


def _is_national(tokens: list[Token], at: int) -> bool:
    """Whether the token there is the NATIONAL of ``national character``, which is the type without it."""
    following = tokens[at + 1].token_type if at + 1 < len(tokens) else None
    return tokens[at].text.lower() == "national" and following in _CHARACTERS and tokens[at].token_type == TokenType.VAR


def _retyped(token: Token, kind: TokenType) -> Token:
    return Token(kind, token.text, token.line, token.col, token.start, token.end, token.comments)
