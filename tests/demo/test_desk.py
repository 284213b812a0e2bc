"""The desk's transactions on PostgreSQL, which knows nothing of what they ought to leave."""

from __future__ import annotations

import pytest

from demo.corrections import BEGIN_DESK, COLUMNS, KINDS, SPREAD, Correction, after
from demo.desk import Desk
from demo.views import CORRECTIONS
from journal.errors import Rejected
from tests.differential.postgres import missing, postgres

TRANSACTIONS = 10 * KINDS
"""Ten of each kind, with flights that are corrected again."""

BREAK = (
    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND backend_type LIKE 'cl%'"
)


@pytest.mark.skipif(missing() is not None, reason=str(missing()))
def test_a_desk_whose_connections_break_leaves_on_postgres_what_its_number_says() -> None:
    with postgres() as connection:
        connection.execute(f"CREATE TABLE corrections ({COLUMNS})")
        connection.execute("CREATE TABLE desk (id int4 PRIMARY KEY, done int8 NOT NULL)")
        connection.execute(BEGIN_DESK)
        desk = Desk(connection.info.dsn, per_s=1_000_000.0)
        desk.open()
        assert (desk.first, desk.done) == (0, 0)
        try:
            desk.start(lambda: TRANSACTIONS * SPREAD)
            broken = 0
            while desk.done < TRANSACTIONS and desk.failure is None:
                if desk.done > 10 * broken:
                    broken += connection.execute(BREAK).rowcount
            desk.finish(TRANSACTIONS * SPREAD)
        finally:
            desk.stop()
        assert desk.done == TRANSACTIONS and desk.reconnects and broken
        rows = connection.execute(CORRECTIONS).fetchall()
        assert {place: Correction(*rest) for place, *rest in rows} == after(TRANSACTIONS)

        late = Desk(connection.info.dsn, per_s=1.0)
        late.open()
        assert late.first == TRANSACTIONS, "it goes on where an earlier run ended"
        connection.execute("UPDATE desk SET done = done + 2")
        late.start(lambda: 2 * TRANSACTIONS * SPREAD)
        with pytest.raises(Rejected, match="62 corrections are there, expected 60"):
            late.finish(2 * TRANSACTIONS * SPREAD)
