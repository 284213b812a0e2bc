"""Asks PostgreSQL what ``sql/system/signatures.py`` says: ``python -m tests.adapter.system_signatures``.

Of its operators and functions those whose types the system's relations have; of the functions, those that have a
meaning in :mod:`adapter.duck.calls`.
"""

from __future__ import annotations

import textwrap
from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path

import psycopg

from adapter.duck.calls import known
from sql import system
from tests.differential.postgres import postgres

FILE = Path(system.__file__).with_name("signatures.py")

PSEUDO = "record void any anyarray anyelement anynonarray anycompatible anycompatiblearray unknown".split()

TYPES = (
    "bool bytea char name int8 int2 int4 regproc text oid tid xid cid int2vector oidvector json jsonb float4 float8 "
    "bpchar varchar date time timestamp timestamptz interval numeric uuid regclass regtype regnamespace regrole "
    "regprocedure regoper regoperator regconfig regdictionary pg_node_tree aclitem inet pg_lsn xid8 cstring "
    "pg_ndistinct pg_dependencies pg_mcv_list"
).split() + PSEUDO
"""Those of columns of system relations, and what functions about them take and give."""

NO_ARRAYS = {*PSEUDO, "pg_node_tree", "pg_ndistinct", "pg_dependencies", "pg_mcv_list"}

NOT_HERE = "*= *<> *< *> *<= *>= ~<~ ~<=~ ~>=~ ~>~ <<= >>= @@".split()
"""Operators that nothing here has a meaning for."""


def wrapped(head: str, items: Iterable[str]) -> str:
    text = head + " ".join(items)
    return textwrap.fill(text, 118, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False)


def written(connection: psycopg.Connection) -> str:
    """The whole file."""
    kept = {*TYPES, *(f"_{each}" for each in TYPES if each not in NO_ARRAYS)}
    by_oid, types = {}, []
    asked = "select oid, typname, typarray, typcategory, typispreferred from pg_type order by oid"
    for oid, name, array, category, preferred in connection.execute(asked):
        if name in kept:
            by_oid[oid] = name
        if name in TYPES:
            types.append(f"{name} {oid} {array} {category}{'!' if preferred else ''}")
    casts = _casts(connection, by_oid)
    return f'''\
"""Types, casts, operators and functions of queries over system relations, as PostgreSQL has them.  Data only.

Written by ``python -m tests.adapter.system_signatures``, which asks PostgreSQL for them: the functions are those that
:mod:`adapter.duck.calls` has a meaning for, by Postgres's names and types.
``tests/differential/test_system_types.py`` asks again, and ``tests/adapter/test_system_macros.py`` holds that what a
macro is declared to give is what it gives.
"""

from __future__ import annotations

TYPES = """\\
{chr(10).join(types)}
"""
"""Name, oid, oid of its arrays, category; ``!`` of the category's preferred type."""

IMPLICIT = """\\
{casts["i"]}
"""

ASSIGNED = """\\
{casts["a"]}
"""
"""Casts that only an INSERT makes by itself; here they need ``::``."""

EXPLICIT = """\\
{casts["e"]}
"""

OPERATORS = """\\
{_operators(connection, by_oid)}
"""
"""Name and result; then the types of both operands, of each."""

FUNCTIONS = """\\
{_functions(connection, by_oid)}
"""
"""Name; of each signature the arguments (``...``: the last is an array, given item by item; ``=1``: so many of the last
have a default) and the result (``*`` before it where a call makes rows)."""
'''


def _casts(connection: psycopg.Connection, by_oid: dict[int, str]) -> dict[str, str]:
    found: dict[tuple[str, str], list[str]] = defaultdict(list)
    for source, target, context in connection.execute(
        "select castsource, casttarget, castcontext from pg_cast order by 3, 1, 2"
    ):
        if source in by_oid and target in by_oid and source != target:
            found[context, by_oid[source]].append(by_oid[target])
    return {
        context: "\n".join(wrapped(f"{source}: ", all_) for (each, source), all_ in found.items() if each == context)
        for context in "iae"
    }


def _operators(connection: psycopg.Connection, by_oid: dict[int, str]) -> str:
    found: dict[tuple[str, str], list[str]] = defaultdict(list)
    for name, left, right, result in connection.execute(
        "select oprname, oprleft, oprright, oprresult from pg_operator where oprkind = 'b' order by 1, 4, 2, 3"
    ):
        if all(each in by_oid for each in (left, right, result)) and name not in NOT_HERE:
            found[name, by_oid[result]].append(f"{by_oid[left]},{by_oid[right]}")
    return "\n".join(wrapped(f"{name} {result}: ", pairs) for (name, result), pairs in found.items())


def _functions(connection: psycopg.Connection, by_oid: dict[int, str]) -> str:
    names = known()
    found: dict[str, list[str]] = defaultdict(list)
    for name, arguments, result, rows, variadic, defaults in connection.execute(
        "select proname, proargtypes::oid[], prorettype, proretset, provariadic, pronargdefaults from pg_proc p "
        "join pg_namespace n on n.oid = pronamespace where nspname in ('pg_catalog', 'information_schema') "
        "and prokind <> 'p' order by proname, pronargs, proargtypes"
    ).fetchall():
        if name in names and all(each in by_oid for each in arguments) and result in by_oid:
            taken = [by_oid[each] for each in arguments]
            found[name].append(_signature(taken, by_oid[result], rows, variadic, defaults))
    return "\n".join(wrapped(f"{name} ", all_) for name, all_ in sorted(found.items()))


def _signature(arguments: Sequence[str], result: str, rows: bool, variadic: int, defaults: int) -> str:
    more = ("..." if variadic else "") + (f"={defaults}" if defaults else "")
    return f"({','.join(arguments)}{more}){'*' if rows else ''}{result}"


if __name__ == "__main__":
    with postgres() as peer:
        FILE.write_text(written(peer))
