"""Which of PostgreSQL's functions and operators are here: asked of both, as ``adapter/system/routines.py`` has them.

    python -m tests.differential.routines      prints the two tables

A routine is listed where the binder takes a call of it with arguments of exactly its types and gives its type.
"""

from __future__ import annotations

from tests.differential.ours import Ours
from tests.differential.postgres import Refusal, postgres
from values.types import OID

NAMES = {oid: name for name, oid in OID.items()}

_FUNCTIONS = """
select oid, proname, prokind, provolatile, array(select unnest(proargtypes)), prorettype from pg_proc
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
    given = [_CONSTANT.get((kind, place, each)) or _column(each) for place, each in enumerate(arguments)]
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
    found = []
    for oid, name, kind, volatile, arguments, result in connection.execute(_FUNCTIONS).fetchall():
        if result in NAMES and all(each in NAMES for each in arguments) and name.isidentifier():
            given = [NAMES[each] for each in arguments]
            if offered(ours, call_of(kind, name, given), NAMES[result]):
                found.append(f"{oid} {name} {kind}{volatile} {NAMES[result]} {' '.join(given)}".rstrip())
    return found


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
        print("\n".join(["# functions", *functions(connection, Ours()), "# operators", *operators(connection, Ours())]))
