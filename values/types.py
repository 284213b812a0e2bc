"""SQL column types and what each becomes in Avro, Arrow and Spark: the one table everybody uses.

Pure.  A :class:`SqlType` is written as text (``int4``, ``numeric(10,2)``, ``timestamptz``) in catalog records, and
parsed back with :func:`parse_type`.
"""

from __future__ import annotations

import re
import struct
from dataclasses import dataclass
from functools import lru_cache

import pyarrow as pa

from journal.errors import InvalidUsage

NUMERIC_PRECISION_MAX = 38
"""Of decimals as the engines have them (Spark's, Arrow's decimal128); with more a numeric is carried as a free one."""

DECLARED_MAX = 1000
"""Postgres's bound for the precision and the scale that a ``numeric`` may be declared with."""

LENGTH_MAX = 10_485_760
"""Postgres's bound for ``varchar(n)`` and ``char(n)``, in characters."""


TIMES = ("time", "timestamp", "timestamptz", "interval")
"""Types whose seconds may be declared with fewer than ``SECOND_DIGITS`` digits."""

SECOND_DIGITS = 6


@dataclass(frozen=True)
class SqlType:
    """A type by Postgres's short name; an array's is its element's with ``[]`` behind.

    ``precision`` and ``scale`` are those of ``numeric(p,s)``; ``precision`` alone is the length of ``varchar`` and
    ``bpchar`` (``char(n)``), or how many digits the seconds of a type of time have where that is fewer than six;
    ``fields`` are those of an ``interval`` that has not all (``year to month``).  ``None`` where they have none; those
    of an array are its elements'.
    """

    name: str
    precision: int | None = None
    scale: int | None = None
    fields: str | None = None

    @property
    def is_free(self) -> bool:
        """Whether it is a ``numeric`` each of whose values has digits of its own, or an array of such: one without a
        precision, or with one that the engines have no decimals for, to which only its column and casts hold it."""
        if self.name not in ("numeric", "numeric[]"):
            return False
        return self.precision is None or self.precision > NUMERIC_PRECISION_MAX or not 0 <= self.scale <= self.precision

    def __deepcopy__(self, memo: dict) -> SqlType:
        return self  # copies of a syntax tree share what is noted on it

    def __str__(self) -> str:
        base = self.element if self.is_array else self
        shown = base.name
        if base.name == "numeric":
            shown = "numeric" if base.precision is None else f"numeric({base.precision},{base.scale})"
        else:
            shown = "char" if base.name == "bpchar" and base.precision is not None else base.name
            shown += f" {base.fields}" if base.fields is not None else ""
            shown += f"({base.precision})" if base.precision is not None else ""
        return f"{shown}[]" if self.is_array else shown

    @property
    def is_array(self) -> bool:
        return self.name.endswith("[]")

    @property
    def element(self) -> SqlType:
        """The type of an array's elements."""
        assert self.is_array, self
        return SqlType(self.name[:-2], self.precision, self.scale, self.fields)

    @property
    def array(self) -> SqlType:
        """The array of such elements."""
        assert not self.is_array, self
        return SqlType(self.name + "[]", self.precision, self.scale, self.fields)

    @property
    def plain(self) -> SqlType:
        """A type of time with all digits and fields, a numeric beyond the engines' decimals without a precision; any
        other type as it is.

        What an expression is typed with: fewer digits are a matter of casts and of what is kept in a column
        (:mod:`values.keeping`), and no operation on the values asks for them.
        """
        if self.precision is None and self.fields is None:
            return self
        return SqlType(self.name) if self.name.removesuffix("[]") in TIMES or self.is_free else self


INTERVAL_FIELDS = (("months", pa.int32()), ("days", pa.int32()), ("micros", pa.int64()))
"""An interval's three parts, as Postgres keeps them: they are not worth a fixed number of one another."""

def single(value: float) -> float:
    """``value`` as a ``float4`` has it.  Raises ``InvalidUsage`` 22003 where that has none so large."""
    try:
        return struct.unpack("<f", struct.pack("<f", value))[0]
    except OverflowError:
        raise InvalidUsage(f'value "{value}" is out of range for type real', sqlstate="22003") from None


_CARRIED = {"varchar": "text", "bpchar": "text", "uuid": "text", "jsonb": "text", "time": "int8"}
"""What carries the values of a type where there is no such type: in Avro, in Arrow, in Spark and in DuckDB.

A ``bpchar`` is carried without the blanks at its end, which mean nothing in it: so equality, order and grouping are
those of the text.  A ``uuid`` is its text in lower case, a ``jsonb`` its text in Postgres's own form
(:mod:`values.text.jsonb`), a ``time`` its microseconds since midnight.  A ``numeric`` without a precision is its text:
no engine has decimals of which each has a scale of its own (:mod:`values.numeric.numerics`).
"""

