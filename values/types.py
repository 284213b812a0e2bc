"""SQL column types: how their names are read, and what each becomes in Avro, Arrow and Spark.

Pure.  What is so of a type as such is in its row (:mod:`values.datatypes`); here is what hangs on the digits, length
and fields that it is declared with, and on its being an array's.
"""

from __future__ import annotations

import re
from functools import lru_cache

import pyarrow as pa

from journal.errors import InvalidUsage
from values.datatypes.registry import DATATYPES
from values.datatypes.row import Datatype
from values.datatypes.times import PARTS
from values.sql_type import (
    DECLARED_MAX,
    LENGTH_MAX,
    SECOND_DIGITS,
    TIMES,
    SqlType,
)  # fmt: skip

_WITH_ARGUMENTS = re.compile(r"^([a-z_][a-z0-9_ ]*?)\s*\(\s*(-?\d+)\s*(?:,\s*(-?\d+)\s*)?\)$")
_ARRAY = re.compile(r"^(.*?)\s*(?:\[\s*\d*\s*\]|\barray(?:\s*\[\s*\d*\s*\])?)$")

_ALIASES = {alias: each.name for each in DATATYPES.values() for alias in each.aliases}

OID = {name: each.oid for name, each in DATATYPES.items()}
OID |= {f"{name}[]": each.array_oid for name, each in DATATYPES.items()}
"""Postgres's type oids (pg_type.dat)."""

ARRAYS = {each.array_oid: each for each in DATATYPES.values()}
"""What the arrays of each oid are of."""

NAMES_MAX = 4096
"""Names of types that are remembered: a catalog's columns are of some dozens, precisions and lengths included."""


@lru_cache(NAMES_MAX)
def parse_type(text: str) -> SqlType:
    """The type that ``text`` names.

    Raises ``InvalidUsage`` 42704 (unknown), 22023 (numeric or a length out of range), 0A000 (Postgres has it, we not).
    """
    name = " ".join(text.lower().split())
    if match := _ARRAY.match(name):
        element = parse_type(match[1])
        if element.is_array:
            raise InvalidUsage("arrays of more than one dimension are not supported", sqlstate="0A000")
        return element.array
    if match := _OF_TIME.match(name):
        return _of_time(text, match)
    arguments: list[int] = []
    if match := _WITH_ARGUMENTS.match(name):
        name, arguments = match[1], [int(each) for each in match.groups()[1:] if each is not None]
    name = _ALIASES.get(name, name)
    if name == "numeric" and arguments:
        return _numeric(*arguments)
    if name in ("varchar", "bpchar", "char", "character"):
        if len(arguments) > 1:
            raise InvalidUsage(f'type "{name}" has one length', sqlstate="42601")
        return _with_length(name, *arguments)
    if match and match[1] == "float" and len(arguments) == 1:
        return _float(*arguments)
    if name in DATATYPES and arguments:
        raise InvalidUsage(f'type modifier is not allowed for type "{name}"', sqlstate="42601")
    if name in DATATYPES:
        return SqlType(name)
    if name in _ELSEWHERE:
        raise InvalidUsage(f"type {text} is not supported", sqlstate="0A000", hint=_ELSEWHERE[name])
    if _ALIASES.get(word := name.split("(")[0].rstrip(), word) == "numeric" and "(" in name:
        raise InvalidUsage("invalid NUMERIC type modifier", sqlstate="22023")
    raise no_type(text)


def no_type(name: str) -> InvalidUsage:
    return InvalidUsage(
        f'type "{name}" does not exist', sqlstate="42704", hint="docs/types.md lists the types that there are"
    )


FIELDS = {
    "year": (2,), "month": (1,), "day": (3,), "hour": (10,), "minute": (11,), "second": (12,),
    "year to month": (2, 1), "day to hour": (3, 10), "day to minute": (3, 10, 11), "day to second": (3, 10, 11, 12),
    "hour to minute": (10, 11), "hour to second": (10, 11, 12), "minute to second": (11, 12),
}  # fmt: skip
"""The fields that an interval may be declared with, and Postgres's numbers of them (``datetime.h``)."""

_DIGITS = r"(?:\s*\(\s*(\d+)\s*\))?"
_OF_TIME = re.compile(
    rf"^(timetz|timestamptz|timestamp|time|interval){_DIGITS}(?:\s+((?!with)[a-z ]+?){_DIGITS})?"
    r"((?: with(?:out)? time zone)?)$"
)
"""Types of time with how many digits their seconds have, or an interval with its fields and digits."""


def _of_time(text: str, match: re.Match[str]) -> SqlType:
    kind, first, fields, second, zone = match.groups()
    known = fields is None or fields in FIELDS
    if not known or (fields and (kind != "interval" or first or second and not fields.endswith("second"))):
        raise InvalidUsage(f'"{text}" is not a type', sqlstate="42601")
    if zone and kind not in ("time", "timestamp"):
        raise no_type(text)
    name = kind + "tz" if zone == " with time zone" else kind
    if name in _ELSEWHERE:
        raise InvalidUsage(f"type {text} is not supported", sqlstate="0A000", hint=_ELSEWHERE[name])
    digits = int(first or second or SECOND_DIGITS)
    # Postgres takes more digits for six, with a warning.
    return SqlType(name, digits if digits < SECOND_DIGITS else None, fields=fields)


def _float(digits: int) -> SqlType:
    if not 1 <= digits <= 53:
        bound = "at least 1 bit" if digits < 1 else "less than 54 bits"
        raise InvalidUsage(f"precision for type float must be {bound}", sqlstate="22023")
    return SqlType("float4" if digits <= 24 else "float8")


