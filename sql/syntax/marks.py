"""Signs of our own in a text, for what sqlglot's tokenizer would read otherwise than Postgres, or not as one token.

Promises: every position in a marked text is the same as without; no sign is part of another token, or of any statement
(42601 for one that is written).
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from sqlglot.tokens import Token, TokenType

from sql.syntax.quotes import comment_end, dollar_end
from sql.syntax.stretches import KIND, NotHere, Span, Text
from trees.errors import syntax

_PARAMETER, _REST = "\x01", "\x02"
"""What a parameter's dollar sign and digits are while sqlglot tokenizes: with a sign of its own there it would read
``2<$1`` as ``2 <@ 1``, and ``$1,$`` as the beginning of a dollar quote.  Neither is part of another token, or of any
statement."""


_PLUS, _MINUS = "\x03", "\x04"
"""A sign right behind a number with an exponent, for sqlglot would read ``1e10+1`` as one number."""


_STRETCH = "\x05"
"""What a long stretch is (:mod:`sql.syntax.stretches`), with blanks behind it."""


SIGNS = {
    _PARAMETER: TokenType.PARAMETER, _REST: TokenType.SPACE, _PLUS: TokenType.PLUS, _MINUS: TokenType.DASH,
    _STRETCH: KIND,
}  # fmt: skip
"""What a tokenizer is to make of each."""


def with_blanks(text: str, spans: Sequence[Span]) -> str:
    """``text`` with ``_STRETCH`` in the place of each of its stretches, and blanks behind it as far as that went."""
    parts, kept = [], 0
    for span in spans:
        blanks = _INK.sub(lambda ink: " " * len(ink[0]), text[span.start + 1 : span.end])
        parts += [text[kept : span.start], _STRETCH, blanks]
        kept = span.end
    return "".join([*parts, text[kept:]])


_INK = re.compile(r"[^\r\n]+")


_PIECES = re.compile(
    r"--[^\n]*|/\*|[eE]'(?:[^'\\]|\\.|'')*'|'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\""
    r"|\$(?:[^\W\d]\w*)?\$|[^\W\d][\w$]*|\$[0-9]+|[0-9]\.?[eE][+-]?[0-9]+(?=[+-][0-9])",
    re.S,
)
"""What may hold a dollar sign: comments, strings, quoted names, dollar quotes, names; and parameters, and the end of a
number with an exponent where another number follows by its sign."""

_EXPONENT_AND_SIGN = re.compile(r"[0-9]\.?[eE][+-]?[0-9]+[+-][0-9]")


def marked(text: str) -> tuple[str, dict[int, int]]:
    """``text`` with parameters as ``_PARAMETER`` and ``_REST``, every position kept, and their ends by their starts;
    with ``_PLUS`` and ``_MINUS`` too."""
    if "$" not in text and _EXPONENT_AND_SIGN.search(text) is None:
        return text, {}
    found: dict[int, int] = {}
    parts, kept, at = [], 0, 0
    while (piece := _PIECES.search(text, at)) is not None:
        at = piece.end()
        if piece[0] == "/*":
            at = comment_end(text, at)
        elif piece[0][0] == "$" and piece[0][-1] == "$":
            at = dollar_end(text, at, piece[0])
            if at is None:
                break
        elif piece[0][0] == "$":
            found[piece.start()] = at
            parts += [text[kept : piece.start()], _PARAMETER, _REST * (at - piece.start() - 1)]
            kept = at
        elif "0" <= piece[0][0] <= "9":  # not ``isdigit``: a name may begin with a superscript two
            parts += [text[kept:at], _PLUS if text[at] == "+" else _MINUS]
            kept = at = at + 1
    return "".join(parts) + text[kept:], found


def with_runs(tokens: list[Token], text: str, found: Sequence[Span]) -> list[Token]:
    """``tokens`` with each stretch's own text.  42601 for a stray sign of ours, ``NotHere`` where one is no token."""
    starts = [token.start for token in tokens if token.token_type == KIND]
    for start in starts:
        if text[start] == _STRETCH:
            raise syntax(_STRETCH, start + 1)
    if starts != [span.start for span in found]:
        raise NotHere  # one is within something that only the tokenizer knows
    spans = iter(found)
    made = []
    for token in tokens:
        if token.token_type == KIND:
            span = next(spans)
            place = token.line, token.col, span.start, span.end - 1
            made.append(Token(KIND, Text.of(span, text), *place, token.comments))
            if span.kind == "arms":  # of a CASE, which are to the parser one
                made += Token(TokenType.THEN, "then", *place), Token(TokenType.NULL, "null", *place)
        else:
            made.append(token)
    return made


def with_parameters(tokens: list[Token], text: str, parameters: dict[int, int]) -> list[Token]:
    """``tokens`` with each parameter as sqlglot's parser wants one: a sign, then a number.  42601 for stray signs."""
    found = []
    for token in tokens:
        sign = text[token.start] if token.token_type in (TokenType.PARAMETER, TokenType.SPACE) else None
        if token.text in (_PLUS, _MINUS) and token.token_type in (TokenType.PLUS, TokenType.DASH):
            sign = text[token.start]
            if sign not in "+-":
                raise syntax(sign, token.start + 1)
            found.append(Token(token.token_type, sign, token.line, token.col, token.start, token.end, token.comments))
        elif sign is None:
            found.append(token)
        elif token.start in parameters:
            end = parameters[token.start]
            found.append(Token(TokenType.PARAMETER, "@", token.line, token.col, token.start, token.start))
            digits = text[token.start + 1 : end]
            number = Token(TokenType.NUMBER, digits, token.line, token.col + len(digits), token.start + 1, end - 1)
            found.append(number)
            if text[end : end + 1] == "." and text[end + 1 : end + 2].isdigit():
                raise syntax(".", end + 1)
        elif token.token_type == TokenType.PARAMETER or not sign.isdigit():
            raise syntax(sign, token.start + 1)
    return found
