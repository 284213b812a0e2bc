"""Whether a plan that came from outside is one: that each place, name and word in it is there to be named.  Pure.

Promises: of what :func:`check` takes every column is one of a row in reach, every width fits, and a word or a number
that is written as it stands in a query is one that some plan has.  What it reads and calls, and what the types of that
are, is not looked at: who runs a plan has a gate of his own.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from plan import relations as r
from plan import scalars as s
from plan.nodes import Node
from plan.types import BOOL, BYTEA, fields_of, is_number

JOINS = frozenset({"inner", "left", "right", "full", "cross"})
SET_OPERATIONS = frozenset({"union", "except", "intersect"})
WAYS = frozenset({"preceding", "current row", "following"})
FRAMES = frozenset({"rows", "range", "groups"})

_NUMBER = re.compile(r"-?(?=\.?[0-9])[0-9]*(\.[0-9]*([eE][+-]?[0-9]{1,4})?)?", re.ASCII)
DIGITS_MAX = 4000
"""Of a number that is written out: Python reads 4,300, and a statement's have 1,000 at most."""

_HEX = re.compile("([0-9a-fA-F]{2})*")
_WORD = re.compile("[A-Z_]*")

Widths = tuple[int, ...]
"""How many columns a row has, and those around it have."""


def check(query: r.Query) -> None:
    """Raises ``ValueError`` where ``query`` is no plan."""
    _Checking().relation(query.relation, (), {})
    if len(query.names) != len(query.relation.columns):
        raise ValueError(f"{len(query.names)} names of {len(query.relation.columns)} columns")


class _Checking:
    def relation(self, node: r.Relation, around: Widths, named: Mapping[str, int]) -> int:
        """The width of ``node``, with rows ``around`` it and the widths of what is ``named``."""
        match node:
            case r.Get():
                pass
            case r.Constant():
                for row in node.rows:
                    self._all(row, (0, *around), named)
            case r.Join():
                left = self.relation(node.left, around, named)
                right = self.relation(node.right, (left, *around) if node.lateral else around, named)
                _one_of(node.kind, JOINS, "join")
                if node.condition is not None:
                    self.scalar(node.condition, (left + right, *around), named)
            case r.SetOp():
                _one_of(node.kind, SET_OPERATIONS, "set operation")
                left, right = (self.relation(each, around, named) for each in (node.left, node.right))
                if left != right:
                    raise ValueError(f"{left} columns beside {right}")
            case r.TopK():
                width = self.relation(node.input, around, named)
                self._all(node.order, (width, *around), named)
                self._all([each for each in (node.limit, node.offset) if each is not None], (0, *around), named)
            case r.Let():
                inside = {**named, node.name: len(node.value.columns)}
                self.relation(node.value, around, inside if node.recursive else named)
                self.relation(node.body, around, inside)
            case r.Named():
                if named.get(node.name) != len(node.kinds):
                    raise ValueError(f"{node.name} of {len(node.kinds)} columns")
            case _:
                width = self.relation(node.input, around, named)
                parts = [part for part in node.parts() if part is not node.input]
                if any(isinstance(part, r.Relation) for part in parts):
                    raise ValueError(f"{type(node).__name__} of several relations")
                self._all(parts, (width, *around), named)
                if isinstance(node, r.Reduce):
                    _check_sets(node)
        return len(node.columns)

    def _all(self, parts, rows: Widths, named: Mapping[str, int]) -> None:
        for each in parts:
            self.scalar(each, rows, named)

    def scalar(self, node: Node, rows: Widths, named: Mapping[str, int]) -> None:
        """``node``, which is worked out of the first of ``rows``."""
        match node:
            case s.Column():
                if node.level >= len(rows) or node.position >= rows[node.level]:
                    raise ValueError(f"column {node.position} of a row {node.level} further out")
            case s.Literal():
                _check_literal(node)
            case s.Call(name="extract"):
                if len(node.arguments) != 2 or not isinstance(node.arguments[0], s.Literal):
                    raise ValueError("a part of a time that is not written out")
                _word(node.arguments[0].value)
            case s.Frame():
                _one_of(node.by, FRAMES, "frame")
            case s.Bound():
                _one_of(node.way, WAYS, "bound")
                _word(node.unit)
            case s.Struct():
                if len(fields_of(node.type)) != len(node.values):
                    raise ValueError(f"{len(node.values)} values of {node.type}")
            case s.Lambda():
                if not node.variables:
                    raise ValueError("a function of nothing")
            case s.InRows():
                if len(node.values) != len(node.relation.columns):
                    raise ValueError(f"{len(node.values)} values of {len(node.relation.columns)} columns")
            case s.ScalarQuery():
                if len(node.relation.columns) != 1:
                    raise ValueError(f"a value of {len(node.relation.columns)} columns")
        for part in node.parts():
            if isinstance(part, r.Relation):
                self.relation(part, rows, named)
            else:
                self.scalar(part, rows, named)


def _check_sets(node: r.Reduce) -> None:
    if any(place >= len(node.keys) for chosen in node.sets or () for place in chosen):
        raise ValueError("a grouping set of a key that there is not")


def _check_literal(node: s.Literal) -> None:
    kind, value = node.type, node.value
    if value is None:
        return
    if kind == BOOL:
        _one_of(value, frozenset({"true", "false"}), "truth")
    elif kind == BYTEA:
        if not _HEX.fullmatch(value):
            raise ValueError("bytes that are none")
    elif is_number(kind) and (len(value) > DIGITS_MAX or not _NUMBER.fullmatch(value)):
        raise ValueError(f"the number {value[:40]}")


def _one_of(word: str, known: frozenset[str], what: str) -> None:
    if word not in known:
        raise ValueError(f"the {what} {word[:40]}")


def _word(word: str | None) -> None:
    if word is None or not _WORD.fullmatch(word):
        raise ValueError(f"the word {(word or '')[:40]}")
