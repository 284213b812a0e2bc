"""Messages that others wrote in Avro: their schemas, and their bytes as Python has them.

Promises: bytes are read by the schema that they were written with and seen by the reader's, by Avro's rules of
resolution; what does not fit is :class:`BadMessage`, and nothing else, for any bytes.  A value is as Avro carries it: a
date is its days, a decimal its bytes, so what a logical type means is whoever's who asks.  Where writer and reader name
different logical types for the same place the two are not compatible: as bare numbers they would be, and mean
something else.  A default of the reader's is a value as Avro carries it; one that is none of its type is no default.

What a hostile schema could do is refused with the schema: one that holds itself (its bytes may be nested as deep as
they are long, which ends a process), and an array of what takes no bytes (which may say any number of items).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from io import BytesIO
from typing import Any

import fastavro
from fastavro.read import SchemaResolutionError
from fastavro.schema import SchemaParseException, UnknownType

from schemas import avro_walk

SCHEMA_CHARS_MAX = 256 * 1024
"""As the catalog keeps one: a table of 1,600 columns is described in 100 KB."""

DEPTH_MAX = 32
"""Of records, arrays and maps in each other."""

TYPES_MAX = 20_000
"""Types in one schema, with those of a named one counted wherever it is named: what is small may name itself out."""

_NAMED = ("record", "error", "enum", "fixed")
_LOGICAL = ("logicalType", "precision", "scale")

_DEFAULT = "tidemark.default"
"""What a field's default is called while fastavro parses a schema: it would take the text that JSON has for bytes for a
value, refuse a default that nobody asks for, and leave out what a record in it has by default."""

_WIDER = {
    "int": ("long", "float", "double"), "long": ("float", "double"), "float": ("double",), "string": ("bytes",),
    "bytes": ("string",),
}  # fmt: skip
"""Types that Avro reads the values of one as."""

Tree = Any
"""A schema without names for what was said before: texts, lists and mappings as Avro's JSON has them."""


class BadSchema(ValueError):
    """What is no schema, or none that messages are read by."""


class BadMessage(ValueError):
    """Bytes that are no message of their schema, or whose schema does not fit the reader's."""


@dataclass(frozen=True)
class Schema:
    text: str
    tree: Tree
    """With logical types, and every type where it is used."""
    physical: Any
    """What fastavro reads by."""


def read_schema(text: str) -> Schema:
    """Raises :class:`BadSchema`, with words for a person."""
    if len(text) > SCHEMA_CHARS_MAX:
        raise BadSchema(f"it has {len(text)} characters, at most {SCHEMA_CHARS_MAX} are read")
    try:
        said = json.loads(text)
        parsed = fastavro.parse_schema(_bare(said))
    except UnknownType as error:
        raise BadSchema(f"it names {error.name}, which it does not have") from None
    except SchemaParseException as error:
        raise BadSchema(str(error)) from None
    except RecursionError:
        raise BadSchema("it is nested too deep") from None
    except Exception as error:  # fastavro raises many kinds for what is JSON and no schema
        raise BadSchema(f"it is no Avro schema ({type(error).__name__})") from None
    try:
        json.dumps(said, ensure_ascii=False).encode()
    except UnicodeEncodeError:  # as a symbol or a default it would be a value that nobody can keep
        raise BadSchema("it holds half of a surrogate pair") from None
    tree = _Whole().of(parsed, 0, ())
    _check_widths(tree)
    physical = fastavro.parse_schema(_bare(said, _LOGICAL))
    _set_defaults(physical)
    return Schema(text, tree, physical)


class _Whole:
    """Names replaced by what they name."""

    def __init__(self) -> None:
        self._named: dict[str, Mapping[str, Any]] = {}
        self._count = 0

    def of(self, part: Any, depth: int, within: tuple[str, ...]) -> Tree:
        self._count += 1
        if self._count > TYPES_MAX:
            raise BadSchema(f"it has more than {TYPES_MAX} types")
        if isinstance(part, str):
            if part in within:
                raise BadSchema(f"{part} holds itself")
            named = self._named.get(part)
            return {"type": part} if named is None else self.of(named, depth, within)
        if depth > DEPTH_MAX:
            raise BadSchema(f"it is nested deeper than {DEPTH_MAX}")
        if isinstance(part, list):
            found = [self.of(each, depth + 1, within) for each in part]
            if any(isinstance(each, list) for each in found):
                raise BadSchema("it has a union in a union")
            return found
        kind = part["type"]
        if isinstance(kind, (list, dict)):
            return self.of(kind, depth + 1, within)
        if kind in _NAMED:
            self._named[part["name"]] = part
        if kind in ("record", "error"):
            inside = (*within, part["name"])
            if not all(_is_name(each["name"]) for each in part["fields"]):
                raise BadSchema("it has a field whose name is none")
            fields = [{**each, "type": self.of(each["type"], depth + 1, inside)} for each in part["fields"]]
            return {"type": "record", "name": part["name"], "fields": fields}
        if kind == "array":
            return {"type": kind, "items": self.of(part["items"], depth + 1, within)}
        if kind == "map":
            return {"type": kind, "values": self.of(part["values"], depth + 1, within)}
        if kind in self._named and kind != part.get("name"):  # {"type": "a name"}
            return self.of(kind, depth, within)
        left = ("doc", "default", "aliases", *(() if _is_meant(part) else _LOGICAL))
        return {name: value for name, value in part.items() if name not in left}


