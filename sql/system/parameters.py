"""Parameters of queries over system relations: as what values of a client's are read, and how they stand there.  Pure.

Promises: a value that is put into a plan has there the type that its place gave the parameter, as a literal without a
type would have; so nothing is typed again for each run.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from decimal import Decimal

from journal.errors import InvalidUsage
from plan import relations as r
from plan import scalars as s
from plan.nodes import Node, rewritten, walk
from plan.types import BYTEA
from sql.system.carriers import INTEGERS, carrier, cast, null, text
from sql.system.queries import SystemQuery
from sql.system.types import REGISTERED, ROWS, UNKNOWN, PgType, element_of, is_textual
from trees.errors import unsupported
from trees.types import format_literal
from values.datatypes.registry import DATATYPES
from values.types import SqlType

_TEXT, _OID = SqlType("text"), SqlType("int8")

_READ = frozenset({"name", "char", "cstring", "json", "_name", "_char", "_oid", "oidvector", *REGISTERED})
"""Types that are no column's of a user's, and whose values clients may send."""


def read_as(kind: PgType) -> tuple[SqlType, int | None]:
    """The type of ``values.types`` as which a parameter's values come, and the oid that a client is told, where that is
    another one.  What nobody here reads is told as text."""
    name = kind.name
    if name in DATATYPES:
        return SqlType(name), None
    if name in ("oid", "xid", "cid"):
        return _OID, ROWS[name].oid
    if name in _READ or element_of(name) in DATATYPES:
        return _TEXT, ROWS[name].oid
    return _TEXT, None


def filled(query: SystemQuery, values: Sequence[object | None], types: Mapping[int, SqlType]) -> r.Query:
    """The query's plan with ``values``, which came as ``types``.  08P01 where one is missing."""

    def given(node: Node) -> Node | None:
        if not isinstance(node, s.Parameter):
            return None
        if node.number > len(values):
            raise InvalidUsage(f"no value was given for parameter ${node.number}", sqlstate="08P01")
        return _stands(values[node.number - 1], query.params[node.number], types[node.number])

    if not query.params:
        return query.plan
    return replace(query.plan, relation=rewritten(query.plan.relation, given))


def _stands(value: object | None, kind: PgType, sql_type: SqlType) -> s.Scalar:
    """A value in the place of a parameter."""
    if value is None:
        return null(kind)
    if isinstance(value, list):
        element = element_of(kind.name) or "text"
        written = format_literal(value, SqlType(element if element in DATATYPES else "text").array)
    elif kind.name == "bool":
        return s.truth(bool(value))
    elif kind.name == "bytea":
        return s.Literal(BYTEA, False, bytes(value).hex())
    elif kind.name in INTEGERS:
        return s.Literal(carrier(kind), False, str(value))
    elif kind.name == "numeric":
        written = format(Decimal(value), "f")
    elif kind.name in DATATYPES and not is_textual(kind.name):
        written = format_literal(value, sql_type)
    else:
        written = str(value)
    return cast(text(written), UNKNOWN, kind)


def assignments(plan: r.Query) -> Iterator[tuple[str, str, bool]]:
    """``(name, value, local)`` of every ``set_config('…', '…', …)`` in a plan whose parameters have values.

    Raises 0A000 where what is to be assigned is not known before the query runs."""
    for node in walk(plan.relation):
        if isinstance(node, s.Call) and node.name == "set_config":
            name, value, local = (each.value if isinstance(each, s.Cast) else each for each in node.arguments)
            if not isinstance(name, s.Literal) or not isinstance(value, s.Literal):
                raise unsupported("set_config() of anything but constants")
            yield name.value, value.value, isinstance(local, s.Literal) and local.value == "true"
