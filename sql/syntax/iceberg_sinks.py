"""CREATE SINK … INTO ICEBERG: what stands behind these words.  Pure."""

from __future__ import annotations

from typing import NamedTuple

from catalog_log.objects.sink import NONE, UPSERT
from sql.syntax.cursor import Cursor
from sql.syntax.statement import Name
from trees.errors import syntax, unsupported

NAMESPACE, TABLE, INTERVAL = "namespace", "table", "commit interval"

MODES = {"upsert": UPSERT, "append": NONE}
"""What becomes of a row that goes: it goes from the table, too; or it must not."""


class IntoIceberg(NamedTuple):
    """As the fields of :class:`sql.syntax.sinks.CreateSink`."""

    connection: Name
    options: tuple[tuple[str, str], ...]
    key: tuple[str, ...]
    enforced: bool
    envelope: str


def read_into_iceberg(c: Cursor) -> IntoIceberg:
    """What stands behind ``INTO ICEBERG``, up to the end."""
    c.expect("catalog", "connection")
    connection = c.name()
    options = _options(c, (NAMESPACE, TABLE))
    if c.word() == "using":
        hint = "the catalog hands out keys of its store, or its connection has S3 ACCESS KEY ID and its SECRET"
        raise unsupported("USING … CONNECTION of a sink", hint=hint, position=c.position)
    key = c.names() if c.take("key") else ()
    enforced = not (key and c.take("not", "enforced"))
    if c.word() == "partition":
        raise unsupported("PARTITION BY of a sink", position=c.position)
    c.expect("mode")
    mode = next((each for each in MODES if c.take(each)), None)
    if mode is None:
        raise c.error()
    options += _options(c, (INTERVAL,)) if c.take("with") else ()
    c.end()
    return IntoIceberg(connection, options, key, enforced, MODES[mode])


def _options(c: Cursor, known: tuple[str, ...]) -> tuple[tuple[str, str], ...]:
    c.expect("(")
    found: list[tuple[str, str]] = []
    while not found or c.take(","):
        at = c.position
        name = next((each for each in known if c.take(*each.split())), None)
        if name is None:
            raise c.error()
        if any(name == before for before, _ in found):
            raise syntax(None, at, f"{name.upper()} specified more than once")
        c.take("=")
        found.append((name, c.string()))
    c.expect(")")
    return tuple(found)
