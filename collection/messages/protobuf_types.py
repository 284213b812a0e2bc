"""What Protocol Buffers' types are here, and their values.  Pure.

A message's fields are columns, in the order in which they are declared.  Numbers, booleans, texts and bytes are what
they are called; what is unsigned is the next wider type (``uint32`` an ``int8``, ``uint64`` a ``numeric(20,0)``); an
enum is its value's name, and the number as text where its type has no name for it.  A message, a map and whatever is
repeated are ``jsonb``, as Materialize has them.  ``google.protobuf.Timestamp`` is a ``timestamptz``, cut to
microseconds, the wrappers are what they wrap, and ``Struct``, ``Value`` and ``ListValue`` the JSON that they say.

NULL is what a message does not have where its type can tell: messages, ``optional`` fields and members of a oneof.
Where it cannot (proto3's plain fields), and where a default is declared, the default stands for it.

In ``jsonb`` it is the same: every field by its name, null where it is missing.  Messages that hold themselves are as
deep there as they were sent, which protobuf bounds.
"""

from __future__ import annotations

import datetime as dt
import struct
from collections.abc import Callable
from decimal import Decimal
from operator import attrgetter
from typing import Any, NamedTuple

from google.protobuf.descriptor import Descriptor, EnumDescriptor, FieldDescriptor
from google.protobuf.message import Message

from collection.messages.avro_types import Convert, Field, moment
from collection.messages.built_jsonb import jsonb_of, shown, too_long
from collection.rows import ROW_BYTES_MAX
from schemas.protobuf_messages import STRUCT, TIMESTAMP, WRAPPERS, presence
from values.json_values import BadValue, Number, string

Raw = Callable[[Message], object]
"""What a field holds in a message, or ``None`` where it is missing.  Raises ``BadValue``."""

NAME_CHARS_MAX = 1_000
"""Of an enum's value, or of a default, that many messages are read with at once: a byte in a message, or none, is all
of it in a row."""

_NANOS = 1_000_000_000


class Part(NamedTuple):
    """A field as a column: what it is, and where its values come from."""

    field: Field
    raw: Raw
    long: bool = False
    """Whether its values may be far longer than what was sent."""


def parts_of(of: Descriptor) -> list[Part]:
    shapes = _Shapes()
    return [_part(each, shapes) for each in of.fields]


def _part(field: FieldDescriptor, shapes: _Shapes) -> Part:
    raw, nullable = _raw(field)
    if field.is_repeated:
        return Part(Field(field.name, "jsonb", False, shapes.column(shapes.repeated(field))), raw, True)
    inner = field.message_type
    if inner is None:
        kind, convert, unit = _SCALARS[field.type]
        of_enum = field.enum_type
        if of_enum is None:
            return Part(Field(field.name, kind, nullable, convert, unit), raw, _default_chars(field) > NAME_CHARS_MAX)
        named = _named(of_enum)
        long = max(len(each.name) for each in of_enum.values) > NAME_CHARS_MAX
        return Part(Field(field.name, kind, nullable, convert), lambda message: named(raw(message)), long)
    if inner.file.name == TIMESTAMP:
        return Part(Field(field.name, "timestamptz", nullable, _moment, 1), lambda m: _micros(raw(m)))
    if inner.file.name == WRAPPERS:
        wrapped = inner.fields_by_name["value"]
        kind, convert, unit = _SCALARS[wrapped.type]
        return Part(Field(field.name, kind, nullable, convert, unit), lambda m: _unwrapped(raw(m)))
    return Part(Field(field.name, "jsonb", nullable, shapes.column(shapes.of_message(inner))), raw, True)


def _raw(field: FieldDescriptor) -> tuple[Raw, bool]:
    """With whether it may be missing."""
    get, name = attrgetter(field.name), field.name
    told = field.has_presence and not field.is_required and (field.message_type or not field.has_default_value)
    if not told:
        return get, False
    has = presence(field.containing_type)
    return lambda message: get(message) if has(message, name) else None, True


def _default_chars(field: FieldDescriptor) -> int:
    """Of the default of a text or of bytes."""
    default = field.default_value
    return len(default) if isinstance(default, (str, bytes)) else 0


def _named(of: EnumDescriptor) -> Callable[[object], object]:
    names = {each.number: each.name for each in reversed(of.values)}  # of two names of a number the first
    return lambda number: None if number is None else names.get(number) or str(number)


def _unwrapped(wrapper: Any) -> object:
    return None if wrapper is None else wrapper.value


def _micros(at: Any) -> int | None:
    if at is None:
        return None
    nanos: int = at.nanos
    if not 0 <= nanos < _NANOS:
        raise BadValue("timestamp out of range")
    return at.seconds * 1_000_000 + nanos // 1000


_moment = moment(1, dt.UTC)


def _text(value: object) -> str:
    if isinstance(value, bytes):  # as proto2 gives what is not UTF-8
        raise BadValue("not UTF-8")
    return string(value)


def _same(value: object) -> object:
    return value


def _single(value: float) -> object:
    """As JSON in as few digits as say it: 0.1 and not what is nearest to it in a double."""
    for digits in range(6, 10):  # nine say any float
        near = float(f"{value:.{digits}g}")
        try:
            if struct.unpack("<f", struct.pack("<f", near))[0] == value:
                return shown(near)
        except OverflowError:  # the largest ones, rounded up
            continue
    return shown(value)


