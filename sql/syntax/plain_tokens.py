"""Tokens of Postgres's ways of writing one thing as those of the plain way: strings and names.

``E'…'``, ``U&'…'`` and ``$$…$$`` become strings, ``U&"…"`` a quoted name, and names are cut to what Postgres keeps.
"""

from __future__ import annotations

from sqlglot.tokens import Token, TokenType

from journal.errors import InvalidUsage
from sql.syntax.constants import escaped, unicode_text
from trees.errors import syntax

NAME_BYTES_MAX = 63
"""Postgres's NAMEDATALEN - 1: the rest of a longer name says nothing."""


_PLAIN = frozenset(
    {TokenType.L_PAREN, TokenType.R_PAREN, TokenType.COMMA, TokenType.DOT, TokenType.EQ, TokenType.NUMBER}
)
"""What is plain already, and most of a long statement."""


def plain(tokens: list[Token], text: str) -> list[Token]:
    """``tokens`` of ``text``, plain.  42601, 22021 and 22025 for what is no escape.

    42601 too for a string right behind another one: with a new line between them the parser makes one of them.
    """
    found: list[Token] = []
    at = 0
    while at < len(tokens):
        try:
            token, used = tokens[at], 1
            if token.token_type not in _PLAIN:
                token, used = _one(tokens, at, text)
        except InvalidUsage as error:
            error.position = error.position or tokens[at].start + 1
            raise
        if found and found[-1].token_type == token.token_type == TokenType.STRING:
            if "\n" not in text[found[-1].end + 1 : token.start]:
                raise syntax(text[token.start : token.end + 1], token.start + 1)
        found.append(token)
        at += used
    return found


def _one(tokens: list[Token], at: int, text: str) -> tuple[Token, int]:
    """The plain token at ``at``, and of how many it is made."""
    token = tokens[at]
    kind = token.token_type
    if kind == TokenType.BYTE_STRING:
        # sqlglot takes ``\\xc3\\xa9`` for two characters, and ``\\v`` for a third
        return _made(token, TokenType.STRING, escaped(text[token.start + 2 : token.end])), 1
    if kind == TokenType.HEREDOC_STRING:
        return _made(token, TokenType.STRING, token.text), 1
    if kind == TokenType.UNICODE_STRING:
        sign, more = _escape_sign(tokens[at + 1 : at + 3])
        return _made(token, TokenType.STRING, unicode_text(token.text, sign)), 1 + more
    if text[token.start : token.start + 3].lower() == 'u&"' and len(tokens) > at + 2:  # three tokens to sqlglot
        last = tokens[at + 2]
        sign, more = _escape_sign(tokens[at + 3 : at + 5])
        name = _cut(unicode_text(last.text, sign))
        return Token(TokenType.IDENTIFIER, name, last.line, last.col, token.start, last.end), 3 + more
    if kind in (TokenType.VAR, TokenType.IDENTIFIER) and len(token.text) * 4 > NAME_BYTES_MAX:
        return _made(token, kind, _cut(token.text)), 1
    return token, 1


def _made(token: Token, kind: TokenType, text: str) -> Token:
    return Token(kind, text, token.line, token.col, token.start, token.end, token.comments)


def _cut(name: str) -> str:
    """``name`` without what is beyond the bound, no character in two."""
    return name.encode()[:NAME_BYTES_MAX].decode(errors="ignore")


def _escape_sign(following: list[Token]) -> tuple[str, int]:
    """The sign that UESCAPE names for escapes, and how many tokens say it: none for the backslash that it is else."""
    if not following or following[0].token_type != TokenType.VAR or following[0].text.lower() != "uescape":
        return "\\", 0
    if len(following) < 2 or following[1].token_type != TokenType.STRING:
        raise syntax(None, None, "UESCAPE must be followed by a simple string literal")
    sign = following[1].text
    if len(sign) != 1 or sign in "+'\"0123456789abcdefABCDEF" or sign.isspace():
        raise syntax(None, following[1].start + 1, "invalid Unicode escape character")
    return sign, 2
