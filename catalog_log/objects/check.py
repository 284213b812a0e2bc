"""CHECK: a condition that every row of a table keeps.  It is its table's, and no object by itself."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace

CHECK = "check"
"""The kind of constraint, beside those that an index keeps."""


@dataclass(frozen=True)
class Check:
    """``sql`` is the condition as its user wrote it, no column of which is qualified: by what the names in it mean
    (``reads``: the ids of columns), it goes on whatever they are called since."""

    name: str
    sql: str
    reads: tuple[tuple[str, int], ...]
    since: str | None = None
    """While somebody looks whether there are rows that do not keep it: what tells this time from any other.  Rows that
    are written keep it already."""

    def uses(self, column_id: int) -> bool:
        return any(each == column_id for _, each in self.reads)

    @property
    def text(self) -> str:
        """All of it but the name, as a record keeps it."""
        return json.dumps([self.sql, self.reads, self.since], separators=(",", ":"))

    @classmethod
    def of_text(cls, name: str, text: str) -> Check:
        """Raises ``ValueError`` and ``LookupError`` for what is none."""
        try:
            sql, reads, since = json.loads(text)
            found = tuple([(str(called), int(column_id)) for called, column_id in reads])
        except TypeError:
            sql, found, since = None, (), None
        if not isinstance(sql, str):
            raise LookupError("condition")
        return cls(name, sql, found, since)

    def begun(self, since: str) -> Check:
        return replace(self, since=since)
