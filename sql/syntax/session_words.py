"""Statements about the session rather than the data: SET, SHOW, RESET, transactions, DISCARD and their kin."""

from __future__ import annotations

from sqlglot.tokens import TokenType

from sql.syntax import statements as st
from sql.syntax.tokens import Cursor
from sql.trees.errors import unsupported

_SHOWN = {
    ("tables",): "tables",
    ("views",): "views",
    ("materialized", "views"): "materialized views",
    ("sources",): "sources",
    ("indexes",): "indexes",
    ("schemas",): "schemas",
    ("databases",): "databases",
    ("clusters",): "clusters",
    ("objects",): "objects",
    ("columns",): "columns",
}

_CREATED = (("materialized", "view"), ("table",), ("view",), ("source",), ("index",))


def parse_session_statement(c: Cursor, head: str | None) -> st.Statement:
    """Parse with ``c`` behind a blanked-out ``show`` or ``reset`` (``head``), or at the statement's first word."""
    if head == "show":
        return _show(c)
    if c.take("set"):
        return _set(c)
    if head == "reset":
        if c.take("all"):
            c.end()
            return st.ResetAll()
        name = _variable(c)
        c.end()
        return st.SetVariable(name, None)
    word = c.word()
    if word in ("begin", "start", "commit", "end", "rollback", "abort", "savepoint", "release"):
        return _transaction(c)
    if word in ("discard", "listen", "unlisten", "notify", "deallocate", "close", "checkpoint", "lock"):
        c.at += 1
        if word == "discard":
            what = c.identifier() if c.word() != "all" else (c.take("all") and "all")
            return st.Harmless(f"DISCARD {what.upper()}")
        if word == "deallocate":
            c.take("prepare")
            everything = c.take("all")
            return st.Harmless("DEALLOCATE ALL" if everything else "DEALLOCATE", None if everything else c.identifier())
        if word in ("listen", "unlisten"):
            return st.Harmless(word.upper())
        raise unsupported(word.upper())
    if word in (
        "update",
        "delete",
        "alter",
        "merge",
        "declare",
        "do",
        "import",
        "reindex",
        "cluster",
        "security",
        "subscribe",
        "tail",
        "move",
        "load",
        "use",
    ):
        raise unsupported(word.upper())
    raise c.error()


def _variable(c: Cursor) -> str:
    for words, name in (
        (("time", "zone"), "timezone"),
        (("transaction", "isolation", "level"), "transaction_isolation"),
        (("session", "authorization"), "session_authorization"),
    ):
        if c.take(*words):
            return name
    name = c.identifier()
    while c.take("."):
        name += "." + c.identifier()
    return name


def _value(c: Cursor) -> str | None:
    """A SET value: words, strings and numbers, comma-separated; ``None`` for DEFAULT."""
    if c.take("default"):
        return None
    parts = []
    while (token := c.current) is not None:
        if token.token_type in (TokenType.STRING, TokenType.IDENTIFIER):
            parts.append(token.text)
        else:
            parts.append(c.source(token))
        c.at += 1
        if not c.take(","):
            if c.current is None:
                break
            if parts[-1] != "-":
                parts[-1] += " "
            parts[-1] += c.source(c.current) if c.current.token_type != TokenType.STRING else c.current.text
            c.at += 1
            if not c.take(","):
                continue
    if not parts:
        raise c.error()
    return ", ".join(parts)


_LEVELS = (
    ("strict", "serializable"),
    ("serializable",),
    ("repeatable", "read"),
    ("read", "committed"),
    ("read", "uncommitted"),
)


def _modes(c: Cursor) -> tuple[tuple[str, str], ...]:
    found = []
    while c.current is not None:
        if c.take("isolation", "level"):
            level = next((words for words in _LEVELS if c.take(*words)), None)
            if level is None:
                raise c.error()
            found.append(("transaction_isolation", " ".join(level)))
        elif c.take("read", "only"):
            found.append(("transaction_read_only", "on"))
        elif c.take("read", "write"):
            found.append(("transaction_read_only", "off"))
        elif c.take("not", "deferrable") or c.take("deferrable"):
            pass
        else:
            raise c.error()
        c.take(",")
    return tuple(found)


def _set(c: Cursor) -> st.Statement:
    if c.take("session", "characteristics", "as", "transaction"):
        modes = _modes(c)
        level = next((v for k, v in modes if k == "transaction_isolation"), None)
        return st.SetVariable("default_transaction_isolation", level) if level else st.Harmless("SET")
    if c.take("transaction"):
        return st.Transaction("set", _modes(c))
    local = c.take("local")
    if c.word() == "session" and c.word(1) != "authorization":
        c.at += 1
    if c.take("names"):
        value = _value(c)
        return st.SetVariable("client_encoding", value, local)
    name = _variable(c)
    if name not in ("timezone", "session_authorization", "transaction_isolation") and not (c.take("to") or c.take("=")):
        raise c.error()
    if name in ("timezone", "session_authorization", "transaction_isolation"):
        c.take("to") or c.take("=")
    if c.take("local"):
        return st.SetVariable(name, None, local)
    value = _value(c)
    c.end()
    return st.SetVariable(name, value.strip() if value is not None else None, local)


def _show(c: Cursor) -> st.Statement:
    if c.take("create"):
        for words in _CREATED:
            if c.take(*words):
                name = c.name()
                c.end()
                return st.ShowCreate("_".join(words), name)
        raise c.error()
    for words, what in _SHOWN.items():
        if not c.take(*words):
            continue
        schema, on, like = None, None, None
        if what == "columns":
            c.take("from") or c.expect("in")
            on = c.name()
        elif c.take("from") or c.take("in"):
            schema = c.name()
        elif what == "indexes" and c.take("on"):
            on = c.name()
        if c.take("like"):
            like = c.string()
        c.end()
        return st.ShowObjects(what, schema, on, like)
    if c.take("all"):
        c.end()
        return st.ShowVariable("all")
    if c.word() == "cluster":
        c.at += 1
        c.end()
        return st.ShowVariable("cluster")
    name = _variable(c)
    c.end()
    return st.ShowVariable(name)


def _transaction(c: Cursor) -> st.Transaction:
    word = c.word()
    c.at += 1
    if word in ("begin", "start"):
        if word == "start":
            c.expect("transaction")
        else:
            c.take("transaction") or c.take("work")
        return st.Transaction("begin", _modes(c))
    if word == "savepoint":
        return st.Transaction("savepoint", name=c.identifier())
    if word == "release":
        c.take("savepoint")
        return st.Transaction("release", name=c.identifier())
    c.take("transaction") or c.take("work")
    if word in ("rollback", "abort") and c.take("to"):
        c.take("savepoint")
        return st.Transaction("rollback_to", name=c.identifier())
    if c.word() == "and":
        raise unsupported(f"{word.upper()} AND CHAIN")
    c.end()
    return st.Transaction("commit" if word in ("commit", "end") else "rollback")
