"""What share of PostgreSQL's own regression statements gets PostgreSQL's answer here.

    python -m tests.differential.regression DIRECTORY --ours DSN [--details FILE] [NAME …]

DIRECTORY is PostgreSQL's ``src/test/regress``, which is no part of this project: its ``sql``, and ``data`` if tables
are to be filled from there. Every statement of a file goes to a PostgreSQL of our own and to Tidemark, in turn.
Compared are queries, what changes rows, and what makes and drops tables and views: rows as the texts that a client
gets, in any order; types; SQLSTATEs. Left out is what needs a statement that is not here (``LACKING``), or an object
that such a statement made. Tables that one filled or changed are made here as PostgreSQL has them, so that queries on
them can be asked; the end of a block too may change them.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import psycopg
from psycopg.pq import DiagnosticField, ExecStatus

from tests.differential.postgres import postgres

SETUP = "test_setup"
"""The file that makes the tables of all others."""

SETTINGS = "-c datestyle=ISO,MDY -c timezone=America/Los_Angeles -c statement_timeout=15s"
"""Those of the suite, but that dates are written as ISO 8601 says and that no statement lasts.

PostgreSQL answers each of those compared in less than a second; what takes longer here is a difference (57014).
"""

GENERATED = {"onek": 1_000, "tenk1": 10_000}
"""Tables that the suite reads from files, and their rows: without the files, made by the rule by which these were."""

ROWS_AT_ONCE = 500
"""Of one INSERT; some 50 KB of text."""

DETAIL_ROWS_MAX = 30

_QUERY = re.compile(r"\(*(select|values|table|with)\b")
_COMPARED = re.compile(r"insert\b|create\s+(or\s+replace\s+)?(materialized\s+)?(table|view)\b|drop\s+(table|view)\b"
                       r"|(create|alter|drop)\s+sequence\b|(update|delete|merge|truncate)\b")
_CHANGES = re.compile(r"\bwith\b.*\b(insert|update|delete|merge)\b", re.DOTALL)
_SESSION = re.compile(r"(set|reset)\b")
_TOLD = re.compile(r"datestyle|timezone|time zone|intervalstyle|extra_float|bytea_output")

LACKING = {
    "copies to files": r"^copy\b",
    "locks rows": r"\bfor\s+(no\s+key\s+)?(update|share|key\s+share)\b",
    "makes a table of a query": r"^create\b[^;(]*\btable\b[^;(]*\bas\b|^select\b(?:(?!\bfrom\b).)*\binto\b",
    "tables of other kinds": r"^create\s+(or\s+replace\s+)?(global\s+|local\s+)?(temp|temporary|unlogged|recursive)\b"
                             r"|\binherits\b|\bpartition\s+of\b|^create\s+table.*\bpartition\s+by\b"
                             r"|\blike\s+\w+\s*(including|excluding|\))",
    "constraints": r"^create\s+table\b.*\b(references|exclude|collate"
                   r"|generated\s+always\s+as\s*\()",
    "system columns": r"\b(ctid|tableoid|xmin|xmax|cmin|cmax)\b",
    "the server itself": r"\b(pg_\w+|information_schema|txid_\w+|current_user|current_catalog|has_\w+_privilege)\b",
    "types that docs/types.md says are not here":
        r"\b(point|box|polygon|circle|lseg|money|xml|json|json_\w+\(|row_to_json|array_to_json|to_json|inet|cidr"
        r"|bit|varbit|timetz|tsvector|tsquery|(?:int4|int8|num|ts|tstz|date|multi)range|oid|refcursor|xid"
        r"|record|jsonpath|reg(?:class|proc|procedure|type|oper|operator|namespace|role|config|collation)"
        r"|time with time zone|bit varying)\b|@@|@\?",
    "psql's variables": r"(?<![:\w\]]):['\"]?[a-z]",
}  # fmt: skip
"""What a statement needs that is not here, by a pattern of its text (:func:`bare`)."""

_MAKES = re.compile(
    r"(?:create|alter|drop)\s+(?:or\s+replace\s+)?(?:function|type|domain|aggregate|procedure|operator|cast"
    r"|collation|rule|trigger|(?:temp\w*\s+|recursive\s+)*view)\s+(?:if\s+\w+(?:\s+\w+)?\s+)?\"?(\w+)"
)
_TABLES = re.compile(
    r"\b(?:insert\s+into|update(?:\s+only)?|delete\s+from(?:\s+only)?|merge\s+into|truncate(?:\s+table)?|copy"
    r"|into(?:\s+table)?|create\s+(?:\w+\s+)*?table(?:\s+if\s+not\s+exists)?|alter\s+table(?:\s+only)?)\s+\"?(\w+)"
)
_TOKEN = re.compile(
    r"(?P<comment>--[^\n]*|/\*.*?\*/)|(?P<quoted>\$(\w*)\$.*?\$\3\$|(?<!\w)[eE]'(?:[^'\\]|\\.|'')*'|'(?:[^']|'')*'"
    r"|\"(?:[^\"]|\"\")*\")|(?P<psql>\\[^\n]*)|\w+|.",
    re.DOTALL,
)


def statements(text: str) -> Iterator[tuple[str, str]]:
    """What psql would send, without comments, and the rows behind a COPY.

    What ends with one of its own commands (``\\gset``) is its own affair, except that ``\\set`` names a file of rows.
    """
    at, depth, parts, file = 0, 0, [], ""
    while found := _TOKEN.match(text, at):
        at, token = found.end(), found[0]
        if found["comment"]:
            token = " "
        elif found["psql"]:
            file = named[1] if (named := re.search(r"/(data/\w+\.data)'", token)) else file
            depth, parts, token = 0, [], ""
        depth += (token == "(") - (token == ")")
        if token != ";" or depth > 0:
            parts.append(token)
            continue
        sql, rows = "".join(parts).strip().replace(":'filename'", f"'{file}'"), ""
        depth, parts = 0, []
        if re.match(r"copy\b.*\bfrom\s+stdin\b", bare(sql)):
            begin, at = text.index("\n", at) + 1, text.index("\n\\.", at) + 3
            rows = text[begin : at - 2]
        if sql:
            yield sql, rows


def bare(sql: str) -> str:
    """``sql`` in lower case, with nothing in its quotes."""
    return _TOKEN.sub(lambda m: "''" if m["quoted"] and m[0][0] != '"' else m[0], sql).lower()


def needs(words: str, lacking: set[str]) -> str | None:
    """What a statement needs that is not here; ``lacking`` are names of objects that only PostgreSQL has."""
    for what, pattern in LACKING.items():
        if re.search(pattern, words, re.DOTALL):
            return what
    if not (_QUERY.match(words) or _COMPARED.match(words)):
        return "another statement"
    return "an object made by another statement" if set(re.findall(r"\w+", words)) & lacking else None


@dataclass
class Side:
    """A connection, and what it says to a statement: ``types`` and ``rows`` of texts, or an ``error``'s SQLSTATE."""

    connection: psycopg.Connection
    schema: str = "public"
    """Of the tables made here: that of the file, whose tables hide those of the setup and leave them as they are."""

    def ask(self, sql: str) -> dict:
        result = self.connection.pgconn.exec_(sql.encode())
        if ExecStatus(result.status) in (ExecStatus.FATAL_ERROR, ExecStatus.BAD_RESPONSE):
            code = (result.error_field(DiagnosticField.SQLSTATE) or b"no answer").decode()
            return {"error": code, "message": result.error_message.decode("utf8", "replace")[:300]}
        columns = range(result.nfields)
        rows = [[_text(result.get_value(row, column)) for column in columns] for row in range(result.ntuples)]
        return {"types": [result.ftype(column) for column in columns], "rows": rows}


