"""Which of PostgreSQL's functions and operators are here: asked of both, as ``adapter/system/routines.py`` has them.

    python -m tests.differential.routines      prints both tables

A routine is listed where the binder takes a call of it with arguments of exactly its types and gives its type: by its
number alone, since it is a row of ``functions/``, of which ``test_rows.py`` asks for the rest.
"""

from __future__ import annotations

from functions.aggregates import Aggregate
from functions.registry import SIGNED
from functions.row import Function
from tests.differential.ours import Ours
from tests.differential.postgres import Refusal, postgres
from values.types import OID

NAMES = {oid: name for name, oid in OID.items()}

_FUNCTIONS = """
select oid, proname, prokind, array(select unnest(proargtypes)), prorettype from pg_proc
where pronamespace = 'pg_catalog'::regnamespace and not proretset and prokind in ('f', 'a', 'w')
order by proname, oid
"""

_OPERATORS = """
select oid, oprname, oprleft, oprright, oprresult from pg_operator
where oprnamespace = 'pg_catalog'::regnamespace and oprkind = 'b' order by oprname, oid
"""

_CALLS = {"f": "select {}({}) from u", "a": "select {}({}) from u", "w": "select {}({}) over (order by id) from u"}


def offered(ours: Ours, query: str, result: str) -> bool:
    """Whether we plan ``query``, and its one output has the type ``result``."""
    plan = ours.plan(query)
    return not isinstance(plan, Refusal) and bool(plan.columns) and plan.columns[0].type.name == result


def call_of(kind: str, name: str, arguments: list[str]) -> str:
    """A query that calls a function with columns' worth of arguments, none of them constant."""
    row = SIGNED.get((name, tuple(arguments)))
    given = [_CONSTANT.get((kind, place, each)) or _column(each) for place, each in enumerate(arguments)]
    if isinstance(row, Aggregate) and row.within:
        return f"select {name}(0.5) within group (order by {given[-1]}) from u"
    if isinstance(row, Function) and row.pattern is not None:
        given[1:] = ["'a'", "''", "''"][: len(given) - 1]
    if isinstance(row, Function) and row.variadic:
        given[-1] = _column(row.arguments[-1].element.name)
    return _CALLS[kind].format(name, ", ".join(given) or ("*" if kind == "a" else ""))


_CONSTANT = {**{("w", place, "int4"): "3" for place in range(3)}, ("a", 1, "text"): "','"}
"""What a window function is told, and what is put between texts, has to be constant."""


def _column(kind: str) -> str:
    """A value of each row.  A ``char`` has a length: without one its blanks are not known."""
    return f"(case when id > 0 then null::{'char(3)' if kind == 'bpchar' else kind} end)"


def operation_of(name: str, left: str, right: str) -> str:
    """The same for an operator."""
    return f"select {_column(left)} {name} {_column(right)} from u"


def functions(connection, ours: Ours) -> list[str]:
    rows = []
    for oid, name, kind, arguments, result in connection.execute(_FUNCTIONS).fetchall():
        if result in NAMES and all(each in NAMES for each in arguments) and name.isidentifier():
            given = [NAMES[each] for each in arguments]
            if not offered(ours, call_of(kind, name, given), NAMES[result]):
                continue
            assert (name, tuple(given)) in SIGNED, f"{name}({', '.join(given)}) has to be a row"
            rows.append(f"{oid} {name} {' '.join(given)}".rstrip())
    return rows


def operators(connection, ours: Ours) -> list[str]:
    found = []
    for oid, name, left, right, result in connection.execute(_OPERATORS).fetchall():
        if {left, right, result} <= NAMES.keys():
            left, right, result = NAMES[left], NAMES[right], NAMES[result]
            if offered(ours, operation_of(name, left, right), result):
                found.append(f"{oid} {name} {left} {right} {result}")
    return found


if __name__ == "__main__":
    with postgres() as connection:
        print("\n".join([*functions(connection, Ours()), "", *operators(connection, Ours())]))
