"""Column defaults: expressions without columns, checked when a table is made and evaluated when a row is."""

from __future__ import annotations

from sqlglot import exp
from sqlglot.optimizer.annotate_types import annotate_types
from sqlglot.optimizer.normalize_identifiers import normalize_identifiers

from catalog_log import records
from catalog_log.objects import Column, Table
from journal.errors import InvalidUsage
from sql.binding.bind_select import check_query
from sql.binding.known_args import check_known
from sql.objects.names import ImageLike, Names
from sql.statements.sequence_calls import Kept, Meaning, Said, call_of, check_choices, of_value
from sql.syntax.column_defs import ColumnDef
from sql.syntax.to_tree import parse_tokens
from sql.syntax.tokens import tokenize
from sql.typing.assign import assign
from sql.typing.check import Checker
from sql.typing.check_zoned import checker_for
from sql.typing.float_ranges import with_ranges
from sql.typing.rows_made import check_none
from sql.typing.scope import Scope
from trees import types as t
from trees.errors import unsupported
from trees.nodes import cast, position, text_literal, unnest
from values.types import SqlType, parse_type


def check_default(
    node: exp.Expression, column: str, wanted: SqlType, meaning: Meaning, zone: str = "UTC"
) -> exp.Expression:
    """The DEFAULT expression typed and assigned to its column.  0A000 for columns, subqueries and parameters in it, and
    for what depends on the ``zone`` of the session that says it: it means UTC to every session.  ``meaning`` says which
    sequences the names in it mean."""
    if node.find(exp.Query, exp.Subquery, exp.AggFunc, exp.Window):
        raise unsupported("a subquery or aggregate in DEFAULT")
    if node.find(exp.Column):
        raise InvalidUsage("cannot use column reference in DEFAULT expression", sqlstate="0A000")
    check_none([node], "DEFAULT expressions")
    if node.find(exp.Parameter):
        raise InvalidUsage("there is no parameter $1", sqlstate="42P02")
    checker = checker_for(zone, lambda query, scope: check_query(checker, query, scope, {}), defines=True)
    return of_calls(node, column, wanted, checker, meaning)


def of_calls(
    node: exp.Expression, column: str, wanted: SqlType, checker: Checker, meaning: Meaning
) -> exp.Expression:
    """:func:`typed_expression` of an expression in which sequences may be called."""
    resolved = of_value(node, meaning)
    typed = typed_expression(resolved, column, wanted, checker)
    if resolved is not node:
        check_choices(typed)
    return typed


def read_by_default(column: ColumnDef, image: ImageLike, names: Names) -> tuple[str, ...]:
    """The ids of the sequences that the DEFAULT of a column reads, which is checked: :func:`check_default`."""
    meaning = Said(image, names, kept=True)
    check_default(column.default, column.name, column.type, meaning, names.zone)
    if meaning.ids and image.genesis.format_version < records.COLUMN_IDS_FROM:
        raise unsupported(
            f"a sequence in DEFAULT in a catalog of format {image.genesis.format_version}",
            hint=f"it is kept by catalogs made with format {records.COLUMN_IDS_FROM} or later",
        )
    return tuple(meaning.ids)


def typed_expression(
    node: exp.Expression, column: str, wanted: SqlType, checker: Checker
) -> exp.Expression:
    """A constant expression, typed and made assignable to ``column``.  42804 where it cannot be.

    Not yet with the digits and fields of ``wanted``, to which rows are held when they are made.
    """
    check_none([node], "VALUES")
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
    with_ranges(holder, False)
    return assign(holder.this, got, wanted.plain, column, checker.zone)


def default_of(table: Table, column: Column) -> exp.Expression | None:
    """What a column gets where no value is said, typed; ``None`` for nothing."""
    identity = table.identity_of(column)
    if identity is not None:
        return cast(call_of("nextval", identity[1]), parse_type(column.type).plain)
    if column.default is None:
        return None
    tree = parse_tokens(tokenize(column.default), column.default)
    return check_default(tree, column.name, parse_type(column.type), Kept(table.reads_of(column)))