def _is_name(name: object) -> bool:
    """Whether it may be a column's; Avro has fewer, and others write more than Avro has."""
    return isinstance(name, str) and name != "" and "\0" not in name


def _is_meant(part: Mapping[str, Any]) -> bool:
    """Whether it has a logical type that says what it must: otherwise the bare value counts, as Avro has it."""
    logical = part.get("logicalType")
    if logical == "decimal":
        return type(part.get("precision")) is int and type(part.get("scale", 0)) is int
    if logical == "uuid" and part.get("type") == "fixed":
        return part.get("size") == 16
    return isinstance(logical, str)


def _check_widths(tree: Tree) -> None:
    for each in _parts(tree):
        if isinstance(each, dict) and each["type"] == "array" and _takes_nothing(each["items"]):
            raise BadSchema("it has an array of what takes no bytes")


def _parts(tree: Tree) -> list[Tree]:
    found, left = [], [tree]
    while left:
        each = left.pop()
        found.append(each)
        if isinstance(each, list):
            left += each
        elif each["type"] == "record":
            left += [field["type"] for field in each["fields"]]
        elif each["type"] == "array":
            left.append(each["items"])
        elif each["type"] == "map":
            left.append(each["values"])
    return found


def _takes_nothing(tree: Tree) -> bool:
    if isinstance(tree, list):
        return False
    if tree["type"] == "record":
        return all(_takes_nothing(field["type"]) for field in tree["fields"])
    return tree["type"] == "null" or tree["type"] == "fixed" and not tree["size"]


def _bare(said: Any, without: Sequence[str] = ()) -> Any:
    """A schema as JSON with the defaults of fields put aside, and ``without`` what says how values are meant."""
    if isinstance(said, list):
        return [_bare(each, without) for each in said]
    if not isinstance(said, dict):
        return said
    left = {name: value for name, value in said.items() if name not in without}
    for name in ("type", "items", "values"):
        if name in left:
            left[name] = _bare(left[name], without)
    if isinstance(left.get("fields"), list):
        left["fields"] = [_put_aside(_bare(each, without)) for each in left["fields"]]
    return left


def _put_aside(field: Any) -> Any:
    if not isinstance(field, dict):
        return field
    return {_DEFAULT if name == "default" else name: value for name, value in field.items() if name != _DEFAULT}


def _set_defaults(parsed: Any) -> None:
    """Give the fields in ``parsed`` their defaults as values of their types; one that is none is left out, so that a
    message which would need it is told so."""
    named: dict[str, Any] = {}
    fields: list[dict[str, Any]] = []
    left = [parsed]
    while left:
        each = left.pop()
        if isinstance(each, list):
            left += each
        elif isinstance(each, dict):
            if each["type"] in _NAMED:
                named[each["name"]] = each
            fields += each.get("fields", ())
            left += [each[name] for name in ("type", "items", "values") if name in each]
            left += [field["type"] for field in each.get("fields", ())]
    for field in fields:
        if _DEFAULT in field:
            try:
                field["default"] = _carried(field[_DEFAULT], field["type"], named)
            except _NoValue:
                pass


_BITS = {"int": 31, "long": 63}
"""Of a number, without its sign."""


class _NoValue(Exception):
    """A default that is none."""


