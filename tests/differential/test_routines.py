"""pg_proc and pg_operator list what is here, no more and no less: the binder is asked for each, and PostgreSQL."""

from __future__ import annotations

import random

import pytest

from adapter.system.routines import operators, routines
from tests.differential import routines as asked
from tests.differential.ours import Ours
from tests.differential.postgres import missing, postgres
from tests.seeds import seed_of_commit

SAMPLE = 40
"""Of each kind in an everyday run: planning all of them takes some ten seconds."""


def _not_here(ours: Ours, functions, others) -> list[str]:
    calls = [(asked.call_of(e.kind, e.name, list(e.arguments)), e.result) for e in functions]
    calls += [(asked.operation_of(e.name, e.left, e.right), e.result) for e in others]
    return [query for query, result in calls if not asked.offered(ours, query, result)]


def test_what_is_listed_is_here():
    seed = seed_of_commit()
    pick = random.Random(seed)
    chosen = pick.sample(list(routines()), SAMPLE), pick.sample(list(operators()), SAMPLE)
    assert not _not_here(Ours(), *chosen), f"seed {seed}"


@pytest.mark.long
@pytest.mark.skipif(missing() is not None, reason=str(missing()))
def test_all_that_is_here_is_listed_as_postgres_has_it():
    with postgres() as connection:
        rows = asked.functions(connection, Ours())
        signs = asked.operators(connection, Ours())
    assert rows == [" ".join((str(e.oid), e.name, *e.arguments)) for e in routines()]
    assert signs == [f"{e.oid} {e.name} {e.left} {e.right} {e.result}" for e in operators()]
