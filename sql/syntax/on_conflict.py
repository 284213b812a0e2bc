"""ON CONFLICT as it is written behind the rows of an INSERT.  Pure."""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp
from sqlglot.tokens import Token

from sql.syntax.assigned import Assigned, assignments
from sql.syntax.cursor import Cursor, made_token
from sql.syntax.to_tree import parse_tokens
from trees.errors import syntax, unsupported


@dataclass(frozen=True)
class OnConflict:
    """``columns`` or ``constraint`` say which keys are meant, at ``at``; neither: all that there are.

    ``assigned`` is ``None`` for DO NOTHING; else ``values`` are what columns are set to, where ``where`` is true.
    """

    at: int
    columns: tuple[str, ...] | None = None
    constraint: str | None = None
    assigned: tuple[Assigned, ...] | None = None
    values: tuple[exp.Expression, ...] = ()
    where: exp.Expression | None = None


def read_conflict(c: Cursor) -> OnConflict | None:
    """ON CONFLICT, which may come next; ``None`` where it does not."""
    start = c.position - 1
    if not c.take("on", "conflict"):
        return None
    columns, constraint = None, None
    if c.word() == "(":
        columns = c.names()
        if c.word() == "where":
            raise unsupported("ON CONFLICT (…) WHERE", "there are no indexes of some rows", c.position)
    elif c.take("on", "constraint"):
        constraint = c.identifier()
    c.expect("do")
    if c.take("nothing"):
        return OnConflict(start, columns, constraint)
    at = c.current
    c.expect("update", "set")
    assert at is not None, "UPDATE was read"
    if columns is None and constraint is None:
        told = "ON CONFLICT DO UPDATE requires inference specification or constraint name"
        raise syntax(None, start + 1, told)
    values: list[list[Token]] = []
    assigned: list[Assigned] = []
    while True:
        assigned += assignments(c, values)
        if not c.take(","):
            break
    where: list[Token] = []
    if c.take("where"):
        where = c.until("returning")
        if not where:
            raise c.error()
    made = _values(c, at, [*values, where or [made_token("TRUE", "true", at)]])
    return OnConflict(start, columns, constraint, tuple(assigned), tuple(made[:-1]), made[-1] if where else None)


def _values(c: Cursor, at: Token, values: list[list[Token]]) -> list[exp.Expression]:
    comma = made_token("COMMA", ",", at)
    tokens = [token for value in values for token in (comma, *value)][1:]
    made = parse_tokens([made_token("SELECT", "select", at), *tokens], c.text)
    if not isinstance(made, exp.Select) or any(made.args.get(k) for k in made.args if k not in ("expressions", "kind")):
        raise syntax(c.source(tokens[-1]), tokens[-1].start + 1)
    for token in tokens:
        if c.source(token).lower() == "default":
            raise syntax(None, token.start + 1, "DEFAULT is not allowed in this context")
    for each in made.expressions:
        if isinstance(each, exp.Alias) or each.is_star:
            raise syntax(None, at.start + 1, "syntax error in ON CONFLICT DO UPDATE")
    if len(made.expressions) != len(values):
        raise c.error()
    return [each.pop() for each in list(made.expressions)]
