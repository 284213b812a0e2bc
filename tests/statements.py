# ruff: noqa: E501
"""Statements made at random, of the whole grammar and of what is near it: a seed alone decides them.

Tables, sources, views over views, materialized views, indexes, comments, casts, INSERT, UPDATE, DELETE, ALTER, sessions'
words, EXPLAIN, and queries of :mod:`tests.differential.worlds` over what was made.  A third of them are broken on purpose:
words left out, doubled, swapped or replaced.  What each comes to is not known here: only that it is an answer or a refusal.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator

from tests.differential.worlds import POOLS, Queries, World, world
from tests.texts import literal, quoted, spelt, text_of

TYPES = (
    *POOLS,
    "interval",
    "varchar",
    "numeric",
    "oid",
    "name",
    "json",
    "point",
    "text[]",
    "timestamp(3)",
    "int4range",
)

WORDS = (
    "select from where group by having order limit offset union all distinct with recursive as join left right full on "
    "using natural lateral case when then else end is not null true false and or in any exists between like ilike "
    "similar escape cast extract interval date timestamp array row values table default over partition filter within "
    "insert into create drop view materialized index source comment alter if cascade in cluster explain $1 $2 ( ) [ ] , ; . "
    "* + - / % ^ || -> ->> @> <@ && = <> < > <= >= ~ ~* !~ :: := => 0 1 -1 1.5 1e400 9223372036854775808 '' 'a' E'\\\\x41' "
    "$$a$$ B'1' X'1f' U&'\\\\0041' \"A\" \"\" a b id t now() count(*) sum(1) generate_series(1,3) unnest('{1}'::int[])"
).split()

FUNCTIONS = (
    "abs age array_agg array_length array_to_string ascii avg bit_length btrim cardinality ceil char_length chr coalesce "
    "concat concat_ws count date_part date_trunc div encode exp extract floor format gcd greatest initcap jsonb_build_object "
    "jsonb_typeof justify_days lag left length ln log lower lpad make_date max md5 min mod now nullif octet_length pi "
    "position power random regexp_replace repeat replace reverse right round row_number rpad sign split_part sqrt "
    "string_agg string_to_array substr sum to_char to_date to_hex to_timestamp translate trim trunc upper width_bucket "
    "hash printf java_method no_such pg_sleep version current_setting quote_ident tm_repeat __diff uuid"
).split()


class Statements:
    """An endless supply.  ``prefix`` begins the names of what they make, so that runs do not meet."""

    def __init__(self, seed: int, prefix: str = "") -> None:
        self._draw = random.Random(seed)
        self._prefix = prefix
        self.world: World = world(self._draw)
        self._relations = {prefix + name: dict(columns) for name, columns in self.world.tables.items()}
        self._queries = Queries(self._draw, World(self._relations, {name: [] for name in self._relations}))
        self._made = 0

    def setup(self) -> list[str]:
        """The tables that queries read."""
        return [
            f"create table {name} ({', '.join(f'{c} {kind}' for c, kind in columns.items())})"
            for name, columns in self._relations.items()
        ]

    def __iter__(self) -> Iterator[str]:
        kinds = (
            *([self._query] * 6), self._call, self._call, self._cast, self._table, self._view, self._view, self._index,
            self._source, self._comment, self._insert, self._insert, self._change, self._drop, self._session, self._explain,
        )  # fmt: skip
        while True:
            text = self._draw.choice(kinds)()
            yield self._broken(text) if self._draw.random() < 0.35 else text

    def _name(self) -> str:
        self._made += 1
        return f"{self._prefix}n{self._made % 12}"

    def _any(self) -> str:
        return self._draw.choice(
            (*self._relations, *self._relations, self._name(), "pg_class", "information_schema.tables")
        )

    def _column(self) -> str:
        columns = self._draw.choice(list(self._relations.values()))
        return self._draw.choice((*columns, "o0", "o1", "ctid", quoted(text_of(self._draw)[:9] or "x")))

    def _literal(self) -> str:
        kind = self._draw.choice(list(POOLS))
        made = self._draw.choice(POOLS[kind])
        return self._draw.choice(
            (
                literal(made),
                f"{literal(made)}::{kind}",
                spelt(self._draw, text_of(self._draw)),
                "null",
                "1",
                "-1.5",
                "true",
            )
        )

    def _query(self) -> str:
        return self._queries.query().written

    def _call(self) -> str:
        args = [self._draw.choice((self._literal, self._column))() for _ in range(self._draw.randrange(4))]
        call = f"{self._draw.choice(FUNCTIONS)}({self._draw.choice(('', '', 'distinct '))}{', '.join(args)})"
        call += self._draw.choice(
            ("", "", "", " over ()", " filter (where true)", "::text", " within group (order by 1)")
        )
        return f"select {call}" + self._draw.choice(("", f" from {self._any()}", f" from {self._any()} group by 1"))

    def _cast(self) -> str:
        inner = self._literal()
        for _ in range(self._draw.randrange(1, 4)):
            inner = f"({inner})::{self._draw.choice(TYPES)}"
        return f"select {inner}" + self._draw.choice(("", f" from {self._any()} limit 2"))

    def _table(self) -> str:
        columns = ", ".join(
            f"c{i} {self._draw.choice(TYPES)}" + self._draw.choice(("", "", " not null", f" default {self._literal()}"))
            for i in range(self._draw.randrange(1, 4))
        )
        return f"create table {self._draw.choice(('', 'if not exists '))}{self._name()} ({columns})"

    def _view(self) -> str:
        kind = self._draw.choice(("view", "view", "materialized view"))
        body = self._draw.choice((self._query, self._query, lambda: f"select * from {self._any()}", self._call))()
        return f"create {kind} {self._name()} as {body}"

    def _index(self) -> str:
        return f"create index on {self._any()} ({', '.join(self._column() for _ in range(self._draw.randrange(1, 3)))})"

    def _source(self) -> str:
        column = f"a {self._draw.choice(TYPES)}"
        topic = self._draw.choice(("no-topic", "", "a b", f"{self._prefix}x", "env.catalog"))
        return f"create source {self._name()} ({column}) from kafka topic {literal(topic)} format json"

    def _comment(self) -> str:
        on = self._draw.choice((f"table {self._any()}", f"view {self._name()}", f"column {self._any()}.{self._column()}",
                                f"materialized view {self._name()}", f"index {self._name()}"))  # fmt: skip
        return f"comment on {on} is {self._draw.choice((spelt(self._draw, text_of(self._draw)), 'null'))}"

    def _insert(self) -> str:
        name = self._draw.choice(list(self._relations))
        width = len(self._relations[name]) + self._draw.choice((0, 0, 0, 1, -1))
        rows = ", ".join(
            f"({', '.join(self._literal() for _ in range(width))})" for _ in range(self._draw.randrange(1, 3))
        )
        return f"insert into {name} " + self._draw.choice((f"values {rows}", self._query(), "default values"))

    def _change(self) -> str:
        name, made = self._any(), self._name()
        kind = self._draw.choice(("table", "table if exists", "view", "materialized view", "index", "source"))
        return self._draw.choice((
            f"update {name} set {self._column()} = {self._literal()}", f"delete from {name} where {self._column()} = 1",
            f"alter table {made} add column {self._name()} int default 5", f"alter table {made} drop c0 cascade",
            f"alter {kind} {made} rename {self._draw.choice(('c0', 'c1', 'a', 'o0'))} to {self._name()}",
            f"alter table {made} alter c0 set default {self._literal()}, add column z text", f"alter {kind} {made} rename to {self._name()}",
            f"alter {kind} {made} set schema {self._draw.choice(('public', 'pg_catalog', 'nowhere'))}", f"truncate {name}",
            f"alter source {self._name()} reset", f"alter source {name} reset cascade", f"copy {name} from stdin",
            f"copy {name} to stdout", f"grant select on {name} to public", f"create role {self._name()}", f"vacuum {name}",
            f"lock table {name}", f"analyze {name}", f"merge into {name} using t on true when matched then delete",
        ))  # fmt: skip

    def _drop(self) -> str:
        kind = self._draw.choice(("table", "view", "materialized view", "index", "source", "schema", "role"))
        exists, more = self._draw.choice(("", "if exists ")), self._draw.choice(("", " cascade"))
        return f"drop {kind} {exists}{self._name()}{more}"

    def _session(self) -> str:
        return self._draw.choice((
            "show all", "show search_path", "reset all", "select 1", "discard all", "show no_such", "listen a",
            f"set application_name = {literal(text_of(self._draw)[:40])}", "set statement_timeout = 'x'", "show tables",
            f"show columns from {self._any()}", f"deallocate {self._name()}", f"close {self._name()}",
            f"prepare {self._name()} as {self._query()}", f"declare {self._name()} cursor for select 1",
            f"execute {self._name()}(1)", f"fetch 1 from {self._name()}", "do $$ begin end $$", "call f()",
        ))  # fmt: skip

    def _explain(self) -> str:
        mode = self._draw.choice(("", "plan for ", "timestamp for ", "analyze ", "(format json) ", "strategy "))
        return f"explain {mode}{self._draw.choice((self._query, self._view, self._insert))()}"

    def _broken(self, text: str) -> str:
        parts = re.findall(r"\s+|\w+|'(?:[^']|'')*'|.", text, re.S)
        for _ in range(self._draw.choice((1, 1, 2, 4))):
            at, other = self._draw.randrange(len(parts)), self._draw.randrange(len(parts))
            way = self._draw.randrange(5)
            if way == 0:
                parts[at] = " "
            elif way == 1:
                parts[at] = f"{parts[at]} {parts[at]}"
            elif way == 2:
                parts[at], parts[other] = parts[other], parts[at]
            elif way == 3:
                parts[at] = f" {self._draw.choice(WORDS)} "
            else:
                parts.insert(at, f" {self._draw.choice(WORDS)} ")
        return "".join(parts)
