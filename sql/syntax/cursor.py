"""A cursor over the tokens of one statement: what the hand-written part of the grammar reads through.

sqlglot tokenizes and parses every query and expression; only Tidemark's own statements (CREATE SOURCE, IN CLUSTER…)
are read here.  All positions are offsets into the text that was given to :class:`Cursor`.
"""

from __future__ import annotations

import re
from typing import Literal, overload

from sqlglot import exp
from sqlglot.tokens import Token, TokenType

from journal.errors import InvalidUsage
from sql.syntax.reserved import RESERVED
from sql.syntax.statement import Name
from sql.syntax.to_tree import parse_tokens, parse_unwritten
from sql.syntax.tokens import tokenize
from trees.errors import syntax
from trees.unwritten import Unwritten

_NAME = re.compile(r"[^\W\d][\w$]*")


class Cursor:
    """Reads tokens one after another.  Every complaint is a 42601 with the position of the word complained about."""

    def __init__(self, text: str, tokens: list[Token] | None = None) -> None:
        self.text = text
        self.tokens = tokenize(text) if tokens is None else tokens
        """Never changed."""
        self.at = 0
        self._words: dict[int, str | None] = {}
        """By place in ``tokens``: a reader asks for each some three times."""

    @property
    def current(self) -> Token | None:
        return self.tokens[self.at] if self.at < len(self.tokens) else None

    @property
    def position(self) -> int:
        """Where the current token begins, counted from 1; behind the text where there is none left."""
        return (self.current.start if self.current is not None else len(self.text)) + 1

    def source(self, token: Token) -> str:
        return self.text[token.start : token.end + 1]

    def word(self, ahead: int = 0) -> str | None:
        """The word or sign ``ahead`` of here in lower case; quoted things are never words.

        sqlglot makes one token of some pairs (``PRIMARY KEY``): their first word stands for them.
        """
        at = self.at + ahead
        try:
            return self._words[at]
        except KeyError:
            word = self._words[at] = self._word_at(at)
            return word

    def _word_at(self, at: int) -> str | None:
        if at >= len(self.tokens):
            return None
        token = self.tokens[at]
        if token.token_type in (TokenType.STRING, TokenType.IDENTIFIER):
            return None
        return self.source(token).lower().split()[0]

    def error(self, message: str | None = None) -> InvalidUsage:
        token = self.current
        if token is None:
            return syntax(None, len(self.text.rstrip()) + 1, message)
        return syntax(self.source(token), token.start + 1, message)

    def take(self, *words: str) -> bool:
        """Step over ``words`` if exactly they come next."""
        for ahead, word in enumerate(words):
            if self.word(ahead) != word:
                return False
        self.at += len(words)
        return True

    def expect(self, *words: str) -> None:
        for word in words:
            if not self.take(word):
                raise self.error()

    def end(self) -> None:
        if self.current is not None:
            raise self.error()

    def identifier(self, allow: tuple[str, ...] = ()) -> str:
        """One identifier: folded to lower case unless it was quoted.  ``allow`` are reserved words that pass here."""
        token = self.current
        if token is None:
            raise self.error()
        if token.token_type == TokenType.IDENTIFIER:
            self.at += 1
            if not token.text:
                raise syntax(None, token.start + 1, "zero-length delimited identifier")
            return token.text
        source = self.source(token)
        if token.token_type == TokenType.STRING or not _NAME.fullmatch(source):
            raise self.error()
        if source.lower() in RESERVED and source.lower() not in allow:
            raise self.error()
        self.at += 1
        return token.text.lower()  # which has been cut where it is too long

    def name(self) -> Name:
        """A name of one to three parts."""
        start = self.position - 1
        parts = [self.identifier()]
        while self.take("."):
            parts.append(self.identifier())
        if len(parts) > 3:
            raise syntax(None, start + 1, f"improper qualified name (too many dotted names): {'.'.join(parts)}")
        return Name(tuple(parts), start)

    @property
    def at_string(self) -> bool:
        return self.current is not None and self.current.token_type == TokenType.STRING

    def string(self) -> str:
        if not self.at_string:
            raise self.error()
        token = self.current
        self.at += 1
        return token.text

    def names(self) -> tuple[str, ...]:
        """``( a, b, c )``."""
        self.expect("(")
        found = [self.identifier()]
        while self.take(","):
            found.append(self.identifier())
        self.expect(")")
        return tuple(found)

    def until(self, *stops: str) -> list[Token]:
        """The tokens up to a top-level ``stops`` word, a closing bracket that is not ours, or the end."""
        found, depth = [], 0
        while (token := self.current) is not None:
            word = self.word()
            if depth == 0 and (word in stops or word == ")"):
                break
            depth += (word in ("(", "[")) - (word in (")", "]"))
            found.append(token)
            self.at += 1
        return found

    @overload
    def parse_query(self, unwritten: Literal[False] = False) -> exp.Expression: ...

    @overload
    def parse_query(self, unwritten: Literal[True]) -> exp.Expression | Unwritten: ...

    def parse_query(self, unwritten: bool = False) -> exp.Expression | Unwritten:
        """Everything that is left, as a query.  ``unwritten``: where its stretches may stay unwritten they do."""
        tokens = self.tokens[self.at :]
        if not tokens or self.word() not in ("select", "with", "values", "table", "("):
            raise self.error()
        if self.word() == "table":
            at = tokens[0]
            words = ("SELECT", "select"), ("STAR", "*"), ("FROM", "from")
            tokens = [*(made_token(kind, text, at) for kind, text in words), *tokens[1:]]
        self.at = len(self.tokens)
        return (parse_unwritten if unwritten else parse_tokens)(tokens, self.text)


def made_token(kind: str, text: str, at: Token) -> Token:
    """A token that the user did not write, in the place of one that he did."""
    return Token(TokenType[kind], text, at.line, at.col, at.start, at.end)
