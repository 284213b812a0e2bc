"""Statement text to :mod:`sql.syntax.statements`: the first step of every plan.

``parse`` and ``split`` are pure.  Errors are 42601 with a position, or 0A000 for SQL that Tidemark does not do yet.
"""

from __future__ import annotations

from functools import lru_cache

from sqlglot import exp
from sqlglot.tokens import TokenType

from catalog_log.objects import INDEX, MATERIALIZED_VIEW, SOURCE, TABLE, VIEW
from journal.errors import InvalidUsage
from sql.syntax import statements as st
from sql.syntax.column_defs import column_list
from sql.syntax.parse_alter import parse_alter
from sql.syntax.session_words import parse_session_statement
from sql.syntax.tokens import STATEMENT_CHARS_MAX, Cursor, head_word, tokenize
from sql.syntax.values_list import Cells
from sql.syntax.values_list import read as read_values
from sql.trees.budget import bounded
from sql.trees.errors import syntax, unsupported

_INSTEAD = {
    "update": "tables are added to only: insert what changed, and let a view choose the latest",
    "delete": "tables are added to only: let a view leave out what is gone",
    "truncate": "tables are added to only: drop the table and create it anew",
    "copy": "use INSERT with many rows, or a source over a Kafka topic",
    "grant": "there are no roles: docs/security.md says who may reach what",
    "revoke": "there are no roles: docs/security.md says who may reach what",
}
"""What to do instead of a statement that is not here."""


def split(text: str) -> list[str]:
    """The statements of a simple query, without their semicolons; blank ones are left out.

    Text that cannot even be tokenized comes back whole, so that parsing it reports the error.
    """
    try:
        tokens = tokenize(text)
    except InvalidUsage:
        return [text]
    found, start = [], None
    end = 0
    for token in tokens:
        if token.token_type == TokenType.SEMICOLON:
            if start is not None:
                found.append(text[start:end])
            start = None
            continue
        start = token.start if start is None else start
        end = token.end + 1
    if start is not None:
        found.append(text[start:end])
    return found


@bounded
def parse(text: str) -> st.Statement:
    """The one statement in ``text`` (a trailing semicolon is fine).  Positions in errors count from its start."""
    plain = read_values(text) if len(text) <= STATEMENT_CHARS_MAX else None
    if plain is not None:
        return _insert_of(*plain)
    word, rest = head_word(text)
    tokens = tokenize(rest)
    while tokens and tokens[-1].token_type == TokenType.SEMICOLON:
        tokens.pop()
    stray = next((t for t in tokens if t.token_type == TokenType.SEMICOLON), None)
    if stray is not None:
        raise syntax(None, stray.start + 1, "cannot insert multiple commands into a prepared statement")
    cursor = Cursor(rest, tokens)
    if word == "explain":
        return _explain(cursor)
    if word == "comment":
        return _comment(cursor)
    if word is not None and word not in ("show", "reset"):
        raise unsupported(word.upper(), hint=_INSTEAD.get(word))
    if not tokens and word is None:
        return st.Empty()
    if word is None and cursor.word() in ("select", "values", "with", "table", "("):
        return st.Query(cursor.parse_query(), text)
    if word is None and cursor.word() in ("create", "drop", "insert"):
        return {"create": _create, "drop": _drop, "insert": _insert}[cursor.word()](cursor, text)
    if word is None and cursor.take("alter"):
        return parse_alter(cursor)
    return parse_session_statement(cursor, word)


def _explain(c: Cursor) -> st.Explain:
    mode = "plan"
    for candidate in ("plan", "timestamp", "strategy"):
        if c.take(candidate):
            mode = candidate
            c.take("for")
            break
    else:
        c.take("analyze") or c.take("verbose")
        if c.word() == "(":
            c.at += 1
            c.until()
            c.expect(")")
    if mode == "strategy" and c.word() not in ("create", "select", "with", "values", "("):
        c.take("materialized", "view") or c.take("view")
        name = c.name()
        c.end()
        return st.Explain(mode, None, name)
    if c.current is None:
        raise c.error()
    start = c.position - 1
    return st.Explain(mode, parse(" " * start + c.text[start:]))


def _if_not_exists(c: Cursor) -> bool:
    return c.take("if", "not", "exists")


def _create(c: Cursor, text: str) -> st.Statement:
    c.expect("create")
    if c.take("or", "replace"):
        raise unsupported("CREATE OR REPLACE", hint="drop the object first, in a statement of its own")
    for word in ("temp", "temporary", "unlogged", "unique", "recursive"):
        if c.word() == word:
            raise unsupported(f"CREATE {word.upper()} {(c.word(1) or '').upper()}".rstrip())
    if c.take("schema"):
        exists = _if_not_exists(c)
        name = c.name()
        c.end()
        return st.CreateSchema(name, exists)
    if c.take("table"):
        return _create_table(c, text)
    if c.take("source"):
        return _create_source(c, text)
    if c.take("materialized", "view"):
        return _create_view(c, text, True)
    if c.take("view"):
        return _create_view(c, text, False)
    if c.take("index"):
        return _create_index(c, text)
    if c.word() in (
        "database",
        "cluster",
        "role",
        "user",
        "type",
        "function",
        "sequence",
        "extension",
        "sink",
        "connection",
        "trigger",
        "procedure",
        "domain",
        "aggregate",
        "operator",
        "rule",
        "policy",
    ):
        raise unsupported(f"CREATE {c.word().upper()}")
    raise c.error()


def _create_table(c: Cursor, text: str) -> st.CreateTable:
    exists = _if_not_exists(c)
    name = c.name()
    if c.word() == "as":
        raise unsupported("CREATE TABLE AS", hint="create the table, then INSERT INTO … SELECT")
    columns = column_list(c)
    if c.word() in ("with", "inherits", "partition", "using", "tablespace", "as"):
        raise unsupported(f"CREATE TABLE … {c.word().upper()}")
    c.end()
    return st.CreateTable(name, columns, exists, text)


