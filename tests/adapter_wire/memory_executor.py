"""A small executor for tests: a handful of statement shapes over lists in memory, with everything observable.

``select <item>, …`` where an item is a literal or ``$n``, each with an optional ``::type``; ``select * from t``;
``select * from series(n)``; ``insert into t values (…), …``; ``create table x``; ``set x = y``; ``show x``;
``hang``; ``fail <sqlstate>``; ``bug``.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator
from contextlib import contextmanager
from decimal import Decimal
from types import SimpleNamespace

import pyarrow as pa

from adapter.state.copying import Copying, CopyProgress
from adapter.state.interfaces import Kind, Notice, Outgoing, OutputColumn, Prepared, Result
from journal.errors import InvalidUsage, Rejected
from sql.syntax.copying import CopyOptions
from values.types import OID, SqlType, arrow_type, parse_type

SERIES_BATCH = 1000
NAME_OF_OID = {oid: name for name, oid in OID.items()}
_ITEM = re.compile(
    r"^\(?(\$\d+|'(?:[^']|'')*'|-?\d+\.\d+|-?\d+|null|true|false)\)?(?:::([a-z0-9 (),]+))?$", re.IGNORECASE
)
_CONST = {"true": True, "false": False, "null": None}


def _split_items(text: str) -> list[str]:
    items, depth, quoted, start = [], 0, False, 0
    for at, char in enumerate(text):
        quoted ^= char == "'"
        depth += (char == "(") - (char == ")") if not quoted else 0
        if char == "," and not depth and not quoted:
            items.append(text[start:at].strip())
            start = at + 1
    return [*items, text[start:].strip()]


def _literal(text: str) -> tuple[object, str]:
    if text.lower() in _CONST:
        return _CONST[text.lower()], "bool" if text.lower() != "null" else "text"
    if text.startswith("'"):
        return text[1:-1].replace("''", "'"), "text"
    return (
        (Decimal(text), "numeric(38,9)") if "." in text else (int(text), "int4" if abs(int(text)) < 2**31 else "int8")
    )


@contextmanager
def _understood(text: str) -> Iterator[None]:
    """A fuzzer changes bytes of statements too: what makes no sense any more is refused, as by a real executor."""
    try:
        yield
    except (ValueError, IndexError, TypeError, ArithmeticError) as error:
        raise InvalidUsage(f'syntax error at or near "{text[:20]}"', sqlstate="42601", position=1) from error


class Entry(list):
    """Rows of the one table that there is."""

    table, runs = SimpleNamespace(id="t"), ()

    @property
    def size(self) -> int:
        return len(self)


class MemoryIncoming:
    """Lines of ``number TAB text``."""

    binary, columns = False, 2

    def __init__(self, executor: MemoryExecutor, session) -> None:
        self.executor, self.session, self.defers = executor, session, session.defers_writes
        self.data = b""

    async def take(self, data: bytes) -> None:
        self.data += data
        if self.data.endswith(b"wait\n"):
            await self.executor._hang()
        if b"x\t" in self.data:
            raise InvalidUsage("it is no number", sqlstate="22P02")

    async def done(self) -> str:
        rows = [(int(a), b) for a, b in (line.split("\t") for line in self.data.decode().splitlines())]
        if self.defers:
            self.session.buffer.append(Entry(rows))
        else:
            self.executor._commit(rows)
        return f"COPY {len(rows)}"

    async def given_up(self, reason: str):
        raise Rejected(f"COPY from stdin failed: {reason}", sqlstate="57014")

    async def close(self) -> None:
        self.executor.copies_closed += 1


class MemoryExecutor:
    """``table`` holds committed rows; the rest records what happened."""

    def __init__(self) -> None:
        self.table: list[tuple[object, ...]] = []
        self.commits: list[int] = []
        self.ddl: list[str] = []
        self.rolled_back: list[object] = []
        self.hanging = asyncio.Event()
        self.cancelled = asyncio.Event()
        self.batches_made = 0
        self.batches_closed = 0
        self.copies_closed = 0
        self.prepares = 0
        self.runs = 0
        self.commit_error: Exception | None = None
        self.hold_commit = False

    async def open(self, session) -> None:
        if session.database not in ("tidemark",):
            raise InvalidUsage(f'database "{session.database}" does not exist', sqlstate="3D000")

    async def split(self, sql: str) -> list[str]:
        return [part for part in re.findall(r"(?:[^;']|'(?:[^']|'')*')+", sql) if part.strip()]

    async def prepare(self, session, sql: str, param_oids=()) -> Prepared:
        self.prepares += 1
        with _understood(sql):
            return self._prepare(sql, param_oids)

    def _prepare(self, sql: str, param_oids) -> Prepared:
        text = sql.strip()
        lower = text.lower()
        if lower.startswith("select * from series("):
            columns = (OutputColumn("i", SqlType("int4")), OutputColumn("t", SqlType("text")))
            return Prepared(sql, Kind.SELECT, (), columns, "SELECT", ("series", int(lower[21:-1])))
        if lower == "select * from t":
            columns = (OutputColumn("a", SqlType("int4")), OutputColumn("b", SqlType("text")))
            return Prepared(sql, Kind.SELECT, (), columns, "SELECT", ("table",))
        if lower.startswith("select "):
            return self._prepare_select(sql, text[7:], list(param_oids))
        if lower.startswith("insert into t values"):
            count = len(set(re.findall(r"\$\d+", text)))
            oids = [*param_oids, *[0] * (count - len(param_oids))]
            inferred = tuple(oid or (23, 25)[i % 2] for i, oid in enumerate(oids))
            return Prepared(sql, Kind.INSERT, inferred, None, "INSERT", ("insert", text[20:].strip()))
        if match := re.match(r"set (\S+) (?:=|to) '?([^']*)'?$", text, re.IGNORECASE):
            return Prepared(sql, Kind.SESSION, (), None, "SET", ("set", match[1], match[2]))
        if lower.startswith("show "):
            return Prepared(
                sql, Kind.SESSION, (), (OutputColumn(text[5:], SqlType("text")),), "SHOW", ("show", text[5:])
            )
        if lower == "copy t from stdin":
            return Prepared(sql, Kind.COPY_FROM, (), None, "COPY FROM", ("copy from",))
        if lower == "copy t to stdout":
            return Prepared(sql, Kind.COPY_TO, (), None, "COPY TO", ("copy to",))
        if lower.startswith("create table"):
            return Prepared(sql, Kind.DDL, (), None, "CREATE TABLE", ("ddl", text))
        if lower in ("hang", "bug", "notice") or lower.startswith("fail "):
            return Prepared(sql, Kind.SELECT, (), None, "DO", (lower,))
        raise InvalidUsage(f'syntax error at or near "{text[:20]}"', sqlstate="42601", position=sql.find(text) + 1)

    def _prepare_select(self, sql: str, rest: str, oids: list[int]) -> Prepared:
        items, columns = [], []
        for index, item in enumerate(_split_items(rest)):
            match = _ITEM.match(item)
            if not match:
                raise InvalidUsage(f'column "{item}" does not exist', sqlstate="42703", position=sql.find(item) + 1)
            cast = parse_type(match[2]) if match[2] else None
            if match[1].startswith("$"):
                number = int(match[1][1:])
                oids += [0] * (number - len(oids))
                if not oids[number - 1]:
                    oids[number - 1] = OID[cast.name] if cast else 25
                declared = NAME_OF_OID.get(oids[number - 1], "text")
                sql_type = cast or parse_type(declared)
                items.append(("param", number - 1))
            else:
                value, name = _literal(match[1])
                sql_type = cast or parse_type(name)
                if cast and isinstance(value, str) and cast.name != "text":
                    value = pa.array([value]).cast(arrow_type(cast))[0].as_py()
                items.append(("const", value))
            columns.append(OutputColumn(f"c{index}", sql_type))
        return Prepared(sql, Kind.SELECT, tuple(o or 25 for o in oids), tuple(columns), "SELECT", ("select", items))

    async def again(self, session, prepared: Prepared) -> Prepared:
        return prepared

    async def run(self, session, prepared: Prepared, params=()) -> Result:
        self.runs += 1
        what, *rest = prepared.plan
        if what == "select":
            with _understood(prepared.sql):
                values = [params[v] if kind == "param" else v for kind, v in rest[0]]
                return Result("SELECT", prepared.columns, [self._batch(prepared, [values])])
        if what == "series":
            return Result("SELECT", prepared.columns, self._series(prepared, rest[0]))
        if what == "table":
            return Result("SELECT", prepared.columns, [self._batch(prepared, self.table)])
        if what == "insert":
            return await self._insert(session, rest[0], params)
        if what == "set":
            session.set_variable(*rest)
            return Result("SET")
        if what == "show":
            return Result("SHOW", prepared.columns, [self._batch(prepared, [(session.variable(rest[0]),)])])
        if what == "copy from":
            return Result("COPY", copy=MemoryIncoming(self, session))
        if what == "copy to":
            columns = (OutputColumn("a", SqlType("int4")), OutputColumn("b", SqlType("text")))
            batches = [self._batch(Prepared("", Kind.SELECT, (), columns, "SELECT"), self.table)]
            copying = Copying()
            progress = copying.begin(CopyProgress(session, "COPY TO"))
            return Result("COPY", copy=Outgoing(Result("SELECT", columns, batches), CopyOptions(), progress, copying))
        if what == "ddl":
            self.ddl.append(rest[0])
            return Result("CREATE TABLE")
        if what == "notice":
            return Result("DO", notices=[Notice("mind the gap", hint="look down")])
        if what == "hang":
            return await self._hang()
        if what == "bug":
            raise RuntimeError("a bug of the executor's")
        raise InvalidUsage("it failed", sqlstate=what[5:].upper(), detail="the detail", hint="the hint", position=1)

    def _batch(self, prepared: Prepared, rows) -> pa.RecordBatch:
        arrays = [
            pa.array([row[i] for row in rows], arrow_type(column.type)) for i, column in enumerate(prepared.columns)
        ]
        return pa.RecordBatch.from_arrays(arrays, [c.name for c in prepared.columns])

    async def _series(self, prepared: Prepared, count: int):
        try:
            for lower in range(0, count, SERIES_BATCH):
                self.batches_made += 1
                upper = min(count, lower + SERIES_BATCH)
                yield self._batch(prepared, [(i, f"row {i}") for i in range(lower, upper)])
        finally:
            self.batches_closed += 1

    async def _insert(self, session, text: str, params) -> Result:
        rows = []
        with _understood(text):
            for row in re.findall(r"\(([^)]*)\)", text):
                items = _split_items(row)
                a, b = (params[int(i[1:]) - 1] if i[0] == "$" else _literal(i)[0] for i in items)
                pa.array([a], pa.int32()), pa.array([b], pa.string())  # or it is no row of the table
                rows.append((a, b))
        if session.defers_writes:
            session.buffer.append(Entry(rows))
        else:
            self._commit(rows)
        return Result(f"INSERT 0 {len(rows)}")

    def _commit(self, rows) -> None:
        if self.commit_error:
            raise self.commit_error
        self.table += rows
        self.commits.append(len(rows))

    async def commit(self, session):
        rows = [row for entry in session.buffer.cut(0) for row in entry]
        if self.hold_commit:  # it was sent: a cancellation changes nothing, as in the real executor
            self.hanging.set()
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                pass
        await asyncio.sleep(0)
        self._commit(rows)
        return []

    async def rollback(self, session, buffered) -> None:
        self.rolled_back += buffered

    async def _hang(self) -> Result:
        self.hanging.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            self.cancelled.set()
            raise
        raise Rejected("unreachable")
