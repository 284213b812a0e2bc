"""A connection: where a system outside is, and how one says there who one is.

Of a secret it has the place alone: whoever connects reads it there, then.  So none is in a topic, a log or an answer,
and one that is changed needs no statement.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from catalog_log.objects.item import Audience, Column, Item, Record


@dataclass(frozen=True)
class Secret:
    """The place of one: ``way`` is one of :data:`WAYS`."""

    way: str
    name: str


ENV, FILE = "env", "file"
WAYS = (ENV, FILE)
"""In a variable of the environment of whoever connects, or in a file there."""

_TEXT = "text"


@dataclass(frozen=True, kw_only=True)
class Connection(Item):
    kind = word = "connection"
    absent = "42704", "SHOW CONNECTIONS lists those that there are"
    unread = "SHOW CREATE CONNECTION says what one is"
    plural, listed = "connections", ("type",)

    to: str
    """What is there, as a word of :mod:`sql.syntax.connections`."""
    options: tuple[tuple[str, str | Secret], ...]
    """What was said of it, by the words of it in lower case, in their order."""

    @property
    def audience(self) -> Audience:
        return Audience.NOBODY

    def fields(self) -> dict[str, Any]:
        said = {name: _written(value) for name, value in self.options}
        return {"options": {"to": self.to, **said}}

    @classmethod
    def of_record(cls, head: tuple[str, str, str, str], columns: tuple[Column, ...], record: Record) -> Connection:
        said = dict(record["options"])
        to = said.pop("to")
        return cls(*head, to=to, options=tuple((name, _read(said[name])) for name in sorted(said)))


def _written(value: str | Secret) -> str:
    return f"{value.way}:{value.name}" if isinstance(value, Secret) else f"{_TEXT}:{value}"


def _read(text: str) -> str | Secret:
    way, _, rest = text.partition(":")
    if way not in (_TEXT, *WAYS):
        raise LookupError("option that is a text or a secret")
    return rest if way == _TEXT else Secret(way, rest)