def _create_source(c: Cursor, text: str) -> st.CreateSource:
    exists = _if_not_exists(c)
    name = c.name()
    if c.word() != "(":
        raise c.error("CREATE SOURCE needs a column list")
    columns = column_list(c)
    for column in columns:
        if column.default is not None:
            raise unsupported("DEFAULT in a source's column list")
    c.expect("from", "kafka")
    bracket = c.take("(")
    if c.word() in ("broker", "connection"):
        raise unsupported("a source from another Kafka cluster")
    c.expect("topic")
    c.take("=")
    topic = c.string()
    if bracket:
        c.expect(")")
    c.expect("format")
    if not c.take("json"):
        if c.word() in ("avro", "csv", "protobuf", "text", "bytes", "regex"):
            raise unsupported(f"FORMAT {c.word().upper()}", hint="use FORMAT JSON", position=c.position)
        raise c.error()
    if c.take("envelope") and not c.take("none"):
        if c.word() in ("upsert", "debezium"):
            raise unsupported(f"ENVELOPE {c.word().upper()}", hint="use ENVELOPE NONE", position=c.position)
        raise c.error()
    c.end()
    return st.CreateSource(name, columns, topic, "json", "none", exists, text)


def _in_cluster(c: Cursor) -> str | None:
    return c.identifier(allow=("default",)) if c.take("in", "cluster") else None


def _create_view(c: Cursor, text: str, materialized: bool) -> st.CreateView:
    exists = _if_not_exists(c)
    name = c.name()
    columns = c.names() if c.word() == "(" else None
    cluster = _in_cluster(c) if materialized else None
    c.expect("as")
    return st.CreateView(name, columns, c.parse_query(), materialized, cluster, exists, text)


def _create_index(c: Cursor, text: str) -> st.CreateIndex:
    c.take("concurrently")
    exists = _if_not_exists(c)
    name = c.name() if c.word() not in ("on", "in") else None
    cluster = _in_cluster(c)
    c.expect("on")
    relation = c.name()
    if c.take("using") and c.identifier() not in ("btree", "hash"):
        raise unsupported("an index method other than the arrangement")
    columns = c.names()
    c.end()
    return st.CreateIndex(name, relation, columns, cluster, exists, text)


_DROPPED = {"table": TABLE, "source": SOURCE, "view": VIEW, "index": INDEX, "schema": "schema"}


def _drop(c: Cursor, text: str) -> st.Drop:
    c.expect("drop")
    if c.take("materialized", "view"):
        kind = MATERIALIZED_VIEW
    elif (word := c.word()) in _DROPPED:
        c.at += 1
        kind = _DROPPED[word]
    elif word in ("database", "cluster", "role", "user", "type", "function", "sequence", "extension", "sink", "owned"):
        raise unsupported(f"DROP {word.upper()}")
    else:
        raise c.error()
    exists = c.take("if", "exists")
    names = [c.name()]
    while c.take(","):
        names.append(c.name())
    cascade = c.take("cascade")
    if not cascade:
        c.take("restrict")
    c.end()
    return st.Drop(kind, tuple(names), exists, cascade)


_DESCRIBED = {
    **_DROPPED, "materialized view": MATERIALIZED_VIEW, "database": "database", "cluster": "cluster",
    "column": "column",
}  # fmt: skip


def _comment(c: Cursor) -> st.Comment:
    c.expect("on")
    kind = "materialized view" if c.take("materialized", "view") else c.word()
    if kind not in _DESCRIBED:
        raise c.error() if c.current is None else unsupported(f"COMMENT ON {(kind or '').upper()}".rstrip())
    if kind != "materialized view":
        c.at += 1
    name = st.Name((c.identifier(allow=("default",)),)) if kind == "cluster" else c.name()
    c.expect("is")
    text = None if c.take("null") else c.string()
    c.end()
    return st.Comment(_DESCRIBED[kind], name, text or None)


HEADS_MAX, HEAD_CHARS_MAX = 512, 1_000
"""Beginnings of INSERTs that are remembered, and how long one may be: a program's INSERTs differ in their values."""


def _insert_of(head: str, cells: Cells) -> st.Insert:
    return st.Insert(*(_known_head if len(head) <= HEAD_CHARS_MAX else _head)(head), cells)


def _head(head: str) -> tuple[st.Name, tuple[str, ...] | None]:
    c = Cursor(head)
    c.expect("insert", "into")
    table = c.name()
    columns = tuple(c.names()) if c.word() == "(" else None
    c.end()
    return table, columns


_known_head = lru_cache(HEADS_MAX)(_head)


def _insert(c: Cursor, text: str) -> st.Insert:
    c.expect("insert", "into")
    table = c.name()
    if c.take("as"):
        c.identifier()
    columns = None
    if c.word() == "(" and c.word(1) not in ("select", "with", "values", "("):
        columns = c.names()
    if c.word() == "overriding":
        raise unsupported("OVERRIDING")
    if c.take("default", "values"):
        c.end()
        return st.Insert(table, columns, None)
    body = c.tokens[c.at :]
    for this, following in zip(body, [*body[1:], None], strict=False):
        word = c.source(this).lower()
        if word == "returning" or (
            word == "on" and following is not None and c.source(following).lower() == "conflict"
        ):
            raise unsupported(
                "INSERT … " + ("RETURNING" if word == "returning" else "ON CONFLICT"), position=this.start + 1
            )
    source: exp.Expression = Cursor(c.text, body).parse_query()
    return st.Insert(table, columns, source)
