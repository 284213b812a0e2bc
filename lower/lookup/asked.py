"""A lookup as a plan keeps it: which index is asked, for which key, what is done with the rows that it finds.  Pure.

What is done with them is in the portable form that ``controllers/arrangements/residual.py`` evaluates, with a place for
each parameter.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property

from lower.lookup.among import AMONG, MEMBERS_MAX, as_list, parameters_in
from trees.nodes import rounded
from trees.types import NUMERIC, format_literal, parse_literal
from values.scalars import single
from values.types import SqlType, parse_type

PARAMETERS = ("param", "cast")
"""A parameter as it is, and one that a cast gives its scale."""


@dataclass(frozen=True)
class Lookup:
    """A lookup in the portable form, with ``["param", n, type]`` where a parameter will be, or ``["cast", n, type]``
    where it is rounded to the type.

    ``key`` are expressions (``lit`` or ``param``) for the leading columns of the index.
    """

    index_id: str
    relation_id: str
    key: tuple[tuple[object, ...], ...]
    residual: Mapping[str, object]

    def values(self, params: Sequence[object | None]) -> tuple[object, ...]:
        """The values of its key for one execution."""
        return tuple([key_value(part, params) for part in self.key])

    def filled(self, params: Sequence[object | None], types: Mapping[int, SqlType]) -> tuple[tuple[object, ...], str]:
        """``(key values, residual text)`` for one execution."""
        return self.values(params), self._fixed or json.dumps(_fill(self.residual, params))

    def serves(self, params: Sequence[object | None]) -> bool:
        """Whether an index may be asked it with these values: a list of a parameter's is compared with each row, so
        they have to be few, and so has the list.  Who asks for each of a list's keys asks otherwise."""
        lists = [params[number - 1] or () for number in self.lists]
        return not lists or bool(self.key) and max(map(len, lists)) <= MEMBERS_MAX

    @cached_property
    def lists(self) -> frozenset[int]:
        """Parameters of which a value may be any one."""
        return parameters_in(self.residual)

    @cached_property
    def _fixed(self) -> str | None:
        """The residual's text where no parameter is in it: then it is the same for every execution."""
        return None if _has_param(self.residual) else json.dumps(_fill(self.residual, ()))


def key_value(part: Sequence[object], params: Sequence[object | None]) -> object:
    """The value of one expression of a key for one execution."""
    if part[0] in PARAMETERS:
        value = params[part[1] - 1]
        if part[0] == "cast" and value is not None:
            return rounded(Decimal(value), parse_type(part[2]))
        return single(value) if part[2] == "float4" and value is not None else value
    kind = parse_type(part[2])
    if part[1] is not None and kind.name == "numeric":  # of a parameter's list any number, whatever its digits
        return Decimal(parse_literal(part[1], NUMERIC))
    return None if part[1] is None else parse_literal(part[1], kind)


def _has_param(node: object) -> bool:
    if isinstance(node, (list, tuple)):
        return (len(node) == 3 and node[0] in PARAMETERS) or any(map(_has_param, node))
    return isinstance(node, Mapping) and any(map(_has_param, node.values()))


def _fill(node: object, params: Sequence[object | None]) -> object:
    if isinstance(node, (list, tuple)):
        if node and node[0] == AMONG:
            node = as_list(node, params)
        if len(node) == 3 and node[0] in PARAMETERS:
            value = params[node[1] - 1]
            if node[2] == "integer":
                return None if value is None else int(value)
            if node[0] == "cast" and value is not None:
                value = rounded(Decimal(value), parse_type(node[2]))
            return ["lit", None if value is None else format_literal(value, parse_type(node[2])), node[2]]
        return [_fill(each, params) for each in node]
    if isinstance(node, Mapping):
        return {key: _fill(each, params) for key, each in node.items()}
    return node
