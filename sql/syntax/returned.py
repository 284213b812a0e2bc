"""RETURNING as it is written, behind any statement that writes rows.  Pure."""

from __future__ import annotations

from sqlglot import exp

from sql.syntax.cursor import Cursor, made_token
from sql.syntax.to_tree import parse_tokens
from trees.errors import syntax


def read_returning(c: Cursor) -> tuple[exp.Expression, ...] | None:
    """The outputs that RETURNING asks for, to the end of the statement; ``None`` where that is here."""
    at = c.current
    if at is None:
        return None
    c.expect("returning")
    tokens = c.tokens[c.at :]
    if not tokens:
        raise c.error()
    c.at = len(c.tokens)
    made = parse_tokens([made_token("SELECT", "select", at), *tokens], c.text)
    if not isinstance(made, exp.Select) or any(made.args.get(k) for k in made.args if k not in ("expressions", "kind")):
        raise syntax(c.source(tokens[-1]), tokens[-1].start + 1)
    return tuple([each.pop() for each in list(made.expressions)])
