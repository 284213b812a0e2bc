"""A plan as text that travels from who made it to who runs it, and back.

Promises: ``decode(encode(q)) == q``; ``decode`` raises ``ValueError`` for what no plan is written like, and takes no
stack for what is deep, nor time for what is small as it is sent and large once it is written out.  What a plan means is
not looked at: who runs one has a gate of his own.

A JSON object: ``types`` and ``nodes`` are lists, in which a node names others, and types, by their places; nodes come
after those that they are made of, the whole last.  A part that stands in a plan several times is written once.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import fields
from functools import lru_cache
from typing import Any, NamedTuple, get_args, get_origin, get_type_hints

from plan import relations as r
from plan import scalars as s
from plan.nodes import Node
from plan.types import NOTHING, SPAN, ListOf, Native, Row, Type
from values.datatypes.registry import DATATYPES
from values.sql_type import SqlType

PARTS_MAX = 200_000
"""Parts of a plan, each as often as it stands there, and of a type.  A statement has 100,000 nodes at most, of each of
which a part is made, or of a cast two; who walks as many is at it for a second or two."""

_NAMES = DATATYPES.keys() | {NOTHING.name, SPAN.name}

_CLASSES: Mapping[str, type[Node]] = {
    each.__name__: each
    for module in (r, s)
    for each in vars(module).values()
    if isinstance(each, type) and issubclass(each, Node)
    and each not in (Node, r.Relation, s.Scalar, s.SequenceCall, s.Choice)  # values are drawn before a plan travels
}  # fmt: skip


def encode(query: r.Query) -> str:
    """``query`` as text."""
    writer = _Writer()
    writer.whole(query.relation)
    return json.dumps(
        {"names": query.names, "types": writer.types, "nodes": writer.nodes}, separators=(",", ":"), ensure_ascii=False
    )


def decode(text: str) -> r.Query:
    """The query in ``text``.  Raises ``ValueError``."""
    try:
        raw = json.loads(text)
        reader = _Reader()
        for each in raw["types"]:
            reader.type(each)
        for each in raw["nodes"]:
            reader.node(each)
        names = tuple(_known(each, str) for each in raw["names"])
        relation = _known(reader.nodes[-1], r.Relation)
    except _TooLarge:
        raise ValueError(f"no plan: it has more than {PARTS_MAX} parts") from None
    except (KeyError, IndexError, TypeError, ValueError, AttributeError, RecursionError) as error:
        raise ValueError(f"no plan: {type(error).__name__}: {error}") from error
    return r.Query(relation, names)


def _known(value: object, kind: type) -> Any:
    """``value`` if it is a ``kind`` (a bool is no int); raises ``TypeError``."""
    if not isinstance(value, kind) or kind is int and isinstance(value, bool):
        raise TypeError(f"expected {kind.__name__}, got {type(value).__name__}")
    if kind is str and not value.isascii():
        value.encode()  # JSON has halves of characters, which no text has
    return value


def _place(value: object) -> int:
    """``value`` if it counts something.  Raises ``TypeError``."""
    if _known(value, int) < 0:
        raise TypeError(f"a place {value}")
    return value


class _TooLarge(Exception):
    """More parts than :data:`PARTS_MAX`."""


class _Form(NamedTuple):
    """How one kind of field is written and read."""

    write: Callable[[_Writer, Any], object]
    read: Callable[[_Reader, Any], object]


class _Writer:
    def __init__(self) -> None:
        self.types: list[object] = []
        self.nodes: list[list[object]] = []
        self._types: dict[Type, int] = {}
        self._nodes: dict[int, int] = {}

    def whole(self, root: Node) -> None:
        """Write ``root``, all that it is made of before it."""
        stack = [(root, False)]
        while stack:
            node, is_next = stack.pop()
            if id(node) in self._nodes:
                continue
            if not is_next:
                stack.append((node, True))
                stack += [(part, False) for part in node.parts()]
                continue
            assert type(node).__name__ in _CLASSES, node
            written = [form.write(self, getattr(node, name)) for name, form in _forms(type(node))]
            self._nodes[id(node)] = len(self.nodes)
            self.nodes.append([type(node).__name__, *written])

    def place(self, node: Node) -> int:
        return self._nodes[id(node)]

    def type(self, kind: Type) -> int:
        if kind not in self._types:
            written = self._written(kind)
            self._types[kind] = len(self.types)
            self.types.append(written)
        return self._types[kind]

    def _written(self, kind: Type) -> object:
        if isinstance(kind, Row):
            return {"row": [[name, self.type(each)] for name, each in kind.fields]}
        if isinstance(kind, ListOf):
            return {"list": self.type(kind.element)}
        if isinstance(kind, Native):
            raise TypeError(f"a plan with {kind} in it is answered where it was made")
        parts = [kind.name, kind.precision, kind.scale, kind.fields]
        while parts[-1] is None:
            parts.pop()
        return parts


class _Reader:
    def __init__(self) -> None:
        self.types: list[Type] = []
        self.nodes: list[Node] = []
        self._sizes: dict[str, list[int]] = {"types": [], "nodes": []}
        """How many parts each has, those that it shares with others counted in."""
        self._size = 1
        """Of what is being read."""

    def node(self, raw: Any) -> None:
        kind = _CLASSES[raw[0]]
        forms = _forms(kind)
        if len(raw) != len(forms) + 1:
            raise TypeError(f"{raw[0]} of {len(raw) - 1} parts")
        self._size = 1
        made = kind(*[form.read(self, each) for (_, form), each in zip(forms, raw[1:], strict=True)])
        if isinstance(made, r.Get) and len(made.names) != len(made.kinds):
            raise TypeError(f"{len(made.names)} names of {len(made.kinds)} columns")
        if isinstance(made, r.Constant) and len(set(map(len, made.rows))) > 1:
            raise TypeError("rows of different widths")
        self.nodes.append(made)
        self._sizes["nodes"].append(self._size)

    def place(self, place: Any, kind: type[Node]) -> Node:
        return _known(self._at("nodes", self.nodes, place), kind)

    def type(self, raw: Any) -> None:
        self._size = 1
        self.types.append(self._read(raw))
        self._sizes["types"].append(self._size)

    def type_at(self, place: Any) -> Type:
        return self.types[_place(place)]

    def _within(self, place: Any) -> Type:
        """A type as a part of another."""
        return self._at("types", self.types, place)

    def _at(self, kind: str, known: list, place: Any) -> Any:
        found = known[_place(place)]
        self._size += self._sizes[kind][place]
        if self._size > PARTS_MAX:
            raise _TooLarge
        return found

    def _read(self, raw: Any) -> Type:
        if isinstance(raw, dict):
            if "list" in raw:
                return ListOf(self._within(raw["list"]))
            return Row(tuple((_known(name, str), self._within(each)) for name, each in raw["row"]))
        name, precision, scale, span = [*raw, *[None] * (4 - len(raw))]
        for each in (precision, scale):
            if each is not None:
                _known(each, int)
        if span is not None:
            _known(span, str)
        if _known(name, str).removesuffix("[]") not in _NAMES:
            raise TypeError(f"a type {name}")
        return SqlType(name, precision, scale, span)


@lru_cache
def _forms(kind: type[Node]) -> tuple[tuple[str, _Form], ...]:
    """The fields of a class of nodes in their order, each with its form: by what it is declared to be."""
    declared = get_type_hints(kind, vars(r) | vars(s))
    return tuple((each.name, _form(declared[each.name])) for each in fields(kind))


def _form(declared: Any) -> _Form:
    if declared == Type:
        return _Form(_Writer.type, _Reader.type_at)
    if declared is r.Kind:
        return _Form(
            lambda writer, kind: [writer.type(kind.type), kind.nullable],
            lambda reader, raw: r.Kind(reader.type_at(raw[0]), _known(raw[1], bool)),
        )
    if isinstance(declared, type) and issubclass(declared, Node):
        return _Form(_Writer.place, lambda reader, raw: reader.place(raw, declared))
    if declared is int:
        return _Form(lambda writer, value: value, lambda reader, raw: _place(raw))
    if declared in (str, bool):
        return _Form(lambda writer, value: value, lambda reader, raw: _known(raw, declared))
    parts = get_args(declared)
    if get_origin(declared) is tuple:
        return _every(_form(parts[0])) if parts[-1] is Ellipsis else _each([_form(part) for part in parts])
    [one] = [part for part in parts if part is not type(None)]  # … | None
    form = _form(one)
    return _Form(
        lambda writer, value: None if value is None else form.write(writer, value),
        lambda reader, raw: None if raw is None else form.read(reader, raw),
    )


def _every(form: _Form) -> _Form:
    """Of any number of values of one kind."""
    return _Form(
        lambda writer, values: [form.write(writer, each) for each in values],
        lambda reader, raw: tuple([form.read(reader, each) for each in _known(raw, list)]),
    )


def _each(forms: list[_Form]) -> _Form:
    """Of as many values as there are ``forms``."""
    return _Form(
        lambda writer, values: [form.write(writer, each) for form, each in zip(forms, values, strict=True)],
        lambda reader, raw: tuple([form.read(reader, each) for form, each in zip(forms, raw, strict=True)]),
    )
