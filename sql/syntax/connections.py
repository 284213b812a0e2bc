"""CREATE CONNECTION: what is said of a system outside; and VALIDATE CONNECTION.  Pure.

A secret is never written here: only the place of one is, and no complaint repeats what stands there instead.  Nor does
any other repeat a text, since nobody knows what was put where it does not belong.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from catalog_log.objects import Secret
from catalog_log.objects.connection import ENV, FILE
from journal.errors import InvalidUsage
from sql.syntax.cursor import Cursor
from sql.syntax.statement import DDL, Name, Statement
from trees.errors import syntax, unsupported

KAFKA, REGISTRY, ICEBERG = "kafka", "confluent-schema-registry", "iceberg-catalog"

_SYSTEMS = {("kafka",): KAFKA, ("confluent", "schema", "registry"): REGISTRY, ("iceberg", "catalog"): ICEBERG}
"""What a connection may be to, by its words."""

TEXT, WORD, SECRET, EITHER, MANY = "text", "word", "secret", "text or secret", "texts"
"""What an option may be: a text; a text or a word without quotes; a secret; one of both; texts in parentheses."""

_OWN_KEY = {"ssl certificate authority": EITHER, "ssl certificate": EITHER, "ssl key": SECRET}

OPTIONS: Mapping[str, Mapping[str, str]] = {
    KAFKA: {
        "broker": TEXT, "brokers": MANY, "security protocol": WORD, "sasl mechanisms": WORD, "sasl username": EITHER,
        "sasl password": SECRET, **_OWN_KEY,
    },
    REGISTRY: {"url": TEXT, "username": EITHER, "password": SECRET, **_OWN_KEY},
    ICEBERG: {
        "catalog type": WORD, "url": TEXT, "warehouse": TEXT, "credential": SECRET, "token": SECRET, "scope": TEXT,
        "s3 endpoint": TEXT, "s3 region": TEXT, "s3 access key id": EITHER, "s3 secret access key": SECRET,
    },
}  # fmt: skip
"""Of each system the options that there are, longer ones of the same words first when they are read."""

_ELSEWHERE = ("aws", "ssh", "progress")
"""First words of options that Materialize has and we do not."""

_HOW = "say SECRET ENV 'TIDEMARK_SECRET_…' or SECRET FILE '…': no secret is ever written in a statement"


@dataclass(frozen=True)
class CreateConnection(DDL):
    """``options`` in the order in which they stand; the texts of ``brokers`` are one, with commas."""

    tag = "CREATE CONNECTION"

    name: Name
    to: str
    options: tuple[tuple[str, str | Secret], ...]
    if_not_exists: bool
    text: str

    @classmethod
    def read(cls, c: Cursor, text: str) -> CreateConnection:
        exists = c.take("if", "not", "exists")
        name = c.name()
        c.expect("to")
        to = next((system for words, system in _SYSTEMS.items() if c.take(*words)), None)
        if to is None:
            if c.word() in ("aws", "postgres", "mysql", "ssh", "sql", "iceberg"):
                raise unsupported(f"a connection TO {c.word().upper()}",
                                  "KAFKA, CONFLUENT SCHEMA REGISTRY or ICEBERG CATALOG")
            raise c.error()
        c.expect("(")
        options = [_option(c, OPTIONS[to], ())]
        while c.take(","):
            options.append(_option(c, OPTIONS[to], [name for name, _ in options]))
        _expect(c, ")")
        if c.take("with"):
            _unvalidated(c)
        if c.current is not None:
            raise _wrong(c)
        return cls(name, to, tuple(options), exists, text)


@dataclass(frozen=True)
class ValidateConnection(Statement):
    """Ask what is there whether it takes us in."""

    tag = "VALIDATE CONNECTION"

    name: Name

    @classmethod
    def read(cls, c: Cursor, text: str) -> ValidateConnection:
        c.expect("validate", "connection")
        name = c.name()
        c.end()
        return cls(name)


def _option(c: Cursor, known: Mapping[str, str], before: object) -> tuple[str, str | Secret]:
    at = c.position
    name = next((each for each in sorted(known, key=len, reverse=True) if c.take(*each.split())), None)
    if name is None:
        if c.word() in _ELSEWHERE:
            raise unsupported(f"the option {c.word().upper()} … of a connection", ", ".join(known).upper(), at)
        raise _wrong(c, hint=f"options are {', '.join(known).upper()}")
    if name in before:
        raise syntax(None, at, f"{name.upper()} specified more than once")
    c.take("=")
    return name, _value(c, name, known[name])


def _value(c: Cursor, name: str, kind: str) -> str | Secret:
    at = c.position
    if c.word() == "secret" and kind in (SECRET, EITHER):
        return read_secret(c)
    if kind == SECRET:
        raise InvalidUsage(
            f"{name.upper()} is a secret: say where it is", sqlstate="22023", position=at, hint=_HOW
        )
    if c.word() == "secret":
        raise InvalidUsage(f"{name.upper()} is no secret", sqlstate="22023", position=at, hint="write it as a text")
    if kind == MANY:
        _expect(c, "(")
        found = [_text(c)]
        while c.take(","):
            found.append(_text(c))
        _expect(c, ")")
        if any("," in each for each in found):
            raise InvalidUsage("invalid broker", sqlstate="22023", position=at, hint="one text a broker")
        return ",".join(found)
    if kind == WORD and (word := c.word()) is not None and word.isidentifier():
        c.at += 1
        return word
    return _text(c)


def read_secret(c: Cursor) -> Secret:
    """``SECRET ENV '…'`` or ``SECRET FILE '…'``: the place of one."""
    at = c.position
    c.take("secret")
    way = ENV if c.take(ENV) else FILE if c.take(FILE) else None
    if way is None or not c.at_string:
        raise InvalidUsage("this is no place of a secret", sqlstate="22023", position=at, hint=_HOW)
    return Secret(way, c.string())


def _unvalidated(c: Cursor) -> None:
    """``WITH (VALIDATE = false)``, which is what is done anyway."""
    _expect(c, "(")
    _expect(c, "validate")
    c.take("=")
    if c.word() == "true":
        raise unsupported("validating a connection while it is created", "say VALIDATE = false", c.position)
    _expect(c, "false")
    _expect(c, ")")


def _text(c: Cursor) -> str:
    if not c.at_string:
        raise _wrong(c)
    return c.string()


def _expect(c: Cursor, word: str) -> None:
    if not c.take(word):
        raise _wrong(c)


def _wrong(c: Cursor, hint: str | None = None) -> InvalidUsage:
    """42601 at what comes next, which is not repeated unless it is a sign of the grammar."""
    said = c.word() if c.word() in ("(", ")", ",", "=", ";") else None
    if c.current is None or said is not None:
        error = c.error()
    else:
        error = syntax(None, c.position, "syntax error in the options of a connection")
    error.hint = hint
    return error
