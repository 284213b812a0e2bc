"""Sessions that change rows at once, over two adapters: one row by all of them, and a row each.

Of one row Postgres is beside it, and an etcd on which as many callers compare and set one key.  Statements that
lost are made anew by the adapter, so how often one was tried is asked of the log.  After each run the
row must show just the statements that were acknowledged.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from typing import NamedTuple

import psycopg

from bench import logged
from bench.figure import Figure, p50
from bench.logged import Answers
from bench.peers import Absent, Server, etcd_sets, postgres
from bench.verdicts import Verdicts, verdicts
from embedded.stack import Stack

SESSIONS = 16
SECONDS = 5
ROUNDS = 2
INSERTING = 64

ONE_ROW = "UPDATE of one row, 16 sessions, 2 adapters"
ONE_ROW_P99 = f"{ONE_ROW}, p99"
ONE_ROW_SET = f"{ONE_ROW}, beside etcd"
ONE_ADAPTER = "UPDATE of one row, 16 sessions, 1 adapter"
APART = "UPDATEs of a row each, 16 sessions, 2 adapters"
APART_TWO = f"{APART}, beside one"
INSERT = "INSERT of one row, 64 sessions, 2 adapters"
NAMES = (ONE_ROW, ONE_ROW_P99, ONE_ROW_SET, ONE_ADAPTER, APART, APART_TWO, INSERT)


class _Run(NamedTuple):
    answers: Answers
    said: Verdicts

    @property
    def tries(self) -> float:
        """Commits that the log has judged, of one that was acknowledged."""
        return (self.said.admitted + self.said.refused) / max(1, len(self.answers.answers))


def figures(stack: Stack, wanted: Callable[[str], bool] = lambda _name: True, seconds: int = SECONDS) -> list[Figure]:
    """On a running stack of two adapters; what is made is dropped again."""
    chosen = [name for name in NAMES if wanted(name)]
    if not chosen:
        return []
    with ExitStack() as until:
        bench = _Bench(stack, seconds, until)
        until.callback(bench.drop)
        found: list[Figure] = []
        if {ONE_ROW, ONE_ROW_P99, ONE_ROW_SET} & set(chosen):
            found += _one_row(bench)
        if ONE_ADAPTER in chosen:
            found.append(_one_adapter(bench))
        if {APART, APART_TWO} & set(chosen):
            found += _apart(bench)
        if INSERT in chosen:
            found.append(_inserted(bench))
        return [each for each in found if each.name in chosen]


class _Bench:
    """The tables, here and on Postgres where there is one."""

    def __init__(self, stack: Stack, seconds: int, until: ExitStack) -> None:
        self._stack = stack
        self.seconds = seconds
        self.ours = [Server(port, "tidemark", "tidemark") for port in stack.ports]
        self.schema = f"bench_{uuid.uuid4().hex[:8]}"
        self.why = ""
        try:
            self.peer = [until.enter_context(postgres())]
        except Absent as error:
            self.peer, self.why = [], str(error)
        for servers in (self.ours, self.peer):
            if servers:
                with psycopg.connect(servers[0].dsn, autocommit=True) as connection:
                    connection.execute(f"CREATE SCHEMA {self.schema}")
                    connection.execute(f"CREATE TABLE {self.schema}.t (k int PRIMARY KEY, n int)")
                    connection.execute(f"CREATE TABLE {self.schema}.inserted (k bigint NOT NULL, v text)")
                    connection.execute(
                        f"INSERT INTO {self.schema}.t SELECT k, 0 FROM generate_series(0, {SESSIONS}) AS s(k)"
                    )

    def drop(self) -> None:
        with psycopg.connect(self.ours[0].dsn, autocommit=True) as connection:
            connection.execute(f"DROP SCHEMA {self.schema} CASCADE")

    def updated(self, servers: Sequence[Server], key: str) -> Answers:
        """Count up the row ``key`` says; every count that was acknowledged must be there."""
        before = self._counted(servers[0])
        script = f"UPDATE {self.schema}.t SET n = n + 1 WHERE k = {key}"
        answers = logged.run(servers, script, SESSIONS, self.seconds)
        counted = self._counted(servers[0]) - before
        if counted != len(answers.answers):
            raise RuntimeError(f"{len(answers.answers)} UPDATEs were acknowledged, {counted} are there")
        return answers

    def _counted(self, server: Server) -> int:
        with psycopg.connect(server.dsn, autocommit=True) as connection:
            return connection.execute(f"SELECT sum(n) FROM {self.schema}.t").fetchone()[0]

    def judged(self, measured: Callable[[], Answers]) -> _Run:
        """With what the log said meanwhile."""
        before = self._verdicts()
        answers = measured()
        return _Run(answers, self._verdicts().since(before))

    def _verdicts(self) -> Verdicts:
        return verdicts(self._stack.kafka, self._stack.names)


def _one_row(bench: _Bench) -> list[Figure]:
    bench.updated(bench.ours, "0")  # warms up
    ours: list[_Run] = []
    peer: list[Answers] = []
    for _ in range(ROUNDS):
        ours.append(bench.judged(lambda: bench.updated(bench.ours, "0")))
        if bench.peer:
            peer.append(bench.updated(bench.peer, "0"))
    rate = p50([each.answers.per_s for each in ours])
    late = p50([each.answers.ms(0.99) for each in ours])
    tries, fair = p50([each.tries for each in ours]), min(each.answers.slowest_share for each in ours)
    note = f"tries of one: {tries:.2f}; the slowest session has {fair:.2f} of an equal share"
    count = sum(len(each.answers.answers) for each in ours)
    what = "Postgres, the same script" if peer else ""
    found = []
    if peer:
        tries, fair = p50([each.tries for each in peer]), min(each.slowest_share for each in peer)
        told = f"of Postgres, which waits for a lock, {tries:.2f} and {fair:.2f}"
        limit, limit_late = p50([each.per_s for each in peer]), p50([each.ms(0.99) for each in peer])
    else:
        told, limit, limit_late = bench.why, None, None
    found.append(Figure(ONE_ROW, rate, limit, what, "1/s", "more", count, f"{note}; {told}"))
    found.append(Figure(ONE_ROW_P99, late, limit_late, what, "ms", "less", count, bench.why))
    try:
        sets = etcd_sets(SESSIONS, bench.seconds)
        fair = logged.share(sets.each)
        note = f"of etcd: tries of one {sets.tries / sets.sets:.2f}, p99 {sets.p99_ms:.3g} ms, slowest {fair:.2f}"
        what = "a compare-and-set on etcd, 16 callers"
        found.append(Figure(ONE_ROW_SET, rate, sets.sets_per_s, what, "1/s", "more", count, note))
    except Absent as error:
        found.append(Figure(ONE_ROW_SET, rate, None, "", "1/s", "more", count, str(error)))
    return found


def _one_adapter(bench: _Bench) -> Figure:
    """Who waits in one line loses to nobody."""
    ours: list[_Run] = []
    both: list[Answers] = []
    for _ in range(ROUNDS):
        ours.append(bench.judged(lambda: bench.updated(bench.ours[:1], "0")))
        both.append(bench.updated(bench.ours, "0"))
    rate, limit = p50([each.answers.per_s for each in ours]), p50([each.per_s for each in both])
    tries, fair = p50([each.tries for each in ours]), min(each.answers.slowest_share for each in ours)
    late = p50([each.answers.ms(0.99) for each in ours])
    note = f"tries of one: {tries:.2f}; the slowest session has {fair:.2f} of an equal share; p99 {late:.3g} ms"
    count = sum(len(each.answers.answers) for each in ours)
    return Figure(ONE_ADAPTER, rate, limit, "the same by 2 adapters", "1/s", "more", count, note)


def _apart(bench: _Bench) -> list[Figure]:
    two: list[_Run] = []
    one: list[_Run] = []
    peer: list[Answers] = []
    bench.updated(bench.ours, ":session")
    for _ in range(ROUNDS):
        two.append(bench.judged(lambda: bench.updated(bench.ours, ":session")))
        one.append(bench.judged(lambda: bench.updated(bench.ours[:1], ":session")))
        if bench.peer:
            peer.append(bench.updated(bench.peer, ":session"))
    refused = sum(each.said.refused for each in (*two, *one))
    rate = p50([each.answers.per_s for each in two])
    count = sum(len(each.answers.answers) for each in two)
    late, fair = p50([each.answers.ms(0.99) for each in two]), min(each.answers.slowest_share for each in two)
    note = f"conflicts: {refused} (aim 0); p99 {late:.3g} ms; the slowest session has {fair:.2f} of an equal share"
    limit = p50([each.per_s for each in peer]) if peer else None
    what = "Postgres, the same script" if peer else ""
    alone = p50([each.answers.per_s for each in one])
    return [
        Figure(APART, rate, limit, what, "1/s", "more", count, f"{note}{bench.why and '; '}{bench.why}"),
        Figure(APART_TWO, rate, alone, "the same by 1 adapter", "1/s", "more", count, "all on one machine"),
    ]


def _inserted(bench: _Bench) -> Figure:
    script = f"INSERT INTO {bench.schema}.inserted VALUES (:session, 'x')"

    def inserted(servers: Sequence[Server]) -> Answers:
        return logged.run(servers, script, INSERTING, bench.seconds)

    inserted(bench.ours)
    ours: list[Answers] = []
    peer: list[Answers] = []
    for _ in range(ROUNDS):
        ours.append(inserted(bench.ours))
        if bench.peer:
            peer.append(inserted(bench.peer))
    rate, count = p50([each.per_s for each in ours]), sum(len(each.answers) for each in ours)
    late = p50([each.ms(0.99) for each in ours])
    note = f"acknowledged once it is on the broker's disk (acks=all, flush.messages=1); p99 {late:.3g} ms"
    if not peer:
        return Figure(INSERT, rate, None, "", "1/s", "more", count, f"{note}; {bench.why}", "as Postgres")
    note += f", of Postgres {p50([each.ms(0.99) for each in peer]):.3g} ms"
    limit = p50([each.per_s for each in peer])
    what = "the same script on Postgres, fsync on"
    return Figure(INSERT, rate, limit, what, "1/s", "more", count, note, "as Postgres")
