"""ALTER: what becomes of an object, before any name in it is looked up.  Pure."""

from __future__ import annotations

from sqlglot import exp

from catalog_log.objects import INDEX, MATERIALIZED_VIEW, SOURCE, TABLE, VIEW
from sql.syntax import statements as st
from sql.syntax.column_defs import column_def, default_expression
from sql.syntax.statements import KIND_WORDS
from sql.syntax.tokens import Cursor
from sql.trees.errors import unsupported

_INSTEAD = "drop the object and create it as it should be"

_ALTERED = {"table": TABLE, "source": SOURCE, "view": VIEW, "index": INDEX}


def parse_alter(c: Cursor) -> st.ResetSource | st.Rename | st.RenameSchema | st.SetSchema | st.AlterColumns:
    """What stands after ALTER.  42601, 0A000 for what Postgres alters and we do not."""
    if c.take("materialized", "view"):
        kind = MATERIALIZED_VIEW
    elif c.take("schema"):
        return _schema(c)
    elif (word := c.word()) in _ALTERED:
        c.at += 1
        kind = _ALTERED[word]
    elif word not in _ALTERED_ELSEWHERE:
        raise c.error()
    else:
        raise unsupported(f"ALTER {word.upper()}", hint=_INSTEAD, position=c.position)
    exists = c.take("if", "exists")
    if kind == TABLE:
        c.take("only")
    name = c.name()
    if kind == TABLE:
        c.take("*")
    said = f"ALTER {KIND_WORDS[kind].upper()} …"
    at = c.position
    if c.take("rename"):
        return _rename(c, kind, name, exists)
    if c.take("set", "schema"):
        where = c.position - 1
        schema = c.identifier()
        c.end()
        return st.SetSchema(kind, name, schema, exists, where)
    if kind == SOURCE and c.take("reset"):
        cascade = c.take("cascade")
        if not cascade:
            c.take("restrict")
        c.end()
        return st.ResetSource(name, exists, cascade)
    if kind == TABLE and c.word() in ("add", "drop", "alter"):
        actions = [_action(c)]
        while c.take(","):
            actions.append(_action(c))
        c.end()
        return st.AlterColumns(kind, name, tuple(actions), exists)
    if c.word() in _ALTERATIONS:
        raise unsupported(f"{said} {c.word().upper()}", hint=_INSTEAD, position=at)
    raise c.error()


_ALTERED_ELSEWHERE = frozenset(
    "aggregate cluster collation connection conversion database default domain event extension foreign function group "
    "language large operator policy procedure publication role routine rule secret sequence server sink "
    "statistics subscription system tablespace text trigger type user".split()
)
"""What Postgres (or Materialize) alters and we do not."""

_ALTERATIONS = frozenset(
    "add alter attach cluster depends detach disable drop enable force inherit no not of owner replica reset set "
    "validate".split()
)
"""First words of how Postgres alters things and we do not."""


def _schema(c: Cursor) -> st.RenameSchema:
    name = c.name()
    if c.word() == "owner":
        raise unsupported("ALTER SCHEMA … OWNER", hint=_INSTEAD, position=c.position)
    c.expect("rename", "to")
    new = c.identifier()
    c.end()
    return st.RenameSchema(name, new)


def _rename(c: Cursor, kind: str, name: st.Name, exists: bool) -> st.Rename | st.AlterColumns:
    if c.take("to"):
        new = c.identifier()
        c.end()
        return st.Rename(kind, name, new, exists)
    if kind == INDEX or c.word() in ("constraint", "attribute", "value"):
        raise unsupported(f"ALTER {KIND_WORDS[kind].upper()} … RENAME {(c.word() or '').upper()}".rstrip())
    c.take("column")
    column = _column(c)
    c.expect("to")
    action = st.RenameColumn(column, c.identifier())
    c.end()
    return st.AlterColumns(kind, name, (action,), exists)


def _action(c: Cursor) -> st.ColumnAction:
    """One of ALTER TABLE's.  Constraints and partitions are refused by name."""
    at, verb = c.current, c.word()
    c.at += 1
    if c.word() in _CONSTRAINTS:
        raise unsupported(f"ALTER TABLE … {verb.upper()} {c.word().upper()}", position=at.start + 1)
    c.take("column")
    if verb == "add":
        exists = c.take("if", "not", "exists")
        return st.AddColumn(column_def(c), exists)
    exists = verb == "drop" and c.take("if", "exists")
    column = _column(c)
    if verb == "drop":
        cascade = c.take("cascade")
        if not cascade:
            c.take("restrict")
        return st.DropColumn(column, exists, cascade)
    if c.take("set", "default"):
        default, text = default_expression(c)
        return st.SetDefault(column) if isinstance(default, exp.Null) else st.SetDefault(column, default, text)
    if c.take("drop", "default"):
        return st.SetDefault(column)
    if c.take("drop", "not", "null"):
        return st.DropNotNull(column)
    if c.take("set", "not", "null"):
        raise unsupported(
            "ALTER COLUMN … SET NOT NULL",
            hint="who says it would have to look at every row: add a column that is NOT NULL with a DEFAULT instead",
            position=at.start + 1,
        )
    if c.word() in ("type", "set", "add", "restart", "reset", "drop"):
        raise unsupported(f"ALTER COLUMN … {c.word().upper()}", hint=_INSTEAD, position=at.start + 1)
    raise c.error()


_CONSTRAINTS = frozenset("check constraint exclude foreign primary unique".split())


def _column(c: Cursor) -> st.Name:
    start = c.position - 1
    return st.Name((c.identifier(),), start)
