"""CREATE SOURCE … FROM LOAD GENERATOR: which one, and what is said of it, before anything is looked up.  Pure.

Words and options are Materialize's where it has them (its page "CREATE SOURCE: Load generator").
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from journal.errors import InvalidUsage
from sql.syntax.clustering import HowStored, read_how_stored
from sql.syntax.cursor import Cursor
from sql.syntax.statement import DDL, Name
from trees.errors import syntax, unsupported

KINDS = ("auction", "clock", "counter", "datums", "key value", "marketing", "nexmark", "tpch")
"""Also those that Materialize alone has."""

TABLE, FAST = "table", "as fast as possible"
START, TICK, RATE, EVENTS, UP_TO, AS_OF, BATCH = (
    "start timestamp", "tick interval", "rate", "events", "up to", "as of", "batch size"
)  # fmt: skip
ROUNDS, TOGETHER = "snapshot rounds", "transactional snapshot"

OPTIONS = (
    FAST, START, TICK, TOGETHER, ROUNDS, BATCH, "out of order group size", "in flight auctions", "hot auction ratio",
    "hot sellers ratio", "hot bidders ratio", "active people", "auction size", "person size", "bid size", "event rate",
    "base time", "max cardinality", "scale factor", "value size", AS_OF, UP_TO, TABLE, RATE, EVENTS, "keys",
    "partitions", "seed",
)  # fmt: skip
"""Of all of them; none is the beginning of one behind it."""


@dataclass(frozen=True)
class Said:
    """An option as it is written: its value's ``text`` (``quoted`` or a bare word or number), and where it stands."""

    name: str
    text: str
    quoted: bool
    position: int


class Part(NamedTuple):
    """A relation of several, and what its source is called."""

    table: str
    name: str
    position: int


@dataclass(frozen=True)
class CreateGenerator(DDL):
    """A source over a load generator."""

    tag = "CREATE SOURCE"

    name: Name
    kind: str
    options: tuple[Said, ...]
    include_offset: str | None
    """What the column with the event's number is called, where there is to be one."""
    upsert: bool
    if_not_exists: bool
    text: str
    position: int
    """Of the kind."""
    stored: HowStored = HowStored()
    tables: tuple[Part, ...] | None = None
    """FOR TABLES: of which relations a source is to be made each; ``()`` is FOR ALL TABLES, ``None`` neither."""
    now_ms: int | None = None
    """When it was asked for, by whoever has a clock: where it starts, unless it says so itself."""


def read_generator(c: Cursor, text: str, name: Name, exists: bool) -> CreateGenerator:
    """What stands behind ``FROM LOAD GENERATOR``."""
    at = c.position
    kind = next((each for each in KINDS if c.take(*each.split())), None)
    if kind is None:
        raise c.error()
    options = _options(c) if c.word() == "(" else ()
    tables = _tables(c) if c.take("for") else None
    offset = _included(c)
    upsert = c.take("envelope") and _upsert(c)
    stored = read_how_stored(c)
    if c.word() in ("with", "expose"):
        raise unsupported(f"{c.word().upper()} … of a load generator", position=c.position)
    c.end()
    return CreateGenerator(name, kind, options, offset, upsert, exists, text, at, stored, tables)


def _tables(c: Cursor) -> tuple[Part, ...]:
    """What stands behind FOR."""
    if c.take("all"):
        c.expect("tables")
        return ()
    c.expect("tables")
    c.expect("(")
    found: list[Part] = []
    while not found or c.take(","):
        at = c.position
        table = c.identifier()
        if any(table == each.table for each in found):
            raise syntax(None, at, f'table "{table}" specified more than once')
        found.append(Part(table, c.identifier() if c.take("as") else table, at))
    c.expect(")")
    return tuple(found)


def _options(c: Cursor) -> tuple[Said, ...]:
    c.expect("(")
    found: list[Said] = []
    while not found or c.take(","):
        at = c.position
        name = next((each for each in OPTIONS if c.take(*each.split())), None)
        if name is None:
            raise c.error()
        if any(name == before.name for before in found):
            raise syntax(None, at, f"{name.upper()} specified more than once")
        if name == FAST:
            found.append(Said(name, "true", False, at))
            continue
        c.take("=")
        if c.at_string:
            found.append(Said(name, c.string(), True, at))
        elif name == TABLE:
            found.append(Said(name, c.identifier(), True, at))
        else:
            word = c.word()
            if word is None or not word.isascii() or not word.replace(".", "", 1).isalnum():
                raise c.error()
            c.at += 1
            found.append(Said(name, word, False, at))
    c.expect(")")
    return tuple(found)


def _included(c: Cursor) -> str | None:
    """The name of the column with the event's number; INCLUDE KEY, which Materialize wants, says nothing here."""
    found = None
    if not c.take("include"):
        return None
    while True:
        at = c.position
        if c.take("offset"):
            if found is not None:
                raise syntax(None, at, "INCLUDE OFFSET specified more than once")
            found = c.identifier() if c.take("as") else "offset"
        elif not c.take("key"):
            raise c.error()
        if not c.take(","):
            return found


def _upsert(c: Cursor) -> bool:
    if c.take("upsert"):
        return True
    if c.word() == "debezium":
        hint = "NONE and UPSERT are there"
        raise unsupported("ENVELOPE DEBEZIUM of a load generator", hint=hint, position=c.position)
    c.expect("none")
    return False


def number(said: Said, least: int, most: int) -> int:
    """Raises 22023."""
    if said.quoted or not said.text.isdigit() or len(said.text) > 19 or not least <= int(said.text) <= most:
        raise wrong(said, f"a whole number from {least} to {most}")
    return int(said.text)


def thousandths(said: Said, least: int, most: int) -> int:
    """How many thousandths a number with at most three decimals is.  Raises 22023."""
    whole, _, rest = said.text.partition(".")
    told = f"a number from {least / 1000:g} to {most / 1000:.0f} with at most three decimals"
    digits = whole + rest.ljust(3, "0")
    if said.quoted or len(rest) > 3 or not digits.isdigit() or len(digits) > 19 or not least <= int(digits) <= most:
        raise wrong(said, told)
    return int(digits)


def truth(said: Said) -> bool:
    """Raises 22023."""
    if said.text.lower() not in ("true", "false"):
        raise wrong(said, "true or false")
    return said.text.lower() == "true"


def wrong(said: Said, hint: str) -> InvalidUsage:
    return InvalidUsage(f'invalid {said.name.upper()}: "{said.text}"', sqlstate="22023", position=said.position,
                        hint=hint)  # fmt: skip
