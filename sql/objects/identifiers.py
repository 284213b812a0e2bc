"""Which names objects and columns may have.  Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

from journal.errors import InvalidUsage
from sql.objects.names import SYSTEM_SCHEMAS
from sql.syntax.plain_tokens import NAME_BYTES_MAX
from sql.syntax.reserved import RESERVED

IDENTIFIER_BYTES_MAX = NAME_BYTES_MAX
"""What is written in a statement has been cut to it; names that are made of others are refused beyond."""


def check_identifier(name: str) -> str:
    """``name``; 42622 where it is too long."""
    if len(name.encode()) > IDENTIFIER_BYTES_MAX:
        raise InvalidUsage(
            f'identifier "{name[:20]}…" is too long',
            sqlstate="42622",
            detail=f"{len(name.encode())} bytes, at most {IDENTIFIER_BYTES_MAX} are allowed",
        )
    return name


def check_schema_name(name: str) -> str:
    """``name``; 42939 where it is the system's, 42622 where it is too long."""
    if name.startswith("pg_") or name in SYSTEM_SCHEMAS:
        raise InvalidUsage(
            f'unacceptable schema name "{name}"',
            sqlstate="42939",
            detail='the prefix "pg_" and the system schemas\' names are reserved',
        )
    return check_identifier(name)


def quoted(name: str) -> str:
    """``name`` as a statement has to say it."""
    return '"' + name.replace('"', '""') + '"' if needs_quotes(name) else name


def needs_quotes(name: str) -> bool:
    return re.fullmatch(r"[a-z_][a-z0-9_$]*", name) is None or name in RESERVED


def check_columns(columns: Iterable[str]) -> None:
    """Names must differ, for Spark (and everybody's Avro tools) also without regard to case.  42701, 42622."""
    seen: dict[str, str] = {}
    for name in columns:
        check_identifier(name)
        other = seen.get(name.lower())
        if other is not None:
            raise InvalidUsage(
                f'column "{name}" specified more than once',
                sqlstate="42701",
                detail=None if other == name else f'"{other}" differs only in case',
            )
        seen[name.lower()] = name


def errors_name(source: str) -> str:
    """What the errors of a source are called, unless somebody calls them otherwise."""
    return f"{source}_errors"


def name_made_of(one: str, other: str | None, label: str, taken: Callable[[str], bool]) -> str:
    """``<one>_<other>_<label>``, numbered where that is ``taken``; of both names so much as fits, as Postgres cuts
    them."""
    number = 0
    while True:
        end = f"_{label}{number or ''}"
        names = [each.encode() for each in ((one,) if other is None else (one, other))]
        room = IDENTIFIER_BYTES_MAX - len(end) - (len(names) - 1)
        while sum(map(len, names)) > room:
            longest = 0 if len(names) == 1 or len(names[0]) > len(names[1]) else 1
            names[longest] = names[longest][:-1]
        name = "_".join(each.decode(errors="ignore") for each in names) + end
        if not taken(name):
            return name
        number += 1
