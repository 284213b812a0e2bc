"""Sets of descriptors as ``protoc --include_imports --descriptor_set_out`` makes them, and messages of their types."""

from __future__ import annotations

from collections.abc import Sequence

from google.protobuf import (
    descriptor_pb2,
    descriptor_pool,
    duration_pb2,
    message_factory,
    struct_pb2,
    text_format,
    timestamp_pb2,
    wrappers_pb2,
)
from google.protobuf.descriptor_pb2 import FieldDescriptorProto as Kind

from catalog_log.objects.reading import Format

REPEATED = "repeated "
OPTIONAL = "optional "
REQUIRED = "required "


def field(message, number: int, name: str, said: str, oneof: int | None = None, default: str = "") -> None:
    """``said``: ``int32``, ``repeated .p.M``, ``optional string``…; an enum's name begins with ``enum ``."""
    made = message.field.add(name=name, number=number, label=Kind.LABEL_OPTIONAL)
    for word, label in ((REPEATED, Kind.LABEL_REPEATED), (REQUIRED, Kind.LABEL_REQUIRED)):
        if said.startswith(word):
            made.label, said = label, said.removeprefix(word)
    if said.startswith(OPTIONAL):
        said, made.proto3_optional = said.removeprefix(OPTIONAL), True
    if said.startswith("enum "):
        made.type, made.type_name = Kind.TYPE_ENUM, said.removeprefix("enum ")
    elif said.startswith("."):
        made.type, made.type_name = Kind.TYPE_MESSAGE, said
    else:
        made.type = Kind.Type.Value(f"TYPE_{said.upper()}")
    if made.proto3_optional:
        oneof = len(message.oneof_decl)
        message.oneof_decl.add(name=f"_{name}")
    if oneof is not None:
        made.oneof_index = oneof
    if default:
        made.default_value = default


def file(messages: dict[str, dict[str, str]], name: str = "p.proto", package: str = "p", syntax: str = "proto3",
         imports: Sequence[str] = (), enums: dict[str, dict[str, int]] | None = None):  # fmt: skip
    made = descriptor_pb2.FileDescriptorProto(name=name, package=package, dependency=imports)
    if syntax == "proto3":
        made.syntax = syntax
    for called, values in (enums or {}).items():
        enum = made.enum_type.add(name=called)
        enum.options.allow_alias = len(set(values.values())) < len(values)
        for value, number in values.items():
            enum.value.add(name=value, number=number)
    for called, fields in messages.items():
        message = made.message_type.add(name=called)
        for number, (each, said) in enumerate(fields.items(), 1):
            field(message, number, each, said)
    return made


def said_set(*files) -> bytes:
    return descriptor_pb2.FileDescriptorSet(file=files).SerializeToString()


def protobuf(message: str, *files) -> Format:
    return Format("protobuf", schema=said_set(*files).hex(), message=message)


KNOWN = {each.DESCRIPTOR.name: each.DESCRIPTOR for each in (duration_pb2, struct_pb2, timestamp_pb2, wrappers_pb2)}


def message_class(message: str, *files):
    """What makes messages of a type."""
    pool = descriptor_pool.DescriptorPool()
    for each in files:
        for name in each.dependency:
            KNOWN[name].CopyToProto(known := descriptor_pb2.FileDescriptorProto())
            pool.Add(known)
        pool.Add(each)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName(message))


def sent(message: str, text: str, *files) -> bytes:
    """The bytes of a message, from its text."""
    made = message_class(message, *files)
    return text_format.Parse(text, made(), descriptor_pool=made.DESCRIPTOR.file.pool).SerializeToString()
