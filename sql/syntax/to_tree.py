"""Tokens to a syntax tree: one query or one expression.

sqlglot parses it; what it refuses is 42601 here, with the position of the word that it stopped at.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import partial
from itertools import pairwise

from sqlglot import exp
from sqlglot.errors import ParseError
from sqlglot.tokens import Token, TokenType

from journal.errors import InvalidUsage
from sql.syntax.constants import CONSTANTS, plain_constants
from sql.syntax.dialect import DIALECT, TAKEN_APART
from sql.syntax.mended_tokens import mended
from sql.syntax.stretches import KIND, NotHere, filled, keep
from sql.syntax.tokens import tokenize
from trees.budget import Regrouped, bounded, surveyed
from trees.errors import syntax, untold
from trees.unwritten import Unwritten

_NO_NAME = (TokenType.COMMA, TokenType.R_PAREN, TokenType.SEMICOLON)


@bounded
def parse_tokens(tokens: list[Token], text: str) -> exp.Expression:
    """Parse one query or expression; identifiers keep their positions in ``text``.  42601 otherwise.

    54001 beyond the bounds of :mod:`trees.budget`.
    """
    return _written(*_parsed(tokens, text))


@bounded
def parse_unwritten(tokens: list[Token], text: str) -> exp.Expression | Unwritten:
    """The same of a query, whose stretches are not written out where that can wait.  Raises the same."""
    root, by_stretches = _parsed(tokens, text)
    if not by_stretches:
        return _written(root, by_stretches)
    whole = root.copy()
    if keep(root, _item_alone):
        try:
            return Unwritten(_surveyed(root), partial(bounded(_written), whole, True))
        except (InvalidUsage, Regrouped):
            pass  # which is found again
    return _written(whole, by_stretches)


def _parsed(tokens: list[Token], text: str) -> tuple[exp.Expression, bool]:
    """What the parser makes of them, and whether there are stretches in it."""
    tokens = mended(tokens)
    for token, following in pairwise([*tokens, None]):
        # sqlglot would do without the name
        if token.token_type == TokenType.ALIAS and (following is None or following.token_type in _NO_NAME):
            if following is None:
                raise syntax(None, len(text.rstrip()) + 1)
            raise syntax(text[following.start : following.end + 1], following.start + 1)
    try:
        found = DIALECT.parser().parse(tokens, text)
    except ParseError as error:
        raise _syntax_of(error, tokens, text) from error
    except TAKEN_APART as error:  # of a call that it takes apart
        raise untold("this call of a function", error) from error
    if len(found) != 1 or found[0] is None or isinstance(found[0], exp.Command):
        first = tokens[0] if tokens else None
        raise syntax(text[first.start : first.end + 1] if first else None, first.start + 1 if first else 1)
    return found[0], any(token.token_type == KIND for token in tokens)


def _written(root: exp.Expression, by_stretches: bool) -> exp.Expression:
    return _surveyed(filled(root, _item_alone) if by_stretches else root)


def _surveyed(root: exp.Expression) -> exp.Expression:
    nodes = surveyed(root, (*CONSTANTS, *_NOTED))
    _note(nodes)
    return plain_constants(root, nodes)


def _item_alone(text: str) -> exp.Expression:
    """What the parser makes of ``text``.  ``NotHere`` where it makes nothing of it."""
    try:
        [found] = DIALECT.parser().parse(mended(tokenize(text)), text)
    except (ParseError, *TAKEN_APART) as error:
        raise NotHere from error
    return found


_NOTED = (exp.Bracket, exp.Anonymous, exp.Dot)


def _note(nodes: Sequence[exp.Expression]) -> None:
    """Note on each subscript that it counts from 1, which every generator of SQL reads, and make ``"lower"(x)``
    ``lower(x)``: the same name, also for whoever looks functions up by it."""
    for node in nodes:
        if isinstance(node, exp.Bracket):
            node.set("offset", 1)
        elif isinstance(node, exp.Dot):
            if node.args.get("this") is None:  # LATERAL .a
                raise syntax(".", None)
        elif isinstance(node, exp.Anonymous) and isinstance(node.this, exp.Identifier):
            if _FUNCTION.fullmatch(node.name):
                node.set("this", node.name)


_FUNCTION = re.compile(r"[a-z_][a-z0-9_]*")
"""Names of functions that mean the same with quotes and without."""


def _syntax_of(error: ParseError, tokens: list[Token], text: str) -> InvalidUsage:
    first = error.errors[0] if error.errors else {}
    line, col, near = first.get("line"), first.get("col"), first.get("highlight")
    if not line or not col:
        return syntax(None, len(text.rstrip()) + 1)
    starts = [0]
    for found in re.finditer("\n", text):
        starts.append(found.end())
    end = starts[min(line, len(starts)) - 1] + col - 1
    token = next((t for t in tokens if t.start <= end <= t.end), None)
    if token is tokens[-1] and "equired keyword" in str(error):
        return syntax(None, len(text.rstrip()) + 1)
    if token is not None:
        return syntax(text[token.start : token.end + 1], token.start + 1)
    return syntax(near or None, end + 1)
