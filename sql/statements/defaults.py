"""Column defaults: expressions without columns, checked when a table is made and evaluated when a row is."""

from __future__ import annotations

from sqlglot import exp
from sqlglot.optimizer.annotate_types import annotate_types
from sqlglot.optimizer.normalize_identifiers import normalize_identifiers

from journal.errors import InvalidUsage
from sql.binding.bind_select import check_query
from sql.binding.known_args import check_known
from sql.syntax.tokens import parse_tokens, tokenize
from sql.trees import types as t
from sql.trees.errors import unsupported
from sql.trees.nodes import position, text_literal, unnest
from sql.typing.assign import assign
from sql.typing.check import Checker
from sql.typing.check_zoned import checker_for
from sql.typing.scope import Scope
from values.types import SqlType


def check_default(node: exp.Expression, column: str, wanted: SqlType, zone: str = "UTC") -> exp.Expression:
    """The DEFAULT expression typed and assigned to its column.  0A000 for columns, subqueries and parameters in it, and
    for what depends on the ``zone`` of the session that says it: it means UTC to every session."""
    if node.find(exp.Query, exp.Subquery, exp.AggFunc, exp.Window):
        raise unsupported("a subquery or aggregate in DEFAULT")
    if node.find(exp.Column):
        raise InvalidUsage("cannot use column reference in DEFAULT expression", sqlstate="0A000")
    if node.find(exp.Parameter):
        raise InvalidUsage("there is no parameter $1", sqlstate="42P02")
    checker = checker_for(zone, lambda query, scope: check_query(checker, query, scope, {}), defines=True)
    return typed_expression(node, column, wanted, checker)


def typed_expression(
    node: exp.Expression, column: str, wanted: SqlType, checker: Checker
) -> exp.Expression:
    """A constant expression, typed and made assignable to ``column``.  42804 where it cannot be.

    Not yet with the digits and fields of ``wanted``, to which rows are held when they are made.
    """
    holder = exp.Paren(this=normalize_identifiers(node.copy(), dialect="postgres"))
    check_known(holder)
    annotate_types(holder, dialect="postgres")
    got = checker.visit(holder.this, Scope())
    given = unnest(holder.this)
    if got == t.UNKNOWN and wanted.fields is not None and isinstance(given, exp.Literal):
        return text_literal(given.this, wanted, position(given))
    if got == t.UNKNOWN:
        checker.coerce(holder.this, got, wanted.plain)
        got = wanted.plain
    return assign(holder.this, got, wanted.plain, column, checker.zone)


def parse_default(text: str, column: str, wanted: SqlType) -> exp.Expression:
    """A stored DEFAULT, typed again."""
    return check_default(parse_tokens(tokenize(text), text), column, wanted)
