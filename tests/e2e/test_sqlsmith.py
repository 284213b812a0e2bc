"""Statements of a generator that is not ours against a whole stack: errors are told, and everything lives on.

sqlsmith reads the catalog as it does PostgreSQL's, and makes statements of what it lists: tables, columns, functions,
operators.  ``TIDEMARK_STATEMENTS`` says how many are run, ``TIDEMARK_SEED`` replays a run.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections import Counter

import psycopg
import pytest

from embedded.stack import Stack
from journal.errors import TidemarkError
from tests.foreign_words import foreign_words
from tests.seeds import seed_of_commit

pytestmark = [pytest.mark.long, pytest.mark.integration, pytest.mark.spark]

STATEMENTS = int(os.environ.get("TIDEMARK_STATEMENTS") or 300)
GENERATED_PER_STATEMENT = 12
"""sqlsmith makes statements of our own catalogs too, which most of what it makes reads: those are left out."""

STATEMENT_TIMEOUT_MS = 30_000

SETUP = """
create schema smith;
create table smith.t (id int4, a int4, b int8, s int2, n numeric(12,3), f float8, g float4, x text, y text, d date,
  ts timestamp, tz timestamptz, ok bool, h bytea);
create table smith.u (id int4, k int4, v text, w numeric(8,2), a int4[], j jsonb, uu uuid, iv interval, vc varchar(8));
insert into smith.t (id, a, b, n, f, x, d, ts, ok) values
  (1, 1, 10, 1.5, 0.5, 'a', '2024-02-29', '2024-02-29 12:00', true),
  (2, null, -5, null, 'NaN', '', '0001-01-01', null, false),
  (3, 2147483647, 9223372036854775807, -1, '1e300', 'ä', null, null, null);
insert into smith.u (id, k, v, w, a, j) values (1, 1, 'one', 1.5, '{1,2}', '{"a": [1]}'), (2, 7, null, null, '{}', '1');
create view smith.plain as select t.id, u.v, count(*) as c from smith.t join smith.u on t.id = u.id group by 1, 2;
create materialized view smith.kept as select id, sum(a) as total, max(x) as last from smith.t group by id;
create index on smith.t (id);
"""

_SAMPLED = re.compile(r"tablesample \w+ \([0-9.e+-]+\)")


def _generated(dsn: str, seed: int) -> list[str]:
    made = subprocess.run(
        ["sqlsmith", f"--target={dsn}", f"--seed={seed}", f"--max-queries={STATEMENTS * GENERATED_PER_STATEMENT}",
         "--dry-run", "--exclude-catalog"],
        capture_output=True, text=True, timeout=600,
    )  # fmt: skip
    assert made.returncode == 0, made.stderr[-2000:]
    found = [_SAMPLED.sub("", text) for text in made.stdout.split(";") if text.strip()]
    return [text for text in found if "tm_catalog." not in text and "tm_internal." not in text][:STATEMENTS]


@pytest.mark.skipif(shutil.which("sqlsmith") is None, reason="sqlsmith is not installed")
@pytest.mark.timeout(0)
def test_whatever_sqlsmith_asks_is_answered_or_refused(stack: Stack, steps) -> None:
    seed = seed_of_commit()
    before = len(steps.since(0))
    with psycopg.connect(stack.dsn(0), autocommit=True) as setup:
        for statement in SETUP.split(";\n"):
            if statement.strip():
                setup.execute(statement)
        try:
            _ask(stack, _generated(stack.dsn(0), seed), seed)
        finally:
            setup.execute("drop schema smith cascade")
        assert setup.execute("select 1").fetchone() == (1,)
    assert not steps.since(before), f"seed {seed}: a process died"


def _ask(stack: Stack, statements: list[str], seed: int) -> None:
    states: Counter[str] = Counter()
    wrong: list[str] = []
    with psycopg.connect(stack.dsn(0), autocommit=True) as c:
        c.execute(f"set statement_timeout = {STATEMENT_TIMEOUT_MS}")
        for text in statements:
            try:
                c.execute(text)
                states["00000"] += 1
            except psycopg.OperationalError as error:
                state = error.sqlstate or "the connection was lost"
                states[state] += 1
                if state not in ("57014", "54000", "54001", "53200", "57P03"):
                    wrong.append(f"{state} {error}: {text}")
            except psycopg.Error as error:
                states[str(error.sqlstate)] += 1
                told = TidemarkError(error.diag.message_primary or "", detail=error.diag.message_detail,
                                     hint=error.diag.message_hint)  # fmt: skip
                if error.sqlstate is None or error.sqlstate.startswith("XX") or foreign_words(told):
                    wrong.append(f"{error.sqlstate} {error}: {text}")
    print(f"{len(statements)} statements: {dict(states.most_common())}")
    assert states["00000"] > len(statements) // 20, states
    assert not wrong, f"seed {seed}, {len(wrong)} wrong\n" + "\n\n".join(wrong[:10])
