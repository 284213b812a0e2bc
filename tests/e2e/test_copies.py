"""A large load through one adapter, seen through the other: all of it at once, or nothing."""

from __future__ import annotations

import threading

import psycopg
import pytest

from embedded.stack import Stack

pytestmark = [pytest.mark.integration, pytest.mark.spark]

ROWS = 300_000
"""Some 9 MB: three blocks of a load, and more than a commit record or a transaction's buffer would carry at once."""


def lines(count: int) -> list[bytes]:
    return [b"".join(b"%d\trow %d\n" % (n, n) for n in range(at, at + 10_000)) for at in range(0, count, 10_000)]


def test_a_large_load_is_seen_as_a_whole_or_not_at_all(stack: Stack) -> None:
    seen: set[tuple] = set()
    over = threading.Event()

    def look() -> None:
        with psycopg.connect(stack.dsn(1), autocommit=True) as other:
            while True:
                last = over.is_set()
                query = "select (select count(*) from copied), (select coalesce(sum(n), 0) from copied_counts)"
                seen.add(other.execute(query).fetchone())
                if last:
                    return

    with psycopg.connect(stack.dsn(0), autocommit=True) as one:
        one.execute("create table copied (a bigint not null, b text)")
        one.execute(
            "create materialized view copied_counts as select a % 10 as k, count(*) as n from copied group by 1"
        )
        looking = threading.Thread(target=look)
        looking.start()
        try:
            with (
                pytest.raises(psycopg.errors.NotNullViolation) as wrong,
                one.cursor().copy("copy copied from stdin") as copy,
            ):
                for each in lines(ROWS):
                    copy.write(each)
                copy.write(b"\\N\tno number\n")
            assert wrong.value.diag.context == f'COPY copied, line {ROWS + 1}: "\\N\tno number"'
            with pytest.raises(psycopg.OperationalError):
                gone = psycopg.connect(stack.dsn(0), autocommit=True)
                with gone.cursor().copy("copy copied from stdin") as copy:
                    for each in lines(ROWS):
                        copy.write(each)
                    gone.pgconn.finish()
                    copy.write(b"0\tnobody is there\n")
            with one.cursor() as cursor:
                with cursor.copy("copy copied from stdin") as copy:
                    for each in lines(ROWS):
                        copy.write(each)
                assert cursor.statusmessage == f"COPY {ROWS}"
        finally:
            over.set()
            looking.join()
        assert seen == {(0, 0), (ROWS, ROWS)}
        for format in ("text", "csv", "binary"):
            with one.cursor() as cursor, cursor.copy(f"copy copied to stdout (format {format})") as copy:
                out = b"".join(bytes(each) for each in copy)
            if format == "text":
                assert sorted(out.splitlines(True)) == sorted(b"".join(lines(ROWS)).splitlines(True))
            one.execute("create table copied_again (a bigint not null, b text)")
            with one.cursor() as cursor, cursor.copy(f"copy copied_again from stdin (format {format})") as copy:
                copy.write(out)
            assert one.execute("select count(*), sum(a), count(distinct b) from copied_again").fetchone() == (
                ROWS, sum(range(ROWS)), ROWS,
            )  # fmt: skip
            one.execute("drop table copied_again")
        one.execute("drop table copied cascade")
