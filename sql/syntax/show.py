"""SHOW and EXPLAIN: statements that only look, and the columns of what they show.  Pure."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from catalog_log.objects import KINDS
from sql.syntax.cursor import Cursor
from sql.syntax.kind_words import kind_said
from sql.syntax.statement import Name, Statement
from sql.syntax.variables import variable_name
from values.types import SqlType

TEXT = SqlType("text")
BOOL = SqlType("bool")

_NAME = ("name", TEXT)

_SHOWN: dict[str, tuple[tuple[str, SqlType], ...]] = {
    **{each.plural: (_NAME, *((name, TEXT) for name in each.listed)) for each in KINDS if each.plural},
    "schemas": (_NAME,),
    "databases": (_NAME,),
    "clusters": (_NAME, ("address", TEXT)),
    "objects": (_NAME, ("type", TEXT)),
    "columns": (_NAME, ("nullable", BOOL), ("type", TEXT)),
}
"""What SHOW lists, and in which columns."""


@dataclass(frozen=True)
class Explain(Statement):
    """``mode`` is ``plan``, ``timestamp`` or ``strategy``; the last may name a view instead of a statement."""

    tag = "EXPLAIN"

    mode: str
    statement: Statement | None
    name: Name | None = None

    @property
    def returns(self) -> tuple[tuple[str, SqlType], ...]:
        return (("QUERY PLAN", TEXT),)

    @classmethod
    def read(cls, c: Cursor, inner: Callable[[str], Statement]) -> Explain:
        """What stands after EXPLAIN; ``inner`` reads the statement that is to be explained."""
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
            return cls(mode, None, name)
        if c.current is None:
            raise c.error()
        start = c.position - 1
        return cls(mode, inner(" " * start + c.text[start:]))


@dataclass(frozen=True)
class ShowObjects(Statement):
    """``what``: the plural of a kind of object, or schemas, databases, clusters, objects, columns."""

    tag = "SHOW"

    what: str
    schema: Name | None = None
    on: Name | None = None
    like: str | None = None

    @property
    def returns(self) -> tuple[tuple[str, SqlType], ...]:
        return _SHOWN[self.what]

    @classmethod
    def read(cls, c: Cursor, what: str) -> ShowObjects:
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
        return cls(what, schema, on, like)


@dataclass(frozen=True)
class ShowCreate(Statement):
    tag = "SHOW"

    kind: str
    name: Name

    @property
    def returns(self) -> tuple[tuple[str, SqlType], ...]:
        return (_NAME, ("create_sql", TEXT))

    @classmethod
    def read(cls, c: Cursor) -> ShowCreate:
        kind = kind_said(c)
        if kind is None:
            raise c.error()
        name = c.name()
        c.end()
        return cls(kind, name)


@dataclass(frozen=True)
class ShowVariable(Statement):
    """``name`` may be ``all``."""

    tag = "SHOW"

    name: str

    @property
    def returns(self) -> tuple[tuple[str, SqlType], ...]:
        if self.name == "all":
            return (_NAME, ("setting", TEXT), ("description", TEXT))
        return ((self.name, TEXT),)

    @classmethod
    def read(cls, c: Cursor) -> ShowVariable:
        if c.word() in ("all", "cluster"):
            name = c.word()
            c.at += 1
        else:
            name = variable_name(c)
        c.end()
        return cls(name)


def read_show(c: Cursor) -> Statement:
    """What stands after SHOW."""
    if c.take("create"):
        return ShowCreate.read(c)
    for what in _SHOWN:
        if c.take(*what.split()):
            return ShowObjects.read(c, what)
    return ShowVariable.read(c)
