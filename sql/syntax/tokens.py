"""Text to tokens.  All positions are offsets into the text.  Pure."""

from __future__ import annotations

import re
from itertools import pairwise

from sqlglot.errors import TokenError
from sqlglot.tokens import Token, TokenType

from journal.errors import InvalidUsage
from sql.syntax.dialect import DIALECT
from sql.syntax.marks import marked, with_blanks, with_parameters, with_runs
from sql.syntax.plain_tokens import plain
from sql.syntax.quotes import blanks_end
from sql.syntax.stretches import stretches
from trees.budget import TOKENS_MAX
from trees.errors import out_of_range, syntax

STATEMENT_CHARS_MAX = 1 << 20
"""A statement's text is at most 1 MiB: what fits a catalog proposal (4 MiB) with room for what is derived from it."""

NUMBER_CHARS_MAX = 4_000
"""Of a number, a parameter's and a type's own too: Python converts no text of more than 4,300 digits to an int.  A
numeric may have more; in quotes it does."""


def tokenize(text: str, by_stretches: bool = False) -> list[Token]:
    """The tokens of ``text``.  42601 where a quote or comment never ends; 54000 where it is too long.

    ``by_stretches``: each long stretch of values is one token (:mod:`sql.syntax.stretches`).  ``NotHere`` where one is
    none.
    """
    if len(text) > STATEMENT_CHARS_MAX:
        raise InvalidUsage(
            f"statement of {len(text)} characters is too long",
            sqlstate="54000",
            detail=f"at most {STATEMENT_CHARS_MAX} are accepted",
        )
    at = text.find("\0")
    if at >= 0:
        raise InvalidUsage('invalid byte sequence for encoding "UTF8": 0x00', sqlstate="22021", position=at + 1)
    spans = stretches(text) if by_stretches else []
    made, parameters = marked(with_blanks(text, spans))
    try:
        tokens = DIALECT.tokenize(made)
    except TokenError as error:
        for quote, what in (("'", "quoted string"), ('"', "quoted identifier"), ("/*", "comment")):
            if text.count(quote) - (text.count("*/") if what == "comment" else 0) & 1:
                at = text.rfind(quote)
                raise syntax(None, at + 1, f'unterminated {what} at or near "{text[at : at + 20]}"') from error
        raise syntax(None, len(text), "unterminated or invalid token") from error
    if len(tokens) > TOKENS_MAX:
        raise InvalidUsage(
            f"statement of {len(tokens)} words and signs is too long",
            sqlstate="54000",
            detail=f"at most {TOKENS_MAX} are accepted",
        )
    tokens = plain(with_runs(with_parameters(tokens, text, parameters), text, spans), text)
    for token in tokens:
        if token.token_type == TokenType.IDENTIFIER and not token.text:
            raise syntax('""', token.start + 1, 'zero-length delimited identifier at or near """"')
        if token.token_type == TokenType.NUMBER and len(token.text) > NUMBER_CHARS_MAX:
            raise out_of_range("numeric", token.text)
        if token.token_type == TokenType.NUMBER:
            _check_end(token, text)
    for dot, number in pairwise(tokens):
        # sqlglot would join ``. 2.5`` to the number ``0.2.5``
        if dot.token_type == TokenType.DOT and number.token_type == TokenType.NUMBER:
            if dot.end + 1 != number.start or "." in number.text:
                raise syntax(".", dot.start + 1)
    return tokens


_JUNK = re.compile(r"[^\W\d]")


def _check_end(number: Token, text: str) -> None:
    """42601 where a letter follows a number: sqlglot would read ``1_000`` as ``1 AS _000``."""
    start, junk = number.start, number.end if number.text[-1:] in ("e", "E") else number.end + 1
    if _JUNK.match(text, junk) and text[start - 1 : start] != "$":
        raise syntax(None, start + 1, f'trailing junk after numeric literal at or near "{text[start : junk + 1]}"')


_COMMAND = re.compile(
    r"(show|reset|explain|describe|comment|analyze|analyse|vacuum|call|"
    r"grant|revoke|prepare|execute|copy|fetch|truncate|optimize|rename|kill|refresh|reindex)\b",
    re.I,
)
"""Words after which sqlglot would swallow the rest as one raw string: blanked out before tokenizing."""


def head_word(text: str) -> tuple[str | None, str]:
    """A leading command word and the text with that word blanked out (positions stay true)."""
    if match := _COMMAND.match(text, blanks_end(text)):
        start, end = match.span(1)
        return match[1].lower(), text[:start] + " " * (end - start) + text[end:]
    return None, text
