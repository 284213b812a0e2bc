"""What Avro's types are here, and their values.  Pure.

A record's fields are columns.  Numbers, booleans, texts and bytes are what they are called; an ``enum`` is its symbol,
a ``fixed`` its bytes.  Of logical types ``decimal`` is a ``numeric`` of its digits, ``uuid``, ``date`` and ``time-…``
are those, ``timestamp-…`` is an instant and so a ``timestamptz``, ``local-timestamp-…`` a ``timestamp``; of others the
bare value counts.  Nanoseconds are cut to microseconds, as everywhere; a column of the bare type has them all.  A union
of null and one type may be null; an array of what is none of these, a map and a record in a record are ``jsonb``.
A union of several types is none of ours, but where one of our types has each value of each of them just as it is:
fastavro does not say of which of them a value was.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Sequence
from decimal import Context, Decimal
from typing import NamedTuple
from uuid import UUID

from collection.messages.built_jsonb import jsonb_of, shown
from schemas.avro_messages import BadSchema, Tree
from values.bad_text import BadText
from values.json_values import BadValue, Number, string
from values.scalars import show_float4
from values.sql_type import NUMERIC_PRECISION_MAX
from values.text.uuids import read_uuid
from values.time.clock import show_time

Convert = Callable[[object], object]
"""From a value as Avro carries it, never None, to Python's of the SQL type.  Raises ``BadValue``."""

WHOLE = ""
"""What the only field is called of a schema that is no record's."""

_EPOCH = dt.datetime(1970, 1, 1)
_EPOCH_DAY = dt.date(1970, 1, 1)
_DAY_MICROS = 86_400_000_000

_EXACT = Context(prec=2_000)
"""For decimals: more digits than one may have here."""

DECIMAL_DIGITS_MAX = 1_000
"""As Postgres has it for ``numeric(p,s)``."""


class Field(NamedTuple):
    name: str
    type: str
    nullable: bool
    convert: Convert
    unit: int = 0
    """What a value is times of what Arrow counts in, where it is a plain number; else 0.  Below 0: so many of it are
    one of what Arrow counts in."""
    bare: Field | None = None
    """Of a logical type that was not always known: the same without it, as sources from before have it."""

    def of(self, kind: str) -> Field | None:
        """Itself or its bare one, whichever has that type; ``None``: neither."""
        return next((each for each in (self, self.bare) if each is not None and each.type == kind), None)


def fields_of(tree: Tree) -> list[Field | str]:
    """The columns that a schema gives, in its order; a text says why a field gives none, after its name and ``: ``.

    Raises ``BadSchema`` where there is none at all.
    """
    if isinstance(tree, dict) and tree["type"] == "record":
        found = [_field(each["name"], each["type"]) for each in tree["fields"]]
        if not found:
            raise BadSchema("its record has no fields")
        return found
    return [_field(WHOLE, tree)]


def _field(name: str, tree: Tree) -> Field | str:
    try:
        nullable, inner = _without_null(tree)
        kind, convert = _scalar(inner) or _array(inner) or ("jsonb", _jsonb(inner))
    except BadSchema as error:
        return f"{name}: {error}"
    unit = 1 if kind in ("int4", "int8") else _UNITS.get((inner["type"], inner.get("logicalType")), 0)
    bare = _field(name, _without_later(tree)) if kind != "jsonb" and _is_later(inner) else None
    assert not isinstance(bare, str), "it has a type with what it means"
    return Field(name, kind, nullable, convert, unit, bare)


def _is_later(tree: Tree) -> bool:
    """Whether it is, or is an array of, what had no meaning here once: sources from then have bare values."""
    if isinstance(tree, list):
        return any(map(_is_later, tree))
    return (tree["type"], tree.get("logicalType")) in _LATER or tree["type"] == "array" and _is_later(tree["items"])


