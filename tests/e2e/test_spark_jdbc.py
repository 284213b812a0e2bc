"""Spark reads and writes Tidemark as it does PostgreSQL, with PostgreSQL's own driver: what docs/spark.md says of it.

The driver is not among what a setup fetches; its jar is named:

    TIDEMARK_PGJDBC=postgresql-42.7.7.jar ./tidemark test -m long tests/e2e/test_spark_jdbc.py
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import psycopg
import pytest

from embedded.stack import Stack

JAR = os.environ.get("TIDEMARK_PGJDBC", "")
MANY = 20_000

pytestmark = [
    pytest.mark.integration,
    pytest.mark.spark,
    pytest.mark.long,
    pytest.mark.skipif(not JAR, reason="TIDEMARK_PGJDBC names no driver"),
]

EVERY = {
    "k": ("int", "int", "1"),
    "b": ("bigint", "bigint", "9007199254740993"),
    "n": ("numeric(10, 2)", "decimal(10,2)", "3.50"),
    "f": ("float8", "double", "1.5"),
    "s": ("text", "string", "x'y"),
    "vc": ("varchar(5)", "string", "abc"),
    "ok": ("bool", "boolean", "True"),
    "d": ("date", "date", "2024-01-31"),
    "ts": ("timestamp", "timestamp", "2024-01-31 12:00:00.500000"),
    "tz": ("timestamptz", "timestamp", "2024-01-31 12:00:00"),
    "tm": ("time", "timestamp", "1970-01-01 12:00:00"),
    "iv": ("interval", "string", "1 day"),
    "u": ("uuid", "string", "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"),
    "j": ("jsonb", "string", '{"a": 1}'),
    "a": ("int[]", "array<int>", "[1, 2]"),
    "by": ("bytea", "binary", "b'\\x01'"),
}
"""A column of each type: as it is here, as Spark has it, and a value as Python shows it there."""

VALUES = """
    1, 9007199254740993, 3.50, 1.5, 'x''y', 'abc', true, '2024-01-31', '2024-01-31 12:00:00.5',
    '2024-01-31 12:00:00+00', '12:00', '1 day', 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11', '{"a": 1}', '{1,2}', '\\x01'
"""


def test_spark_reads_and_writes_it_as_it_does_postgres(stack: Stack) -> None:
    with psycopg.connect(stack.dsn(), autocommit=True) as client:
        columns = ", ".join(f"{name} {sql}" for name, (sql, _, _) in EVERY.items())
        client.execute(f"CREATE TABLE every ({columns})")
        client.execute(f"INSERT INTO every VALUES ({VALUES})")
        client.execute("INSERT INTO every (k) VALUES (2)")
        client.execute("CREATE MATERIALIZED VIEW counted AS SELECT ok, count(*) AS n FROM every GROUP BY ok")
        client.execute("CREATE TABLE into_append (k int, s text)")
        client.execute("CREATE TABLE into_overwrite (k int, other text)")
        client.execute("INSERT INTO into_overwrite VALUES (1, 'goes')")
        port = str(client.info.port)
    program = [sys.executable, str(Path(__file__).with_name("spark_client.py")), port, JAR]
    done = subprocess.run(program, capture_output=True, text=True, timeout=400)
    assert done.returncode == 0, done.stderr[-4000:]
    answers = json.loads(done.stdout.splitlines()[-1])
    assert answers["types"] == [[name, theirs] for name, (_, theirs, _) in EVERY.items()]
    assert answers["rows"][0] == [shown for _, _, shown in EVERY.values()]
    assert answers["rows"][1] == ["2"] + ["None"] * (len(EVERY) - 1)
    assert answers["view"] == [[None, 1], [True, 1]]
    assert answers["query"] == 2
    assert answers["filtered"] == MANY - 11
    assert answers["by page"] == answers["in parts"] == sum(range(MANY))
    assert answers["written"] == dict.fromkeys(
        ("into_append", "into_new", "into_overwrite"), [[100, "from spark"], [101, None]]
    )
    print(f"{answers['rows/s']:,} rows/s written in four partitions")
