"""DROP, and COMMENT, which names objects by the same words.  Pure."""

from __future__ import annotations

from dataclasses import dataclass

from sql.syntax.cursor import Cursor
from sql.syntax.kind_words import ELSEWHERE, kind_said
from sql.syntax.statement import DDL, KIND_WORDS, Name
from trees.errors import unsupported


@dataclass(frozen=True)
class Drop(DDL):
    """``kind`` is an item kind of ``catalog_log.model`` or ``schema``."""

    kind: str
    names: tuple[Name, ...]
    if_exists: bool
    cascade: bool

    @property
    def word(self) -> str:
        return KIND_WORDS.get(self.kind, self.kind)

    @property
    def tag(self) -> str:
        return f"DROP {self.word.upper()}"

    @classmethod
    def read(cls, c: Cursor, text: str) -> Drop:
        c.expect("drop")
        kind = "schema" if c.take("schema") else kind_said(c)
        if kind is None:
            if c.word() in ELSEWHERE:
                raise unsupported(f"DROP {c.word().upper()}")
            raise c.error()
        exists = c.take("if", "exists")
        names = [c.name()]
        while c.take(","):
            names.append(c.name())
        cascade = c.take("cascade")
        if not cascade:
            c.take("restrict")
        c.end()
        return cls(kind, tuple(names), exists, cascade)


_DESCRIBED = ("schema", "database", "cluster", "column")
"""What COMMENT describes beside objects that are of a kind."""


@dataclass(frozen=True)
class Comment(DDL):
    """``kind`` is an item kind of ``catalog_log.model``, ``schema``, ``database``, ``cluster`` or ``column`` (then
    ``name`` ends in the column's); ``text`` is ``None`` where the comment is taken away."""

    tag = "COMMENT"

    kind: str
    name: Name
    text: str | None

    @classmethod
    def read(cls, c: Cursor, text: str) -> Comment:
        """What stands after COMMENT."""
        c.expect("on")
        kind = kind_said(c)
        if kind is None:
            kind = c.word()
            if kind not in _DESCRIBED:
                raise c.error() if c.current is None else unsupported(f"COMMENT ON {(kind or '').upper()}".rstrip())
            c.at += 1
        name = Name((c.identifier(allow=("default",)),)) if kind == "cluster" else c.name()
        c.expect("is")
        said = None if c.take("null") else c.string()
        c.end()
        return cls(kind, name, said or None)