def _carried(said: Any, part: Any, named: Mapping[str, Any]) -> Any:
    """The value of type ``part`` that JSON says.  Raises :class:`_NoValue`."""
    if isinstance(part, list):
        for each in part:
            try:
                return _carried(said, each, named)
            except _NoValue:
                continue
        raise _NoValue
    if isinstance(part, str):
        if part in named:
            return _carried(said, named[part], named)
        part = {"type": part}
    kind = part["type"]
    if isinstance(kind, (list, dict)) or kind in named:
        return _carried(said, kind, named)
    match kind:
        case "null" if said is None:
            return None
        case "boolean" if isinstance(said, bool):
            return said
        case "int" | "long" if type(said) is int and -(1 << _BITS[kind]) <= said < 1 << _BITS[kind]:
            return said
        case "float" | "double" if type(said) is float or type(said) is int and abs(said) < 1 << 1023:
            return float(said)
        case "string" if isinstance(said, str):
            return said
        case "enum" if said in part["symbols"]:
            return said
        case "bytes" | "fixed" if isinstance(said, str) and all(ord(each) < 256 for each in said):
            if kind == "bytes" or len(said) == part["size"]:
                return said.encode("latin-1")
        case "array" if isinstance(said, list):
            return [_carried(each, part["items"], named) for each in said]
        case "map" if isinstance(said, dict):
            return {name: _carried(each, part["values"], named) for name, each in said.items()}
        case "record" | "error" if isinstance(said, dict):
            return {field["name"]: _in_record(said, field, named) for field in part["fields"]}
    raise _NoValue


def _in_record(said: Mapping[str, Any], field: Mapping[str, Any], named: Mapping[str, Any]) -> Any:
    if field["name"] in said:
        return _carried(said[field["name"]], field["type"], named)
    if _DEFAULT in field:
        return _carried(field[_DEFAULT], field["type"], named)
    raise _NoValue


def reading(writer: Schema, reader: Schema) -> Callable[[bytes, int], Any]:
    """What gives the value of a message from a place in its bytes on; it raises :class:`BadMessage`.

    Raises :class:`BadMessage` at once where no message of ``writer`` could mean anything to ``reader``.
    """
    if place := _meant_otherwise(writer.tree, reader.tree, "it"):
        raise BadMessage(f"{place} has another logical type in the schema that it was written with")
    written, seen = writer.physical, None if writer.text == reader.text else reader.physical
    end_of = avro_walk.walk(writer.tree)

    def read(data: bytes, begin: int) -> Any:
        try:
            left = len(data) - end_of(data, begin)
        except IndexError:
            left = -1
        except avro_walk.BadValue as error:
            raise BadMessage(f"not a value of its schema: {error}") from None
        if left:
            what = f"{left} bytes are left over" if left > 0 else "not a value of its schema: it ends too soon"
            raise BadMessage(what)
        source = BytesIO(data)
        source.seek(begin)
        try:
            found = fastavro.schemaless_reader(source, written, seen)
        except SchemaResolutionError as error:
            raise BadMessage(f"its schema does not fit the source's: {str(error)[:200]}") from None
        except Exception as error:  # fastavro raises many kinds (EOFError, IndexError…) for hostile bytes
            raise BadMessage(f"not a value of its schema ({type(error).__name__})") from None
        return found

    return read


def _meant_otherwise(writer: Tree, reader: Tree, place: str) -> str | None:
    """A place that both have and mean otherwise."""
    if isinstance(writer, list) or isinstance(reader, list):
        ones = writer if isinstance(writer, list) else [writer]
        others = reader if isinstance(reader, list) else [reader]
        for one in ones:
            alike = [each for each in others if each["type"] in (one["type"], *_WIDER.get(one["type"], ()))]
            found = [_meant_otherwise(one, each, place) for each in alike]
            if alike and all(found):
                return found[0]
        return None
    if writer["type"] != reader["type"]:
        # A promotion, from int to long or so, or nothing that fits: a plain number is none of days.
        return place if _meaning(writer) != _meaning(reader) else None
    if writer["type"] == "record":
        fields = {alias: field for field in reader["fields"] for alias in field.get("aliases", ())}
        fields |= {field["name"]: field for field in reader["fields"]}
        for field in writer["fields"]:
            seen = fields.get(field["name"])
            if seen is not None and (found := _meant_otherwise(field["type"], seen["type"], seen["name"])):
                return found
        return None
    if writer["type"] == "array":
        return _meant_otherwise(writer["items"], reader["items"], place)
    if writer["type"] == "map":
        return _meant_otherwise(writer["values"], reader["values"], place)
    return place if _meaning(writer) != _meaning(reader) else None


def _meaning(tree: Mapping[str, Any]) -> tuple:
    logical = tree.get("logicalType")
    if logical == "decimal":
        return logical, tree.get("precision"), tree.get("scale", 0)
    return (logical if logical in MEANT else None,)


MEANT = frozenset({
    "decimal", "uuid", "date", "time-millis", "time-micros", "timestamp-millis", "timestamp-micros", "timestamp-nanos",
    "local-timestamp-millis", "local-timestamp-micros", "local-timestamp-nanos",
})  # fmt: skip
"""Logical types that are known; of others the bare value counts, as Avro has it."""
