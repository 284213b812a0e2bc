"""Messages that others wrote in Protocol Buffers: their descriptors, and their bytes as objects of protobuf's own.

Promises: each message type stands in a pool of its own, so sources neither share nor disturb each other's names; any
bytes are a message or :class:`~schemas.avro_messages.BadMessage`, and any set of descriptors is a type or
:class:`~schemas.avro_messages.BadSchema`.  Fields that a type does not know are passed over, as protobuf means it.

What is hostile is bounded by what protobuf's C core bounds: messages in each other to 100 levels, each length by the
bytes that there are.  What a small message may grow to where it is written out is not bounded here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from google.protobuf import (
    any_pb2,
    descriptor_pb2,
    descriptor_pool,
    duration_pb2,
    empty_pb2,
    field_mask_pb2,
    message_factory,
    struct_pb2,
    timestamp_pb2,
    wrappers_pb2,
)
from google.protobuf.descriptor import Descriptor
from google.protobuf.message import DecodeError, Message

from schemas.avro_messages import BadMessage, BadSchema

SET_BYTES_MAX = 256 * 1024
"""Of a set of descriptors, as the catalog keeps one: some hundred files without their comments.  Its statement, which
a source and its errors keep too, is twice that in hex, and four times in all fit a proposal."""

TYPES_DEEP_MAX = 250
"""Of message types that stand in each other, as protobuf goes through them: it calls itself, by two frames a type, and
Python has room for a thousand frames in all.  A message is in others to 100 levels at most."""

TIMESTAMP, STRUCT, WRAPPERS = (each.DESCRIPTOR.name for each in (timestamp_pb2, struct_pb2, wrappers_pb2))
"""The files of what has a meaning of its own, by their names."""

_KNOWN = {
    each.DESCRIPTOR.name: each.DESCRIPTOR.serialized_pb
    for each in (any_pb2, descriptor_pb2, duration_pb2, empty_pb2, field_mask_pb2, struct_pb2, timestamp_pb2,
                 wrappers_pb2)
}  # fmt: skip
"""Files that come with protobuf.  They are taken from it, whatever a set has by their names."""


_KEYS = frozenset(
    descriptor_pb2.FieldDescriptorProto.Type.Value(f"TYPE_{kind}")
    for kind in ("INT32 INT64 UINT32 UINT64 SINT32 SINT64 FIXED32 FIXED64 SFIXED32 SFIXED64 BOOL STRING").split()
)
"""What a map may be by."""


def read_type(data: bytes, name: str) -> Descriptor:
    """The message type ``name``, with its package, of a ``FileDescriptorSet``.

    Raises ``BadSchema``, with words for a person.
    """
    if len(data) > SET_BYTES_MAX:
        raise BadSchema(f"it has {len(data)} bytes, at most {SET_BYTES_MAX} are read")
    try:
        files = {each.name: each for each in descriptor_pb2.FileDescriptorSet.FromString(data).file}
    except DecodeError:
        raise BadSchema("it is no FileDescriptorSet") from None
    if not files:
        raise BadSchema("it has no files")
    if any(isinstance(name, bytes) for each in files.values() for name in (each.name, *each.dependency)):
        raise BadSchema("it has a file whose name is not UTF-8")  # protobuf checks all names but those
    if any(map(_is_odd_map, (top for each in files.values() for top in each.message_type))):
        raise BadSchema("it has a map without a key and a value")  # which protobuf takes on trust
    pool = descriptor_pool.DescriptorPool()
    for each in _in_order(files):
        try:
            pool.Add(each)
        except (TypeError, ValueError) as error:
            raise BadSchema(f"its file {each.name[:100]}: {str(error)[:300]}") from None
    try:
        found = pool.FindMessageTypeByName(name.removeprefix("."))
    except KeyError:
        there = sorted(f"{each.package}.{top.name}".strip(".") for each in files.values() for top in each.message_type)
        raise BadSchema(f'it has no message "{name}", but {", ".join(there)[:300] or "none"}') from None
    if not found.fields:
        raise BadSchema(f'its message "{name}" has no fields')
    if _are_deep(found):
        raise BadSchema(f"it has more than {TYPES_DEEP_MAX} message types that stand in each other")
    return found


def _are_deep(of: Descriptor) -> bool:
    """Whether protobuf goes deeper than may be when it makes the class of this type: first types first, each once."""
    seen, path = {of.full_name}, [_next_to(of)]
    while path:
        for each in path[-1]:
            if each.full_name not in seen:
                seen.add(each.full_name)
                path.append(_next_to(each))
                break
        else:
            path.pop()
        if len(path) > TYPES_DEEP_MAX:
            return True
    return False


def _next_to(of: Descriptor) -> Iterator[Descriptor]:
    for each in of.fields:
        if each.message_type:
            yield each.message_type
    for each in of.extensions:
        yield each.containing_type
        if each.message_type:
            yield each.message_type


def _is_odd_map(message: Any) -> bool:
    """Whether it, or one in it, says that it is an entry of a map and is none."""
    left = [message]
    while left:
        each = left.pop()
        left += each.nested_type
        if each.options.map_entry:
            said = [(field.number, field.name, field.label) for field in each.field]
            once = descriptor_pb2.FieldDescriptorProto.LABEL_OPTIONAL
            if said != [(1, "key", once), (2, "value", once)] or each.field[0].type not in _KEYS:
                return True
    return False


def _in_order(files: dict[str, Any]) -> Iterable[Any]:
    """What is imported before what imports it.  Raises ``BadSchema``."""
    done: dict[str, Any] = {}
    begun: set[str] = set()
    left = list(reversed(files))
    while left:
        name = left[-1]
        if name in done:
            left.pop()
            continue
        known = name in _KNOWN
        file = descriptor_pb2.FileDescriptorProto.FromString(_KNOWN[name]) if known else files.get(name)
        if file is None:
            raise BadSchema(f"it lacks the file {name[:100]}, which is imported: protoc --include_imports has all")
        missing = [each for each in file.dependency if each not in done]
        if missing and name in begun:
            raise BadSchema(f"its file {name[:100]} imports itself")
        begun.add(name)
        if missing:
            left += missing
        else:
            done[name] = file
            left.pop()
    return done.values()


def reading(of: Descriptor) -> Callable[[bytes], Message]:
    """What gives the message of bytes; it raises ``BadMessage``."""
    made = message_factory.GetMessageClass(of)
    parse, is_whole = made.FromString, made.IsInitialized
    required = _requires(of)

    def read(data: bytes) -> Message:
        try:
            found = parse(data)
        except DecodeError as error:
            raise BadMessage(f"not a message of its type ({_why(str(error))})") from None
        if required and not is_whole(found):
            lacking = ", ".join(found.FindInitializationErrors())[:200]
            raise BadMessage(f"it lacks fields that its type requires: {lacking}")
        return found

    return read


def presence(of: Descriptor) -> Callable[[Message, str], bool]:
    """What tells whether a message of this type has that field.  (A field may be called as what tells it is.)"""
    return message_factory.GetMessageClass(of).HasField


def _requires(of: Descriptor) -> bool:
    seen, left = {of.full_name}, [of]
    while left:
        for field in left.pop().fields:
            if field.is_required:
                return True
            inner = field.message_type
            if inner is not None and inner.full_name not in seen:
                seen.add(inner.full_name)
                left.append(inner)
    return False


def _why(error: str) -> str:
    return error.rpartition(": ")[2][:100]