_ARROW = {
    "bool": pa.bool_(),
    "int2": pa.int16(),
    "int4": pa.int32(),
    "int8": pa.int64(),
    "float4": pa.float32(),
    "float8": pa.float64(),
    "text": pa.string(),
    "bytea": pa.binary(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us"),
    "timestamptz": pa.timestamp("us", tz="UTC"),
    "interval": pa.struct(INTERVAL_FIELDS),
}

_SPARK = {
    "bool": "BOOLEAN",
    "int2": "SMALLINT",
    "int4": "INT",
    "int8": "BIGINT",
    "float4": "FLOAT",
    "float8": "DOUBLE",
    "text": "STRING",
    "bytea": "BINARY",
    "date": "DATE",
    "timestamp": "TIMESTAMP_NTZ",
    "timestamptz": "TIMESTAMP",
    "interval": "STRUCT<months: INT, days: INT, micros: BIGINT>",
}

_AVRO = {
    "bool": "boolean",
    "int2": "int",
    "int4": "int",
    "int8": "long",
    "float4": "float",
    "float8": "double",
    "text": "string",
    "bytea": "bytes",
    "date": {"type": "int", "logicalType": "date"},
    "timestamp": {"type": "long", "logicalType": "local-timestamp-micros"},
    "timestamptz": {"type": "long", "logicalType": "timestamp-micros"},
    "interval": {"type": "record", "name": "Interval", "fields": [
        {"name": "months", "type": "int"}, {"name": "days", "type": "int"}, {"name": "micros", "type": "long"}]},
}  # fmt: skip

_ALIASES = {
    "boolean": "bool",
    "smallint": "int2",
    "int": "int4",
    "integer": "int4",
    "bigint": "int8",
    "real": "float4",
    "float": "float8",
    "double": "float8",
    "double precision": "float8",
    "decimal": "numeric",
    "dec": "numeric",
    "character varying": "varchar",
    "string": "text",
    "time without time zone": "time",
    "timestamp without time zone": "timestamp",
    "timestamp with time zone": "timestamptz",
}

_WITH_ARGUMENTS = re.compile(r"^([a-z_][a-z0-9_ ]*?)\s*\(\s*(-?\d+)\s*(?:,\s*(-?\d+)\s*)?\)$")
_ARRAY = re.compile(r"^(.*?)\s*(?:\[\s*\d*\s*\]|\barray(?:\s*\[\s*\d*\s*\])?)$")

_SCALAR_OID = {
    "bool": 16, "bytea": 17, "int8": 20, "int2": 21, "int4": 23, "text": 25, "float4": 700, "float8": 701,
    "bpchar": 1042, "varchar": 1043, "date": 1082, "time": 1083, "timestamp": 1114, "timestamptz": 1184,
    "interval": 1186, "numeric": 1700, "uuid": 2950, "jsonb": 3802,
}  # fmt: skip

ARRAY_OID = {
    "bool": 1000, "bytea": 1001, "int8": 1016, "int2": 1005, "int4": 1007, "text": 1009, "float4": 1021,
    "float8": 1022, "bpchar": 1014, "varchar": 1015, "date": 1182, "time": 1183, "timestamp": 1115,
    "timestamptz": 1185, "interval": 1187, "numeric": 1231, "uuid": 2951, "jsonb": 3807,
}  # fmt: skip
"""The oid of the array of each scalar type (pg_type.typarray)."""

OID = {**_SCALAR_OID, **{f"{name}[]": oid for name, oid in ARRAY_OID.items()}}
"""Postgres's type oids (pg_type.dat)."""

SCALARS = tuple(_SCALAR_OID)


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
    if name in ("varchar", "bpchar", "char", "character") and len(arguments) < 2:
        return _with_length(name, *arguments)
    if match and match[1] == "float" and len(arguments) == 1:
        return _float(*arguments)
    if name in _SCALAR_OID and arguments:
        raise InvalidUsage(f'type modifier is not allowed for type "{name}"', sqlstate="42601")
    if name in _SCALAR_OID:
        return SqlType(name)
    if name in _ELSEWHERE:
        raise InvalidUsage(f"type {text} is not supported", sqlstate="0A000", hint=_ELSEWHERE[name])
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


def carried(sql_type: SqlType) -> SqlType:
    """The type whose Arrow, Spark and Avro form carries values of ``sql_type``: itself, unless it has no form there."""
    if sql_type.is_array:
        return carried(sql_type.element).array
    found = "text" if sql_type.is_free else _CARRIED.get(sql_type.name)
    return SqlType(found) if found else sql_type.plain


def arrow_type(sql_type: SqlType) -> pa.DataType:
    """The Arrow type that carries values of ``sql_type``."""
    if sql_type.is_array:
        return pa.list_(arrow_type(sql_type.element))
    if sql_type.name == "numeric" and not sql_type.is_free:
        return pa.decimal128(sql_type.precision, sql_type.scale)
    return _ARROW[carried(sql_type).name]


def spark_type(sql_type: SqlType) -> str:
    """The Spark SQL name of ``sql_type``."""
    if sql_type.is_array:
        return f"ARRAY<{spark_type(sql_type.element)}>"
    if sql_type.name == "numeric" and not sql_type.is_free:
        return f"DECIMAL({sql_type.precision},{sql_type.scale})"
    return _SPARK[carried(sql_type).name]


def avro_type(sql_type: SqlType) -> object:
    """The Avro schema of ``sql_type`` (without the null branch)."""
    if sql_type.is_array:
        return {"type": "array", "items": ["null", avro_type(sql_type.element)]}
    if sql_type.name == "numeric" and not sql_type.is_free:
        return {"type": "bytes", "logicalType": "decimal",
                "precision": sql_type.precision, "scale": sql_type.scale}  # fmt: skip
    return _AVRO[carried(sql_type).name]


def from_arrow(arrow: pa.DataType) -> SqlType:
    """The SQL type for values that Spark returned as ``arrow``.  Raises ``InvalidUsage`` 0A000 where there is none."""
    if pa.types.is_list(arrow):
        return from_arrow(arrow.value_type).array
    if pa.types.is_struct(arrow) and [field.name for field in arrow] == [name for name, _ in INTERVAL_FIELDS]:
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
    for name, candidate in _ARROW.items():
        if candidate == arrow:
            return SqlType(name)
    raise InvalidUsage(f"no SQL type for values of Arrow type {arrow}", sqlstate="0A000")