_INT4, _INT8 = ("int4", _same, 1), ("int8", _same, 1)
_SCALARS: dict[int, tuple[str, Convert, int]] = {
    FieldDescriptor.TYPE_BOOL: ("bool", _same, 0),
    FieldDescriptor.TYPE_INT32: _INT4, FieldDescriptor.TYPE_SINT32: _INT4, FieldDescriptor.TYPE_SFIXED32: _INT4,
    FieldDescriptor.TYPE_INT64: _INT8, FieldDescriptor.TYPE_SINT64: _INT8, FieldDescriptor.TYPE_SFIXED64: _INT8,
    FieldDescriptor.TYPE_UINT32: _INT8, FieldDescriptor.TYPE_FIXED32: _INT8,
    FieldDescriptor.TYPE_UINT64: ("numeric(20,0)", Decimal, 0),
    FieldDescriptor.TYPE_FIXED64: ("numeric(20,0)", Decimal, 0),
    FieldDescriptor.TYPE_FLOAT: ("float4", _same, 0), FieldDescriptor.TYPE_DOUBLE: ("float8", _same, 0),
    FieldDescriptor.TYPE_STRING: ("text", _text, 0), FieldDescriptor.TYPE_ENUM: ("text", string, 0),
    FieldDescriptor.TYPE_BYTES: ("bytea", _same, 0),
}  # fmt: skip
"""The type, what makes a value of it, and the unit of a plain number (:class:`~.avro_types.Field`)."""


class _Left:
    """Of the characters that one value may have as ``jsonb``.  A message's names are counted before they are there, and
    its defaults as they come: a million messages of two bytes each would have as many as their type has fields."""

    __slots__ = ("chars",)

    def __init__(self) -> None:
        self.chars = ROW_BYTES_MAX

    def take(self, chars: int) -> None:
        self.chars -= chars
        if self.chars < 0:
            raise too_long()


Shape = Callable[[Any, _Left], object]
"""From what a field holds to JSON whose numbers are :class:`~values.json_values.Number`."""


def _counted(value: Any, left: _Left) -> object:
    """A text, or bytes, whose default has some length: of that protobuf makes a copy for each message without it."""
    left.take(len(value) * (2 if isinstance(value, bytes) else 1))
    return value


class _Shapes:
    """Of each message type once, since one may hold itself."""

    def __init__(self) -> None:
        self._made: dict[str, Shape] = {}

    def column(self, shape: Shape) -> Convert:
        return lambda value: jsonb_of(shape(value, _Left()))

    def repeated(self, field: FieldDescriptor) -> Shape:
        inner = field.message_type
        if inner is not None and inner.GetOptions().map_entry:
            key, value = inner.fields_by_name["key"], inner.fields_by_name["value"]
            name_of, shape = _key(key), self._one(value)

            def entries(held: Any, left: _Left) -> object:
                left.take(4 * len(held))
                return {name_of(name): shape(each, left) for name, each in held.items()}

            return entries
        one = self._one(field)

        def items(held: Any, left: _Left) -> object:
            left.take(2 * len(held))
            return [one(each, left) for each in held]

        return items

    def _one(self, field: FieldDescriptor) -> Shape:
        if field.message_type is not None:
            return self.of_message(field.message_type)
        if field.enum_type is not None:
            named = _named(field.enum_type)
            return lambda value, _: named(value)
        if field.type == FieldDescriptor.TYPE_FLOAT:
            return lambda value, _: _single(value)
        convert = _SCALARS[field.type][1]
        if _default_chars(field):
            return lambda value, left: shown(convert(_counted(value, left)))
        return lambda value, _: shown(convert(value))

    def of_message(self, of: Descriptor) -> Shape:
        found = self._made.get(of.full_name)
        if found is None:
            found = self._made[of.full_name] = self._shape(of)
        return found

    def _shape(self, of: Descriptor) -> Shape:
        if of.file.name == TIMESTAMP:
            return lambda value, _: _moment(_micros(value)).isoformat()
        if of.file.name == WRAPPERS:
            one = self._one(of.fields_by_name["value"])
            return lambda value, left: one(value.value, left)
        if of.file.name == STRUCT:
            return _JSON[of.name]
        fields: list[tuple[str, Raw, Shape]] = []
        chars = 2 + sum(len(each.name) + 6 for each in of.fields)

        def shape(message: Any, left: _Left) -> object:
            left.take(chars)
            if not fields:  # made with the first message: types are in each other deeper than calls may be
                fields.extend(
                    (each.name, _raw(each)[0], self.repeated(each) if each.is_repeated else self._one(each))
                    for each in of.fields
                )
            shaped = {}
            for name, raw, one in fields:
                held = raw(message)
                shaped[name] = None if held is None else one(held, left)
            return shaped

        return shape


def _key(field: FieldDescriptor) -> Callable[[object], str]:
    if field.type == FieldDescriptor.TYPE_STRING:
        return _text
    return lambda key: str(key).lower() if isinstance(key, bool) else str(key)


def _struct(held: Any, left: _Left) -> object:
    left.take(4 * len(held.fields))
    return {name: _value(each, left) for name, each in held.fields.items()}


def _list(held: Any, left: _Left) -> object:
    left.take(2 * len(held.values))
    return [_value(each, left) for each in held.values]


def _value(held: Any, left: _Left) -> object:
    kind = held.WhichOneof("kind")
    if kind is None or kind == "null_value":
        return None
    found = getattr(held, kind)
    if kind == "number_value":
        return Number(format(Decimal(int(found)), "f")) if found.is_integer() and abs(found) < 1e15 else shown(found)
    return _JSON[found.DESCRIPTOR.name](found, left) if kind in ("struct_value", "list_value") else found


_JSON: dict[str, Shape] = {"Struct": _struct, "Value": _value, "ListValue": _list}
