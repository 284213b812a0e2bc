"""What begins with WITH: a query, or a statement that has queries before it.  Pure."""

from __future__ import annotations

from collections.abc import Callable

from sql.syntax.changes import Delete, Update
from sql.syntax.cursor import Cursor
from sql.syntax.merge import read_merge
from sql.syntax.query import Insert, Query
from sql.syntax.statement import Statement
from sql.syntax.writing import behind_with, read_before, read_writing

_CHANGES = ("insert", "update", "delete", "merge")


def read_with(c: Cursor, text: str, parse: Callable[[str], Statement]) -> Statement:
    """The statement in ``c``.  ``parse`` reads those of its WITH queries that write."""
    at = behind_with(c)
    if any(c.word(ahead) in _CHANGES for ahead in range(len(c.tokens))):
        if at is not None and c.word(at) == "merge":
            merging = Cursor(c.text)
            before = read_before(merging)
            if before is None:
                raise merging.error()
            return read_merge(merging, before, before.parts(merging, parse, _read_whole))
        writing = read_writing(c, parse, _read_whole)
        if writing is not None:
            return writing
    return Query.read(c, text) if at is None else _read_whole(c, at)


def _read_whole(c: Cursor, at: int) -> Statement:
    """The statement in ``c`` that begins at ``at``, behind its WITH."""
    readers = {"delete": Delete.read, "update": Update.read, "insert": Insert.read}
    reader = readers.get(c.word(at) or "")
    if reader is None:
        return Query.read(c, c.text)
    c.at = at
    return reader(c, c.text, c.tokens[:at])
