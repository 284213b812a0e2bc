"""Columns as statements define them.  Pure."""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp

from catalog_log.objects import ALWAYS, BY_DEFAULT
from journal.errors import InvalidUsage
from sql.syntax.constraints import CONSTRAINTS, Constraint, constraint_said
from sql.syntax.cursor import Cursor
from sql.syntax.sequences import Options, sequence_options
from sql.syntax.to_tree import parse_tokens
from trees.errors import unsupported
from values.types import SqlType, parse_type

COLUMNS_MAX = 1600
"""As in Postgres (MaxHeapAttributeNumber)."""

SYSTEM_COLUMNS = frozenset({"tableoid", "xmin", "cmin", "xmax", "cmax", "ctid"})
"""Of every table of Postgres's; no column of a table may be called so."""

_AFTER_TYPE = (
    "not",
    "null",
    "default",
    "primary",
    "unique",
    "check",
    "references",
    "collate",
    "generated",
    "constraint",
    ",",
)


@dataclass(frozen=True)
class Identity:
    """GENERATED … AS IDENTITY: ``kind`` is ``ALWAYS`` or ``BY_DEFAULT`` of :mod:`catalog_log.objects`."""

    kind: str
    options: Options


_SERIAL = {
    "smallserial": "int2", "serial2": "int2", "serial": "int4", "serial4": "int4", "bigserial": "int8",
    "serial8": "int8",
}  # fmt: skip


@dataclass(frozen=True)
class ColumnDef:
    name: str
    type: SqlType
    nullable: bool = True
    default: exp.Expression | None = None
    default_sql: str | None = None
    serial: bool = False
    """Whether it is a ``serial``: an integer with a sequence of its own for a DEFAULT."""
    identity: Identity | None = None
    constraints: tuple[Constraint, ...] = ()


def column_list(c: Cursor, relation: str) -> tuple[ColumnDef, ...]:
    """``( column, … )``; 54011 for too many, 0A000 for constraints."""
    columns, constraints = table_elements(c, relation)
    if constraints:
        raise unsupported(f"{constraints[0].kind.upper()} here", position=constraints[0].at + 1)
    return columns


def table_elements(c: Cursor, table: str) -> tuple[tuple[ColumnDef, ...], tuple[Constraint, ...]]:
    """``( column or constraint, … )``: the columns, and all constraints in the order in which they stand, those of
    columns among them.  54011 for too many columns."""
    c.expect("(")
    if c.take(")"):
        return (), ()
    found: list[ColumnDef] = []
    constraints: list[Constraint] = []
    while True:
        said = constraint_said(c) if c.word() in CONSTRAINTS else None
        if said is None:
            found.append(column_def(c, table))
            constraints += found[-1].constraints
        else:
            constraints.append(said)
        if not c.take(","):
            break
    c.expect(")")
    if len(found) > COLUMNS_MAX:
        raise InvalidUsage(f"relations can have at most {COLUMNS_MAX} columns", sqlstate="54011")
    return tuple(found), tuple(constraints)


def column_def(c: Cursor, table: str) -> ColumnDef:
    """One column of ``table``: its name, its type, and what is said of it."""
    if c.word() in (*CONSTRAINTS, "like"):
        named = c.word() == "constraint"
        word = c.word(2 if named else 0) or "constraint"
        raise unsupported(f"{word.upper()} in a table definition", position=c.position)
    at = c.position
    name = c.identifier()
    if name in SYSTEM_COLUMNS:
        told = f'column name "{name}" conflicts with a system column name'
        raise InvalidUsage(told, sqlstate="42701", position=at)
    type_tokens = c.until(*_AFTER_TYPE)
    if not type_tokens:
        raise c.error()
    type_text = c.text[type_tokens[0].start : type_tokens[-1].end + 1]
    serial = _SERIAL.get(c.source(type_tokens[0]).lower())
    if serial is not None and len(type_tokens) > 1:
        raise unsupported("an array of serial", hint="write bigint[]", position=type_tokens[0].start + 1)
    try:
        sql_type = parse_type(serial or type_text)
    except InvalidUsage as error:
        error.position = type_tokens[0].start + 1
        raise
    nullable, default, default_sql, identity = None, None, None, None
    constraints: list[Constraint] = []
    while c.word() not in (",", ")", None):
        at = c.position
        if (null := c.take("null")) or c.take("not", "null"):
            if nullable is not None and nullable is not null:
                raise _twice("conflicting NULL/NOT NULL declarations", name, table, at)
            nullable = null
        elif c.word() in _NAMED_OR_NOT and (said := constraint_said(c, name)) is not None:
            constraints.append(said)
        elif c.word() == "constraint" and c.word(2) == "not":
            c.at += 2  # a NOT NULL has no name in any catalog
        elif c.take("default"):
            if default is not None:
                raise _twice("multiple default values specified", name, table, at)
            default, default_sql = default_expression(c)
        elif c.word() == "generated" and (found := identity_said(c)) is not None:
            if identity is not None:
                raise c.error(f'multiple identity specifications for column "{name}"')
            identity = found
        elif c.word() in ("references", "collate", "generated", "constraint"):
            raise unsupported(f"{c.word().upper()} on a column", position=c.position)
        else:
            raise c.error()
    if isinstance(default, exp.Null):  # as if nothing were said
        default = default_sql = None
    if nullable is None:
        nullable = serial is None and identity is None
    found = tuple(constraints)
    return ColumnDef(name, sql_type, nullable, default, default_sql, serial is not None, identity, found)


def _twice(what: str, column: str, table: str, at: int) -> InvalidUsage:
    return InvalidUsage(f'{what} for column "{column}" of table "{table}"', sqlstate="42601", position=at)


_NAMED_OR_NOT = ("constraint", "primary", "unique", "check")
"""First words of constraints that a column may have."""


def identity_said(c: Cursor) -> Identity | None:
    """``GENERATED … AS IDENTITY [(option…)]``; ``None``, and nothing stepped over, where it is generated otherwise."""
    for words, kind in _GENERATED:
        if c.take("generated", *words, "as", "identity"):
            options: Options = {}
            if c.take("("):
                options = sequence_options(c)
                c.expect(")")
            return Identity(kind, options)
    return None


_GENERATED = ((("always",), ALWAYS), (("by", "default"), BY_DEFAULT))


def generated(c: Cursor) -> str:
    """ALWAYS or BY DEFAULT."""
    for words, kind in _GENERATED:
        if c.take(*words):
            return kind
    raise c.error()


def default_expression(c: Cursor) -> tuple[exp.Expression, str]:
    """What stands after DEFAULT, and how it was written."""
    stops = ("not", "null", "primary", "unique", "check", "references", "generated", "constraint", ",")
    tokens = c.until(*stops) if c.word() != "null" else [c.tokens[c.at]]
    if tokens and tokens[0] is c.current:
        c.at += 1
    if not tokens:
        raise c.error()
    return parse_tokens(tokens, c.text), c.text[tokens[0].start : tokens[-1].end + 1]