def _text(value: bytes | None) -> str | None:
    return None if value is None else value.decode("utf8", "replace")


TEXTS = {18, 19, 25, 705, 1042, 1043}
"""Types whose values are texts here, whatever they are called there."""


def difference(theirs: dict, ours: dict) -> str | None:
    """Which way two answers differ, in a word."""
    if "error" in theirs or "error" in ours:
        a, b = theirs.get("error"), ours.get("error")
        return None if a == b else "refused" if a is None else "taken" if b is None else "sqlstate"
    types = list(zip(theirs["types"], ours["types"], strict=False))
    if len(theirs["types"]) != len(ours["types"]):
        return "columns"
    if any(a != b and not {a, b} <= TEXTS for a, b in types):
        return "types"
    padded = [a == 1042 for a, _ in types]
    left, right = (
        Counter(
            tuple(v.rstrip(" ") if v and blanks else v for v, blanks in zip(row, padded, strict=True))
            for row in each["rows"]
        )
        for each in (theirs, ours)
    )
    return None if left == right else "rows"


def make_alike(theirs: Side, ours: Side, table: str) -> bool:
    """Make ``table`` here as PostgreSQL has it, where there is one and its types are here: whether both are so."""
    described = theirs.ask(
        "select quote_ident(attname), format_type(atttypid, atttypmod) "
        "from pg_attribute join pg_class c on c.oid = attrelid "
        f"where c.oid = to_regclass('{table}') and relkind in ('r', 'p') and attnum > 0 and not attisdropped "
        "order by attnum"
    )
    if "error" in described:  # a block that failed: its end says what became of the table
        return True
    columns = described["rows"]
    ours.ask(f"drop table if exists {ours.schema}.{table} cascade")
    shown = ", ".join(f"{name} {kind if kind != 'name' else 'text'}" for name, kind in columns)
    if not columns:  # no table, or one without columns, which cannot be here
        found = theirs.ask(f"select from pg_class where oid = to_regclass('{table}') and relkind in ('r', 'p')")
        return not found["rows"]
    if "error" in ours.ask(f"create table {ours.schema}.{table} ({shown})"):
        return False
    values = ", ".join(f"quote_nullable({name}::text)" for name, _ in columns)
    rows = theirs.ask(f"select {values} from {table}")["rows"]
    for lower in range(0, len(rows), ROWS_AT_ONCE):
        values = ", ".join(f"({', '.join(row)})" for row in rows[lower : lower + ROWS_AT_ONCE])
        done = ours.ask(f"insert into {ours.schema}.{table} values {values}")
        if "error" in done:
            print(f"  {table} could not be filled: {done}", file=sys.stderr)
            ours.ask(f"drop table if exists {ours.schema}.{table} cascade")
            return False
    return True