_ELSEWHERE = {
    "timetz": "use time, or timestamptz",
    "time with time zone": "use time, or timestamptz",
    "json": "use jsonb",
    "xml": "use text",
    "money": "use numeric",
}
"""Types of Postgres's that no column can have, and what to use instead."""


def _numeric(precision: int, scale: int = 0) -> SqlType:
    for what, number, least in (("precision", precision, 1), ("scale", scale, -DECLARED_MAX)):
        if not least <= number <= DECLARED_MAX:
            bounds = f"{least} and {DECLARED_MAX}"
            raise InvalidUsage(f"NUMERIC {what} {number} must be between {bounds}", sqlstate="22023")
    return SqlType("numeric", precision, scale)


def _with_length(name: str, length: int | None = None) -> SqlType:
    if name in ("char", "character"):
        name, length = "bpchar", 1 if length is None else length
    if length is not None and not 1 <= length <= LENGTH_MAX:
        shown = "char" if name == "bpchar" else name
        raise InvalidUsage(f"length for type {shown} must be 1 to {LENGTH_MAX}, not {length}", sqlstate="22023")
    return SqlType(name, length)


def field_bits(fields: str) -> int:
    """An interval's fields as Postgres has them in a type modifier."""
    return sum(1 << number for number in FIELDS[fields])


def modifier(sql_type: SqlType) -> int:
    """Postgres's type modifier (``atttypmod``): of numeric(p,s), varchar(n), char(n), and of types of time with fewer
    digits or fields; -1 where there is none."""
    base = sql_type.element if sql_type.is_array else sql_type
    if base.name == "interval" and base != base.plain:
        fields = field_bits(base.fields) if base.fields else 0x7FFF
        return fields << 16 | (0xFFFF if base.precision is None else base.precision)
    if base.name in TIMES:
        return -1 if base.precision is None else base.precision
    if base.name == "numeric":
        return -1 if base.precision is None else ((base.precision << 16) | (base.scale & 0x7FF)) + 4
    return base.precision + 4 if base.name in ("varchar", "bpchar") and base.precision else -1


def row_of(sql_type: SqlType) -> Datatype:
    """What is said of ``sql_type``, no array."""
    return DATATYPES[sql_type.name]


def carried(sql_type: SqlType) -> SqlType:
    """The type whose Arrow, Spark and Avro form carries values of ``sql_type``: itself, unless it has no form there."""
    if sql_type.is_array:
        return carried(sql_type.element).array
    if sql_type.name == "numeric" and not sql_type.is_free:
        return sql_type
    found = row_of(sql_type).carries
    return SqlType(found) if found else sql_type.plain


UNLIMITED = frozenset(("bool", "int2", "int4", "int8", "float4", "float8", "text"))


def takes_all(sql_type: SqlType) -> bool:
    """Whether a column of it takes every value that is one of it: there are no digits, lengths or years to look at."""
    return sql_type.name in UNLIMITED


def arrow_type(sql_type: SqlType) -> pa.DataType:
    """The Arrow type that carries values of ``sql_type``."""
    if sql_type.is_array:
        return pa.list_(arrow_type(sql_type.element))
    if sql_type.name == "numeric" and not sql_type.is_free:
        return pa.decimal128(sql_type.precision, sql_type.scale)
    return row_of(carried(sql_type)).arrow


def spark_type(sql_type: SqlType) -> str:
    """The Spark SQL name of ``sql_type``."""
    if sql_type.is_array:
        return f"ARRAY<{spark_type(sql_type.element)}>"
    if sql_type.name == "numeric" and not sql_type.is_free:
        return f"DECIMAL({sql_type.precision},{sql_type.scale})"
    return row_of(carried(sql_type)).spark


def avro_type(sql_type: SqlType) -> object:
    """The Avro schema of ``sql_type`` (without the null branch)."""
    if sql_type.is_array:
        return {"type": "array", "items": ["null", avro_type(sql_type.element)]}
    if sql_type.name == "numeric" and not sql_type.is_free:
        return {"type": "bytes", "logicalType": "decimal",
                "precision": sql_type.precision, "scale": sql_type.scale}  # fmt: skip
    return row_of(carried(sql_type)).avro


def iceberg_type(sql_type: SqlType) -> str | None:
    """Iceberg's type of ``sql_type``, as its own documents write it; ``None`` where it has none.

    A numeric without digits that all its values have is a string, since none is to lose one in silence.
    """
    if sql_type.is_array:
        element = iceberg_type(sql_type.element)
        return element and f"list<{element}>"
    if sql_type.name == "numeric" and not sql_type.is_free:
        return f"decimal({sql_type.precision}, {sql_type.scale})"
    return row_of(sql_type).iceberg or None


def from_arrow(arrow: pa.DataType) -> SqlType:
    """The SQL type for values that Spark returned as ``arrow``.  Raises ``InvalidUsage`` 0A000 where there is none."""
    if pa.types.is_list(arrow):
        return from_arrow(arrow.value_type).array
    if pa.types.is_struct(arrow) and [field.name for field in arrow] == [name for name, _ in PARTS]:
        return SqlType("interval")
    if pa.types.is_decimal(arrow):
        return SqlType("numeric", arrow.precision, arrow.scale)
    if pa.types.is_timestamp(arrow):
        return SqlType("timestamptz" if arrow.tz else "timestamp")
    if pa.types.is_large_string(arrow):
        return SqlType("text")
    if pa.types.is_int8(arrow):
        return SqlType("int2")
    if pa.types.is_null(arrow):
        return SqlType("text")
    for name, each in DATATYPES.items():
        if each.arrow == arrow:
            return SqlType(name)
    raise InvalidUsage(f"no SQL type for values of Arrow type {arrow}", sqlstate="0A000")
