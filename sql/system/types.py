"""Postgres's types by name, what they become, and which of several they have in common.  Pure.

A type is Postgres's own (``name``, ``"char"``, ``oid``, ``regclass``), not one of ``values.types``: queries over system
relations give many that no column of a user's has.  An array is called as pg_type calls it, ``_text``.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from journal.errors import InvalidUsage
from sql.system.signatures import ASSIGNED, EXPLICIT, IMPLICIT, TYPES
from trees.errors import unsupported
from values.datatypes.registry import DATATYPES
from values.types import SqlType, no_type, parse_type


@dataclass(frozen=True, slots=True)
class PgType:
    """``fields``: of a row, its columns.  ``declared``: of what was declared with digits or a length."""

    name: str
    fields: tuple[tuple[str, PgType], ...] = ()
    declared: SqlType | None = None


@dataclass(frozen=True, slots=True)
class _Row:
    oid: int
    category: str
    preferred: bool


def by_head(text: str) -> dict[str, list[str]]:
    """Lines of ``head: words``, those that are indented belonging to the one before."""
    lines = [" ".join(part.split()) for part in re.split(r"\n(?! )", text.strip())]
    return {head: rest.split() for head, _, rest in (line.partition(": ") for line in lines)}


ROWS: dict[str, _Row] = {}
for _name, _oid, _array, _category in (line.split() for line in TYPES.strip().splitlines()):
    ROWS[_name] = _Row(int(_oid), _category[0], _category.endswith("!"))
    if _array != "0":
        ROWS[f"_{_name}"] = _Row(int(_array), "A", False)

_BY_ITSELF = frozenset((source, target) for source, all_ in by_head(IMPLICIT).items() for target in all_)
_SAID = _BY_ITSELF | {(s, t) for text in (ASSIGNED, EXPLICIT) for s, all_ in by_head(text).items() for t in all_}

UNKNOWN, TEXT, BOOL = PgType("unknown"), PgType("text"), PgType("bool")
INT4, INT8, NUMERIC, FLOAT8 = PgType("int4"), PgType("int8"), PgType("numeric"), PgType("float8")
RECORD, INTERVAL = PgType("record"), PgType("interval")

VECTORS = {"int2vector": "int2", "oidvector": "oid"}
"""Arrays whose text form is separated by spaces, and whose subscripts begin at 0."""

REGISTERED = frozenset("regproc regprocedure regoper regoperator regclass regtype regconfig regdictionary regnamespace "
                       "regrole".split())  # fmt: skip
"""Oids that are shown as the name of what they are."""

NAMED = frozenset({"regclass", "regtype", "regnamespace", "regrole"})
"""Those whose names are known here."""

_SHOWN = {
    **{row.name: row.shown for row in DATATYPES.values()}, "char": '"char"',
    "anycompatiblearray": "anycompatiblearray",
}  # fmt: skip


def shown(name: str) -> str:
    """As Postgres's messages call it: ``timestamp with time zone``."""
    return shown(name[1:]) + "[]" if name.startswith("_") else _SHOWN.get(name, name)


def element_of(name: str) -> str | None:
    """The type of an array's items; ``None`` of what is no array."""
    if name in VECTORS:
        return VECTORS[name]
    return name[1:] if name.startswith("_") else None


def array_of(name: str) -> str | None:
    """``None`` of what there are no arrays of."""
    return f"_{name}" if f"_{name}" in ROWS else None


def is_textual(name: str) -> bool:
    return ROWS[name].category == "S"


def becomes(source: str, target: str) -> bool:
    """Whether a value of ``source`` is taken for one of ``target`` without a cast being written."""
    if source == target or source == "unknown" or (source, target) in _BY_ITSELF:
        return True
    if source == "record" or target in ("any", "anyelement", "anycompatible"):
        return target in ("record", "any", "anyelement", "anycompatible")
    if target == "anynonarray":
        return element_of(source) is None
    if target in ("anyarray", "anycompatiblearray"):
        return element_of(source) is not None or source == "anyarray"
    if source.startswith("_") and target.startswith("_"):
        return becomes(source[1:], target[1:])
    return False


def casts(source: str, target: str) -> bool:
    """Whether ``::`` makes one of the other: by a cast of Postgres's, or by way of their texts."""
    if becomes(source, target) or (source, target) in _SAID or is_textual(target) or is_textual(source):
        return True
    a, b = element_of(source), element_of(target)
    if a is not None and b is not None:
        return casts(a, b)
    return source == "anyarray" or target in ("char", "cstring") and source == "cstring"


def common(types: list[PgType], where: str) -> PgType:
    """The type that ``types`` are brought to in CASE, UNION, ARRAY and the like; ``text`` where none is known.

    42804 or 42846 where there is none.
    """
    known = [each for each in types if each.name != "unknown"]
    if not known:
        return TEXT
    if all(each == known[0] for each in known):
        return known[0]
    found = known[0].name
    for each in known[1:]:
        name = each.name
        if name == found:
            continue
        if ROWS[name].category != ROWS[found].category:
            raise InvalidUsage(f"{where} types {shown(found)} and {shown(name)} cannot be matched", sqlstate="42804")
        if not ROWS[found].preferred and becomes(found, name) and not becomes(name, found):
            found = name
    for each in known:
        if not becomes(each.name, found):
            told = f"{where} could not convert type {shown(each.name)} to {shown(found)}"
            raise InvalidUsage(told, sqlstate="42846")
    return PgType(found)


_DOMAINS = {
    "sql_identifier": "name", "character_data": "varchar", "yes_or_no": "varchar", "cardinal_number": "int4",
    "time_stamp": "timestamptz",
}  # fmt: skip
"""The types of information_schema's columns, which clients are told as what they are of."""

_SAID_OTHERWISE = {"uint": "oid", "userdefined": "", "timestampntz": "timestamp", "float": "float4"}


def named(word: str, declared: str = "") -> PgType:
    """The type that a cast to ``word`` means (in lower case, with ``[]`` behind of an array); ``declared``: as it was
    written, with digits.  42704 where there is none."""
    if word.endswith("[]"):
        item = named(word[:-2], declared.removesuffix("[]") if "(" in declared else "")
        found = array_of(item.name)
        if found is None:
            raise no_type(word)
        return PgType(found, declared=item.declared.array if item.declared is not None else None)
    word = _SAID_OTHERWISE.get(word, word)
    word = _DOMAINS.get(word, word)
    if word == "interval" and declared:
        raise unsupported("a cast to interval(p) in a query over system relations", "cast to interval")
    if word in ROWS and ROWS[word].category != "P" or word in ("cstring", "void"):
        if "(" in declared and word in DATATYPES:
            return PgType(word, declared=parse_type(declared))
        return PgType(word)
    try:
        found = parse_type(declared or word)
    except InvalidUsage as error:
        raise (no_type(word) if error.sqlstate == "42704" else error) from None
    return PgType(found.name, declared=found if found != parse_type(found.name) else None)


def type_of(sql_type: SqlType) -> PgType:
    """The one of a type of ``values.types``."""
    return PgType(f"_{sql_type.element.name}" if sql_type.is_array else sql_type.name)