def generate(theirs: Side, table: str) -> None:
    """The rows of one of ``GENERATED``: ``unique1`` in some order, ``unique2`` in that of the rows."""
    count = GENERATED[table]
    code = " || ".join(f"chr(65 + ({{0}} / {26**n}) % 26)" for n in range(3)) + " || 'AAA'"
    theirs.ask(
        f"insert into {table} select u, g, u % 2, u % 4, u % 10, u % 20, u % 100, u % 1000, u % 2000, u % 5000, "
        f"u % 10000, u % 100 * 2, u % 100 * 2 + 1, {code.format('u')}, {code.format('g')}, "
        "(array['AAAAxx', 'HHHHxx', 'OOOOxx', 'VVVVxx'])[g % 4 + 1] "
        f"from (select g, (g * 7919 + 4242) % {count} as u from generate_series(0, {count - 1}) g) s"
    )


@dataclass
class File:
    """One file's run: what its statements answered, and what only PostgreSQL has."""

    theirs: Side
    ours: Side
    name: str
    directory: Path
    lacking: set[str]
    """Names of objects that only PostgreSQL has, because it took a statement that is not here to make them."""
    touched: set[str] | None = None
    """Tables changed since BEGIN; ``None`` outside of a block."""

    def run(self) -> list[dict]:
        """Every statement of the file, with what it lacks or how the answers differ."""
        found = []
        for sql, rows in statements((self.directory / "sql" / f"{self.name}.sql").read_text()):
            words = bare(sql)
            if (copied := re.match(r"copy\s+(\w+)[^;]*\bfrom\b", words)) is not None:
                self._fill(sql, copied[1], rows)
            elif _SESSION.match(words):
                _set(self.theirs, self.ours, sql)
            else:
                found.append({"file": self.name, "sql": sql, **self._ask(sql, words)})
        return found

    def _ask(self, sql: str, words: str) -> dict:
        lacks = needs(words, self.lacking)
        answer = self.theirs.ask(sql)
        if lacks is not None:
            if "error" not in answer:
                self.lacking |= set(_MAKES.findall(words))
                self._follow(words, lacks)
            return {"lacks": lacks}
        here = self.ours.ask(sql)
        differs = difference(answer, here)
        if self.touched is not None:
            self.touched |= set(_TABLES.findall(words))
        if differs and (_CHANGES.search(words) or not _QUERY.match(words)):
            for table in set(_TABLES.findall(words)):
                make_alike(self.theirs, self.ours, table)
        return {"differs": differs, "theirs": _cut(answer), "ours": _cut(here)}

    def _follow(self, words: str, lacks: str) -> None:
        """What a statement that is not here did to tables is done here too; a block's end may undo it."""
        tables = set(_TABLES.findall(words))
        if re.match(r"(begin|start)\b", words):
            self.touched = set()
        elif re.match(r"(rollback|abort|commit|end)\b", words):
            tables |= self.touched or set()
            self.touched = self.touched if re.match(r"rollback\s+to\b", words) else None
        elif self.touched is not None:
            self.touched |= tables
        for table in tables:
            if not make_alike(self.theirs, self.ours, table):
                self.lacking.add(table)

    def _fill(self, sql: str, table: str, rows: str) -> None:
        file = re.search(r"'(data/\w+\.data)'", sql)
        if file and (self.directory / file[1]).exists():
            rows = (self.directory / file[1]).read_text()
        elif file and table in GENERATED:
            generate(self.theirs, table)
        if rows:
            copying = re.sub(r"'data/\w+\.data'|(?i:\bstdin\b)", "stdin", sql)
            with suppress(psycopg.Error), self.theirs.connection.cursor().copy(copying) as copy:
                copy.write(rows)  # some are there to be refused: the table here becomes what it is there
        if not make_alike(self.theirs, self.ours, table):
            self.lacking.add(table)