def _without_later(tree: Tree) -> Tree:
    if isinstance(tree, list):
        return [_without_later(each) for each in tree]
    if tree["type"] == "array":
        return {**tree, "items": _without_later(tree["items"])}
    if (tree["type"], tree.get("logicalType")) not in _LATER:
        return tree
    return {name: value for name, value in tree.items() if name != "logicalType"}


def _without_null(tree: Tree) -> tuple[bool, Tree]:
    if not isinstance(tree, list):
        if tree["type"] == "null":
            raise BadSchema("it is always null")
        return False, tree
    others = [each for each in tree if each["type"] != "null"]
    if len(others) == 1:
        return len(others) < len(tree), others[0]
    kinds = {each["type"] for each in others}
    if kinds and all(_scalar(each) == _PLAIN.get(each["type"]) for each in others):  # none that means anything else
        for wide, narrow in _UNITED.items():
            if kinds <= narrow:
                return len(others) < len(tree), {"type": wide}
    raise BadSchema("a union of several types has no type here")


def _scalar(tree: Tree) -> tuple[str, Convert] | None:
    kind, logical = tree["type"], tree.get("logicalType")
    if kind in ("bytes", "fixed") and logical == "decimal":
        return _decimal(int(tree["precision"]), int(tree.get("scale", 0)))
    if (found := _LOGICAL.get((kind, logical))) is not None:
        return found
    return _PLAIN.get(kind)


def _array(tree: Tree) -> tuple[str, Convert] | None:
    if tree["type"] != "array":
        return None
    try:
        _, inner = _without_null(tree["items"])
    except BadSchema:
        return None
    found = _scalar(inner)
    if found is None:
        return None
    kind, convert = found
    return f"{kind}[]", lambda value: [None if each is None else convert(each) for each in value]


def _jsonb(tree: Tree) -> Convert:
    shaped = _json(tree)
    return lambda value: jsonb_of(shaped(value))


def _json(tree: Tree) -> Convert:
    """To a JSON value whose numbers are :class:`~values.json_values.Number`."""
    if isinstance(tree, list):
        nullable, inner = _without_null(tree)
        inside = _json(inner)
        return lambda value: None if value is None else inside(value)
    kind = tree["type"]
    if kind == "record":
        fields = [(each["name"], _json(each["type"])) for each in tree["fields"]]
        return lambda value: {name: shaped(value[name]) for name, shaped in fields}
    if kind == "array":
        items = _json(tree["items"])
        return lambda value: [items(each) for each in value]
    if kind == "map":
        values = _json(tree["values"])
        return lambda value: {name: values(each) for name, each in value.items()}
    if kind == "null":
        return lambda value: None
    found = _scalar(tree)
    if found is None:
        raise BadSchema(f"{kind} is no type of a value")
    name, convert = found
    as_json = _AS_JSON.get(name.partition("(")[0], shown)
    return lambda value: as_json(convert(value))


def _whole(name: str, bits: int) -> tuple[str, Convert]:
    low, high = -(1 << (bits - 1)), (1 << (bits - 1)) - 1

    def convert(value: int) -> int:
        if not low <= value <= high:
            raise BadValue(f"{name} out of range")
        return value

    return name, convert


def _decimal(precision: int, scale: int) -> tuple[str, Convert]:
    if not 0 < precision <= DECIMAL_DIGITS_MAX or not 0 <= scale <= precision:
        raise BadSchema(f"a decimal of {precision} digits with {scale} behind the point is none here")
    bound = 10**precision
    free = precision > NUMERIC_PRECISION_MAX

    def convert(value: bytes) -> object:
        number = int.from_bytes(value, "big", signed=True)
        if not -bound < number < bound:
            raise BadValue(f"more than the {precision} digits of its schema")
        found = Decimal(number).scaleb(-scale, _EXACT)
        return format(found, "f") if free else found

    return f"numeric({precision},{scale})", convert


def _date(value: int) -> dt.date:
    try:
        return _EPOCH_DAY + dt.timedelta(days=value)
    except OverflowError:
        raise BadValue("date out of range") from None


