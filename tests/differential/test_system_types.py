"""What queries over system relations give, beside PostgreSQL: the names and types of the outputs of what clients send,
which operator a pair of types means, and the data that this is decided by."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from psycopg import pq

from adapter.duck.catalog_relations import CatalogRelations
from adapter.execute.results import oids_of
from journal.errors import InvalidUsage
from sql.statements.select import plan_select
from sql.syntax import statements as st
from sql.syntax.parse import parse
from sql.system.resolve import operator
from sql.system.types import ROWS, PgType
from tests.adapter.system_signatures import FILE, written
from tests.adapter.test_catalog_relations import FACTS, NAMES, QUERIES
from tests.differential.postgres import missing, postgres
from tests.seeds import seed_of_commit
from tests.sql.doubles import ddl, shop

pytestmark = pytest.mark.skipif(missing() is not None, reason=str(missing()))

THERE = """
create table items (id bigint not null, name text, price numeric(6,2), ok boolean, at timestamptz, day date);
create view v as select id, name as n from items where ok;
create materialized view m as select n, count(*) as c from v group by n;
"""
"""What the queries of clients name, in PostgreSQL."""


TOLD_AS = dict.fromkeys((24, 2202, 2203, 2204), 25)
"""A regproc is the name of a function, most of which have no oid here that could be sent in binary: it is text.  So
with the regoper and their kin."""

SAMPLE = 2_000
"""Pairs of operands in an everyday run, of 16,000: PostgreSQL needs some 3 ms for each."""


@pytest.fixture(scope="module")
def peer() -> Iterator[psycopg.Connection]:
    with postgres() as connection:
        connection.execute(THERE)
        yield connection


@pytest.fixture(scope="module")
def image():
    return ddl(
        shop(),
        "create view v as select id, name n from items where ok",
        "create materialized view m as select n, count(*) c from v group by n",
    )


def described(peer: psycopg.Connection, text: str) -> list[tuple[str, int]] | str:
    """The names and types of the outputs of a query in PostgreSQL; its words where it refuses the query."""
    prepared = peer.pgconn.prepare(b"", text.encode())
    if prepared.status != pq.ExecStatus.COMMAND_OK:
        return prepared.error_message.decode()
    found = peer.pgconn.describe_prepared(b"")
    return [(found.fname(at).decode(), found.ftype(at)) for at in range(found.nfields)]


def queries_of(client: str) -> list[str]:
    texts = [each.strip().rstrip(";") for each in (QUERIES / f"{client}.sql").read_text().split(";\n\n")]
    texts = [each.replace("'OID'", "'1259'").replace("= OID", "= 1259") for each in texts]
    return [each for each in dict.fromkeys(texts) if isinstance(parse(each), st.Query)]


@pytest.mark.parametrize("client", sorted(path.stem for path in QUERIES.glob("*.sql")))
def test_what_a_client_asks_has_the_names_and_types_that_postgres_gives(peer, image, client):
    relations, wrong, alike = CatalogRelations(), [], 0
    for text in queries_of(client):
        wanted = described(peer, text)
        if isinstance(wanted, str):
            continue  # what is not in Postgres 15, or not in this database
        plan = plan_select(parse(text).ast, image, NAMES)
        if plan.kind != "catalog":
            continue
        found = [(each.name, each.type_oid) for each in relations.describe(plan, image, FACTS)]
        wanted = [(name, TOLD_AS.get(oid, oid)) for name, oid in wanted]
        if found == wanted:
            alike += 1
        else:
            wrong.append((text, [pair for pair in zip(found, wanted, strict=False) if pair[0] != pair[1]]))
    assert not wrong
    assert alike


READ_AS = {869: 25}
"""Parameters of types whose values nobody here reads in binary: they are told as text."""

PARAMETERS = (Path(__file__).parent / "system_parameters.txt").read_text().splitlines()


def test_parameters_are_of_the_types_that_postgres_gives_them(peer, image):
    wrong = []
    for text in PARAMETERS:
        prepared = peer.pgconn.prepare(b"", text.encode())
        if prepared.status == pq.ExecStatus.COMMAND_OK:
            told = peer.pgconn.describe_prepared(b"")
            wanted = [READ_AS.get(oid, oid) for oid in map(told.param_type, range(told.nparams))]
        else:
            wanted = prepared.error_field(pq.DiagnosticField.SQLSTATE).decode()
        try:
            plan = plan_select(parse(text).ast, image, NAMES)
            found = list(oids_of(plan.params, (), plan.system_oids))
        except InvalidUsage as error:
            found = error.sqlstate
        if found != wanted:
            wrong.append((text, found, wanted))
    assert not wrong


SIGNS = "= <> < || + - * / % ~ ~~ @> -> & <<".split()
OPERANDS = "bool char name int2 int4 int8 text varchar bpchar oid xid regclass regtype numeric float4 float8 date " \
           "timestamp timestamptz interval uuid json jsonb bytea _text _name _int4 _oid int2vector unknown".split()
"""Whose pairs are asked about."""


def _pairs_wrong(peer: psycopg.Connection, asked: list[tuple[str, str, str]]) -> list[tuple[str, ...]]:
    wrong = []
    for sign, left, right in asked:
        wanted = _result(peer, sign, left, right)
        try:
            found = operator(sign, PgType(left), PgType(right))[0].name
        except InvalidUsage as error:
            found = error.sqlstate
        if found != wanted and not _is_lenient(sign, found, wanted):
            wrong.append((left, sign, right, found, wanted))
    return wrong


def _is_lenient(sign: str, found: str, wanted: str) -> bool:
    """Postgres says that there are several where we take one (``"char" || text``) or say that there is none."""
    return wanted == "42725" and (sign == "||" or found == "42883")


def _result(peer: psycopg.Connection, sign: str, left: str, right: str) -> str:
    """The type that PostgreSQL gives, or its SQLSTATE."""
    operands = [
        f"${n}" if each == "unknown" else f'null::pg_catalog."{each}"' for n, each in enumerate((left, right), 1)
    ]
    if operands[1] == "$2" and left != "unknown":
        operands[1] = "$1"
    prepared = peer.pgconn.prepare(b"", f"select {operands[0]} {sign} {operands[1]}".encode())
    if prepared.status != pq.ExecStatus.COMMAND_OK:
        return prepared.error_field(pq.DiagnosticField.SQLSTATE).decode()
    oid = peer.pgconn.describe_prepared(b"").ftype(0)
    return next((name for name, row in ROWS.items() if row.oid == oid), str(oid))


ASKED = [(sign, left, right) for sign in SIGNS for left in OPERANDS for right in OPERANDS]


def test_an_operator_between_two_types_is_the_one_that_postgres_takes(peer):
    seed = seed_of_commit()
    assert not _pairs_wrong(peer, random.Random(seed).sample(ASKED, SAMPLE)), f"seed {seed}"


@pytest.mark.long
def test_all_operators_between_two_types_are_those_that_postgres_takes(peer):
    assert not _pairs_wrong(peer, ASKED)


def test_the_types_operators_and_functions_are_those_of_postgres(peer):
    assert FILE.read_text() == written(peer), "python -m tests.adapter.system_signatures writes it again"