def _set(theirs: Side, ours: Side, sql: str) -> None:
    """What changes answers is set on both sides or on none; dates go on being written as ISO 8601 says."""
    words = sql.lower()
    if "datestyle" in words:
        order = re.search(r"\b(mdy|dmy|ymd)\b", words)
        sql = f"set datestyle = 'ISO, {order[1]}'" if order else "set datestyle = 'ISO'"
    if not _TOLD.search(words) or "error" not in ours.ask(sql):
        theirs.ask(sql)


def _cut(answer: dict) -> dict:
    return {**answer, "rows": answer["rows"][:DETAIL_ROWS_MAX]} if "rows" in answer else answer


def _line(name: str, found: list[dict]) -> str:
    asked = [each for each in found if "lacks" not in each]
    good = sum(each["differs"] is None for each in asked)
    return f"{name:20} {len(found):6} {len(asked):6} {good:6} {good / max(1, len(asked)):7.1%}"


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("directory", type=Path)
    parser.add_argument("--ours", required=True, help="a running Tidemark")
    parser.add_argument("--details", type=Path, help="where every statement and the two answers are written, as JSON")
    parser.add_argument("names", nargs="*", help="files, without .sql (all of them)")
    given = parser.parse_intermixed_args(argv)
    names = given.names or sorted(each.stem for each in (given.directory / "sql").glob("*.sql") if each.stem != SETUP)
    unknown = [name for name in names if not (given.directory / "sql" / f"{name}.sql").exists()]
    if unknown:
        parser.error(f"there is no sql/{unknown[0]}.sql in {given.directory}")
    everything, known = [], set()
    with postgres() as peer, psycopg.connect(given.ours, autocommit=True, options=SETTINGS) as connection:
        ours = Side(connection)
        peer.execute("create database base")
        with psycopg.connect(peer.info.dsn, dbname="base", autocommit=True, options=SETTINGS) as base:
            File(Side(base), ours, SETUP, given.directory, known).run()
        print(f"{'':20} {'all':>6} {'asked':>6} {'alike':>6}")
        for name in names:
            peer.execute(f'create database "{name}" template base')
            for sql in ("reset all", f"drop schema if exists of_{name} cascade", f"create schema of_{name}",
                        f"set search_path = of_{name}, public"):  # fmt: skip
                connection.execute(sql)
            ours.schema = f"of_{name}"
            with psycopg.connect(peer.info.dsn, dbname=name, autocommit=True, options=SETTINGS) as theirs:
                found = File(Side(theirs), ours, name, given.directory, set(known)).run()
            everything += found
            print(_line(name, found), flush=True)
            if given.details:
                given.details.write_text(json.dumps(everything, indent=1, ensure_ascii=False))
    print(_line("all", everything))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