def _time(unit: int) -> Convert:
    def convert(value: int) -> int:
        micros = value * unit
        if not 0 <= micros <= _DAY_MICROS:  # 24:00:00 is one
            raise BadValue("time out of range")
        return micros

    return convert


def moment(unit: int, zone: dt.tzinfo | None) -> Convert:
    """``unit``: as of a :class:`Field`."""

    def convert(value: int) -> dt.datetime:
        if unit < 0:
            return (_EPOCH + dt.timedelta(microseconds=value // -unit)).replace(tzinfo=zone)
        try:
            return (_EPOCH + dt.timedelta(microseconds=value * unit)).replace(tzinfo=zone)
        except OverflowError:
            raise BadValue("timestamp out of range") from None

    return convert


def _uuid(value: object) -> str:
    try:
        return read_uuid(string(value))
    except BadText as error:
        raise BadValue(error.message) from None


def _uuid_of_bytes(value: bytes) -> str:
    return str(UUID(bytes=value))


_PLAIN: dict[str, tuple[str, Convert]] = {
    "boolean": ("bool", lambda value: value),
    "int": _whole("int4", 32),
    "long": _whole("int8", 64),
    "float": ("float4", lambda value: value),
    "double": ("float8", float),  # in a union it may come as an int
    "bytes": ("bytea", lambda value: value),
    "fixed": ("bytea", lambda value: value),
    "string": ("text", string),
    "enum": ("text", string),
}
_LOGICAL: dict[tuple[str, object], tuple[str, Convert]] = {
    ("string", "uuid"): ("uuid", _uuid),
    ("fixed", "uuid"): ("uuid", _uuid_of_bytes),
    ("int", "date"): ("date", _date),
    ("int", "time-millis"): ("time", _time(1000)),
    ("long", "time-micros"): ("time", _time(1)),
    ("long", "timestamp-millis"): ("timestamptz", moment(1000, dt.UTC)),
    ("long", "timestamp-micros"): ("timestamptz", moment(1, dt.UTC)),
    ("long", "timestamp-nanos"): ("timestamptz", moment(-1000, dt.UTC)),
    ("long", "local-timestamp-millis"): ("timestamp", moment(1000, None)),
    ("long", "local-timestamp-micros"): ("timestamp", moment(1, None)),
    ("long", "local-timestamp-nanos"): ("timestamp", moment(-1000, None)),
}

def _number(value: object) -> Number:
    """Of a numeric, which is a text where no engine has a decimal for it."""
    return Number(value if isinstance(value, str) else format(value, "f"))


def _float4(value: float) -> Number:
    shown(value)  # which raises for what is no number of JSON's
    return Number(show_float4(value))


_AS_JSON: dict[str, Convert] = {"time": show_time, "numeric": _number, "float4": _float4}
"""What is shown otherwise in ``jsonb`` than its Python value: as PostgreSQL's ``to_jsonb`` has it."""

_UNITS = {
    ("int", "date"): 1, ("int", "time-millis"): 1000, ("long", "time-micros"): 1, ("long", "timestamp-millis"): 1000,
    ("long", "timestamp-micros"): 1, ("long", "timestamp-nanos"): -1000, ("long", "local-timestamp-millis"): 1000,
    ("long", "local-timestamp-micros"): 1, ("long", "local-timestamp-nanos"): -1000,
}  # fmt: skip

_LATER = {("long", "timestamp-nanos"), ("long", "local-timestamp-nanos"), ("fixed", "uuid")}

_UNITED = {
    "long": {"int", "long"}, "double": {"int", "float", "double"}, "string": {"string", "enum"},
    "bytes": {"bytes", "fixed"},
}  # fmt: skip
"""What has every value of each of those types, with no digit lost: a ``double`` has not all of ``long``."""


def named(fields: Sequence[Field | str], name: str) -> Field | str | None:
    """The field of that name, or why it gives no column; ``None`` where there is none."""
    for each in fields:
        if (each.name if isinstance(each, Field) else each.partition(": ")[0]) == name:
            return each
    return None
