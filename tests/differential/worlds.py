"""Schemas, rows and queries made at random, of the whole grammar: a seed alone decides them.

A query is text with marks for its literals, so that it can be asked with these written out or as parameters.  It stays
inside what both systems promise to answer alike: order is decided where it matters, and arithmetic does not overflow.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

POOLS: Mapping[str, tuple[str, ...]] = {
    "int2": ("0", "1", "-1", "7", "32767"),
    "int4": ("0", "1", "2", "-3", "100"),
    "int8": ("0", "1", "2", "-3", "9007199254740993"),
    "numeric(6,2)": ("0.00", "1.00", "0.10", "-3.25", "1.50"),
    "numeric(12,4)": ("0.0000", "1.0000", "0.1000", "-3.2500", "2.0001"),
    "float4": ("0", "-0", "0.1", "1", "-3.25", "NaN", "Infinity"),
    "float8": ("0", "-0", "0.1", "1", "-3.25", "NaN", "-Infinity"),
    "text": ("", "a", "A", "b", "a ", "ä", "a%", "1"),
    "varchar(6)": ("", "a", "A", "b", "a ", "ä"),
    "char(4)": ("", "a", "A", "b", "a ", "ab"),
    "bool": ("true", "false"),
    "date": ("2024-02-29", "1970-01-01", "1999-12-31"),
    "timestamp": ("2024-02-29 00:00:00", "1970-01-01 00:00:00", "1999-12-31 23:59:59.999999"),
    "timestamptz": ("2024-02-29 00:00:00+00", "1970-01-01 00:00:00+00", "1999-12-31 23:59:59.999999+00"),
    "time": ("00:00:00", "12:34:56.789", "23:59:59"),
    "uuid": ("00000000-0000-0000-0000-000000000001", "FFFFFFFF-ffff-ffff-ffff-ffffffffffff"),
    "macaddr": ("08:00:2b:01:02:03", "FF-FF-FF-FF-FF-FF", "0800.2b01.0203"),
    "macaddr8": ("08:00:2b:ff:fe:01:02:03", "FF-FF-FF-FF-FF-FF-FF-FF", "08002b:010203"),
    "jsonb": ("1", "1e0", '"x"', '{"a": 1, "b": [1, null]}', '{"b":[1,null],"a":1}', "[]", "null"),
    "bytea": ("\\x", "\\x00ff", "\\x61"),
    "interval": ("1 day", "24 hours", "1 mon", "30 days", "-1 day"),
    "int4[]": ("{}", "{1}", "{1,2}", "{NULL,1}"),
    "text[]": ("{}", "{a}", '{a,"",NULL}'),
}  # fmt: skip
"""Values by type: few, so that they meet; where equal ones are written in several ways, in several ways."""

FAMILIES = (
    ("int2", "int4", "int8", "numeric(6,2)", "numeric(12,4)", "float4", "float8"),
    ("text", "varchar(6)", "char(4)"),
    ("date", "timestamp", "timestamptz"),
)
"""Types that compare with each other."""

UNORDERED = frozenset({"jsonb", "interval", "int4[]", "text[]", "uuid"})
"""Types whose order is not asked for (there is none, or it is another one)."""

NULLS = 0.2
_MARK = re.compile("\x00(\\d+)\x00")


@dataclass(frozen=True)
class Query:
    """``text`` has a mark for each of ``literals``, which are ``(text, type)``."""

    text: str
    literals: tuple[tuple[str, str], ...]
    ordered: bool
    plain: bool
    """Whether it reads one relation, and only filters, projects, sorts, limits or aggregates."""
    exact: bool = True

    @property
    def written(self) -> str:
        """With its literals."""
        return _MARK.sub(lambda m: quoted(*self.literals[int(m[1])]), self.text)

    @property
    def asked(self) -> str:
        """With parameters."""
        return _MARK.sub(lambda m: f"${int(m[1]) + 1}::{self.literals[int(m[1])][1]}", self.text)

    def over(self, names: Mapping[str, str]) -> Query:
        """The same over relations of other names."""
        text = re.sub(r"\b(" + "|".join(names) + r")\b(?!\.)", lambda m: names[m[1]], self.text) if names else self.text
        return Query(text, self.literals, self.ordered, self.plain, self.exact)


def _used(text: str, literals: Sequence[tuple[str, str]]) -> tuple[str, tuple[tuple[str, str], ...]]:
    """``text`` and those of ``literals`` that are in it, numbered anew: a parameter that is nowhere has no type."""
    found = sorted({int(each) for each in _MARK.findall(text)})
    return _MARK.sub(lambda m: f"\x00{found.index(int(m[1]))}\x00", text), tuple([literals[n] for n in found])


def quoted(text: str, sql_type: str) -> str:
    if sql_type == "int4":
        return f"({text})"
    inner = text.replace("'", "''")
    return f"'{inner}'::{sql_type}"


@dataclass(frozen=True)
class World:
    """Tables with their columns' types and their rows as texts (``None`` is NULL), in the order of insertion."""

    tables: Mapping[str, Mapping[str, str]]
    rows: Mapping[str, Sequence[tuple[str | None, ...]]] = field(repr=False)


def world(draw: random.Random, rows_max: int = 8) -> World:
    tables, rows = {}, {}
    whole = draw.random() < 0.4  # what the evaluator in process takes most of
    for name in ("ra", "rb"):
        picked = [draw.choice(sorted(POOLS)) for _ in range(draw.randint(2, 4))]
        kinds = ["int4", draw.choice(("text", "int8", "numeric(6,2)", "float8")), *picked]
        if whole:
            kinds = ["int4", "int8", "int4", draw.choice(("int2", "int4", "text"))]
        tables[name] = {f"{name[1]}{i}": kind for i, kind in enumerate(kinds)}
        rows[name] = [row(draw, kinds) for _ in range(draw.choice((0, 1, rows_max // 2, rows_max)))]
    return World(tables, rows)


def row(draw: random.Random, kinds: Sequence[str]) -> tuple[str | None, ...]:
    return tuple(None if draw.random() < NULLS else draw.choice(POOLS[kind]) for kind in kinds)


class Queries:
    """Queries over the tables of a world."""

    def __init__(self, draw: random.Random, of: World) -> None:
        self.draw = draw
        self.tables = of.tables
        self._literals: list[tuple[str, str]] = []
        self._around: list[list[tuple[str, str]]] = []
        """What may be named of the queries around, the outermost first."""
        self._aliases = 0

    def query(self, plain: bool | None = None) -> Query:
        self._literals, self._aliases = [], 0
        plain = self.draw.random() < 0.5 if plain is None else plain
        self.plain, self.exact = plain, True
        text, ordered = self._plain() if plain else self._rich()
        return Query(*_used(text, self._literals), ordered, plain, self.exact)

    def predicate(self, table: str) -> Query:
        """A condition over ``table``, as ``SELECT * … WHERE``."""
        self._literals, self.plain = [], True
        return Query(*_used(self.boolean(self._columns(table, table), 3), self._literals), False, True)

    # -- whole queries ------------------------------------------------------------------------------------------------

    def _columns(self, table: str, alias: str) -> list[tuple[str, str]]:
        return [(f"{alias}.{name}", kind) for name, kind in self.tables[table].items()]

    def _plain(self) -> tuple[str, bool]:
        table = self.draw.choice(sorted(self.tables))
        columns = self._columns(table, table)
        where = f" where {self._keyed(columns)}" if self.draw.random() < 0.9 else ""
        pick = self.draw.random()
        if pick < 0.25:
            calls = [self._portable_call(columns) for _ in range(self.draw.randint(1, 3))]
            listed = ", ".join(f"{call} as o{i}" for i, call in enumerate(calls))  # a view's columns have a name each
            return f"select {listed} from {table}{where}", True
        outputs = [self._output(columns) for _ in range(self.draw.randint(1, 4))]
        listed = ", ".join(f"{text} as o{i}" for i, (text, _) in enumerate(outputs))
        if pick < 0.6 or any(kind in UNORDERED for _, kind in outputs):
            return f"select {listed} from {table}{where}", False
        return f"select {listed} from {table}{where}{self._tail(len(outputs))}", True

    def _keyed(self, columns: list[tuple[str, str]]) -> str:
        """A condition that often says what a column is."""
        if self.draw.random() < 0.5:
            column, kind = self.draw.choice(columns)
            said = f"{column} = {self.literal(self._near(kind))}"
            return said if self.draw.random() < 0.5 else f"{said} and {self.boolean(columns, 1)}"
        return self.boolean(columns, self.draw.randint(0, 3))

    def _portable_call(self, columns: list[tuple[str, str]]) -> str:
        column, kind = self.draw.choice(columns)
        calls = ["count(*)", f"count({column})"]
        if kind not in UNORDERED | {"bool", "bytea"}:
            calls += [f"min({column})", f"max({column})"]
        if kind.startswith(("int2", "int4", "numeric")) and not kind.endswith("[]"):
            calls += [f"sum({column})"]
        return self.draw.choice(calls)

    def _tail(self, outputs: int) -> str:
        """ORDER BY every output, so that what is taken is decided."""
        keys = self.draw.sample(range(1, outputs + 1), outputs)
        nulls = ("", " nulls first", " nulls last")
        order = ", ".join(f"{k}{self.draw.choice(('', ' desc'))}{self.draw.choice(nulls)}" for k in keys)
        limit = self.draw.choice(("", f" limit {self.draw.randint(0, 4)}", f" offset {self.draw.randint(0, 3)}"))
        return f" order by {order}{limit}"

    def _rich(self) -> tuple[str, bool]:
        shapes = (self._joined, self._grouped, self._set, self._derived, self._distinct, self._windowed)
        text, kinds = self.draw.choice(shapes)()
        if any(kind in UNORDERED for kind in kinds) or self.draw.random() < 0.4:
            return text, False
        return f"select * from ({text}) as whole{self._tail(len(kinds))}", True

    def _from(self) -> tuple[str, list[tuple[str, str]]]:
        """A FROM clause and what is in sight."""
        first = self._alias()
        table = self.draw.choice(sorted(self.tables))
        columns = self._columns(table, first)
        if self.draw.random() < 0.4:
            return f"{table} as {first}", columns
        second, other = self._alias(), self.draw.choice(sorted(self.tables))
        more = self._columns(other, second)
        pair = self._pair(columns, more)
        on = f"{pair[0]} = {pair[1]}" if pair and self.draw.random() < 0.8 else self.boolean(columns + more, 1)
        if self.draw.random() < 0.3:
            on = f"{on} and {self.boolean(columns + more, 1)}"
        kind = self.draw.choice(("join", "join", "left join", "right join", "full join", "cross join", ","))
        if kind == "full join" and not (pair and on == f"{pair[0]} = {pair[1]}"):
            kind = "left join"  # Postgres has FULL JOIN by equality only
        if kind in ("cross join", ","):
            return f"{table} as {first} {kind} {other} as {second}", columns + more
        return f"{table} as {first} {kind} {other} as {second} on {on}", columns + more

    def _pair(self, left: list[tuple[str, str]], right: list[tuple[str, str]]) -> tuple[str, str] | None:
        pairs = [(a, b) for a, x in left for b, y in right if y in self._comparable(x)]
        return self.draw.choice(pairs) if pairs else None

    def _alias(self) -> str:
        self._aliases += 1
        return f"x{self._aliases}"

    def _named(self, outputs: list[tuple[str, str]]) -> tuple[str, list[str]]:
        return ", ".join(f"{text} as o{i}" for i, (text, _) in enumerate(outputs)), [kind for _, kind in outputs]

    def _where(self, columns: list[tuple[str, str]]) -> str:
        return f" where {self.boolean(columns, 2)}" if self.draw.random() < 0.7 else ""

    def _joined(self) -> tuple[str, list[str]]:
        source, columns = self._from()
        listed, kinds = self._named([self.value(columns, 2) for _ in range(self.draw.randint(1, 4))])
        return f"select {listed} from {source}{self._where(columns)}", kinds

    def _distinct(self) -> tuple[str, list[str]]:
        source, columns = self._from()
        outputs = [o for o in (self.value(columns, 1) for _ in range(3)) if o[1] not in ("interval", "jsonb")]
        listed, kinds = self._named(outputs or [(self.boolean(columns, 1), "bool")])
        return f"select distinct {listed} from {source}{self._where(columns)}", kinds

    def _grouped(self) -> tuple[str, list[str]]:
        source, columns = self._from()
        keys = [c for c in self.draw.sample(columns, min(len(columns), self.draw.randint(0, 2))) if c[1] != "interval"]
        calls = [self._call(columns) for _ in range(self.draw.randint(1, 3))]
        listed, kinds = self._named([*keys, *calls])
        text = f"select {listed} from {source}{self._where(columns)}"
        if keys:
            names = ", ".join(key for key, _ in keys)
            if self.draw.random() < 0.4 and all(kind != "jsonb" for _, kind in keys):
                names = self.draw.choice((f"rollup ({names})", f"cube ({names})", f"grouping sets (({names}), ())"))
            text += f" group by {names}"
        elif self.draw.random() < 0.2:
            text += " group by ()"
        if self.draw.random() < 0.3:
            text += f" having count(*) {self.draw.choice(('>', '<=', '='))} {self.draw.randint(0, 3)}"
        return text, kinds

    def _call(self, columns: list[tuple[str, str]]) -> tuple[str, str]:
        column, kind = self.draw.choice(columns)
        calls = [("count(*)", "int8"), (f"count({column})", "int8")]
        if kind != "interval":
            calls.append((f"count(distinct {column})", "int8"))
        if kind not in UNORDERED | {"bool", "bytea", "float4", "float8"}:
            calls += [(f"min({column})", kind), (f"max({column})", kind)]
        if kind.startswith(("int2", "int4", "numeric")) and not kind.endswith("[]"):
            calls += [(f"sum({column})", "numeric"), (f"avg({column})", "numeric")]
        if kind == "bool":
            calls += [(f"bool_and({column})", "bool"), (f"bool_or({column})", "bool")]
        call, result = self.draw.choice(calls)
        if self.draw.random() < 0.25:
            call += f" filter (where {self.boolean(columns, 1)})"
        return call, result

    def _set(self) -> tuple[str, list[str]]:
        source, columns = self._from()
        kinds = [self.draw.choice([k for _, k in columns if k not in ("interval", "jsonb")] or ["bool"])]
        kinds = ["int4" if all(k != kinds[0] for _, k in columns) else kinds[0]]

        def branch() -> str:
            origin, sight = self._from()
            (text, _) = self._of(sight, kinds[0], 1)
            return f"select {text} as o0 from {origin}{self._where(sight)}"

        word = self.draw.choice(("union", "union all", "except", "intersect"))
        return f"({branch()}) {word} ({branch()})", kinds

    def _derived(self) -> tuple[str, list[str]]:
        inner, kinds = self.draw.choice((self._joined, self._grouped, self._distinct))()
        name = self._alias()
        sight = [(f"{name}.o{i}", kind) for i, kind in enumerate(kinds)]
        listed, outer = self._named([self.value(sight, 1) for _ in range(2)])
        if self.draw.random() < 0.5:
            return f"with {name} as ({inner}) select {listed} from {name}{self._where(sight)}", outer
        return f"select {listed} from ({inner}) as {name}{self._where(sight)}", outer

    def _windowed(self) -> tuple[str, list[str]]:
        source, columns = self._from()
        column, kind = self.draw.choice(columns)
        part = [c for c, k in columns if k not in ("interval",)]
        over = f"partition by {self.draw.choice(part)}" if self.draw.random() < 0.7 else ""
        ordered = [c for c, k in columns if k not in UNORDERED]
        if ordered and self.draw.random() < 0.6:
            over += f" order by {self.draw.choice(ordered)}"
            call = self.draw.choice(("rank()", "dense_rank()", "count(*)", f"count({column})"))
        else:
            call = self.draw.choice(("count(*)", f"count({column})"))
        listed, kinds = self._named([(column, kind), (f"{call} over ({over})", "int8")])
        return f"select {listed} from {source}{self._where(columns)}", kinds

    # -- expressions --------------------------------------------------------------------------------------------------

    def literal(self, kind: str) -> str:
        if self.draw.random() < 0.05:
            return f"null::{kind}"
        self._literals.append((self.draw.choice(POOLS[kind]), kind))
        return f"\x00{len(self._literals) - 1}\x00"

    def _comparable(self, kind: str) -> tuple[str, ...]:
        return next((family for family in FAMILIES if kind in family), (kind,))

    def _near(self, kind: str) -> str:
        """``kind``, or another that compares with it."""
        return kind if kind not in POOLS or self.draw.random() < 0.5 else self.draw.choice(self._comparable(kind))

    def _output(self, columns: list[tuple[str, str]]) -> tuple[str, str]:
        if self.draw.random() < 0.75:
            return self.draw.choice(columns)
        if self.draw.random() < 0.5:
            return self.boolean(columns, 1), "bool"
        return self._number(columns)

    def _number(self, columns: list[tuple[str, str]]) -> tuple[str, str]:
        found = [(c, k) for c, k in columns if k in ("int2", "int4", "numeric(6,2)")]
        if not found:
            return self.draw.choice(columns)
        column, kind = self.draw.choice(found)
        if kind == "int2":
            return f"({column} - 1)", "int4"
        return f"({column} {self.draw.choice('+-*')} {self.draw.randint(1, 3)})", "numeric"

    def value(self, columns: list[tuple[str, str]], depth: int) -> tuple[str, str]:
        if depth == 0 or self.draw.random() < 0.5:
            return self.draw.choice(columns)
        pick = self.draw.random()
        if pick < 0.4:
            return self.boolean(columns, depth), "bool"
        if pick < 0.55:
            return self._number(columns)
        return self._of(columns, self.draw.choice([kind for _, kind in columns]), depth)

    def _of(self, columns: list[tuple[str, str]], kind: str, depth: int) -> tuple[str, str]:
        """Something of exactly ``kind``."""
        own = [column for column, k in columns if k == kind]
        if kind not in POOLS:
            return (self.draw.choice(own), kind) if own else ("null::int4", "int4")
        leaf = self.draw.choice(own) if own and self.draw.random() < 0.8 else self.literal(kind)
        if depth == 0:
            return leaf, kind
        other, _ = self._of(columns, kind, 0)
        forms: list[Callable[[], str]] = [
            lambda: leaf,
            lambda: f"coalesce({leaf}, {other})",
            lambda: f"case when {self.boolean(columns, depth - 1)} then {leaf} else {other} end",
            lambda: f"case when {self.boolean(columns, depth - 1)} then {leaf} end",
        ]
        if kind not in ("interval", "jsonb", "int4[]", "text[]"):
            forms.append(lambda: f"nullif({leaf}, {other})")
        if kind == "int4":
            forms.append(lambda: f"(array[{leaf}, {other}, 7])[{self._index(columns)}]")
        return self.draw.choice(forms)(), kind

    def _index(self, columns: list[tuple[str, str]]) -> str:
        ints = [c for c, k in columns if k == "int4"]
        return self.draw.choice(ints) if ints and self.draw.random() < 0.7 else str(self.draw.randint(0, 4))

    def boolean(self, columns: list[tuple[str, str]], depth: int) -> str:
        if depth > 0 and self.draw.random() < 0.6:
            a = self.boolean(columns, depth - 1)
            form = self.draw.choice(
                ("({a} and {b})", "({a} or {b})", "(not {a})", "({a} is true)", "({a} is not true)", "({a} is false)",
                 "({a} is unknown)", "({a} is not unknown)", "({a} is not false)")
            )  # fmt: skip
            return form.format(a=a, b=self.boolean(columns, depth - 1) if "{b}" in form else "")
        return self._test(columns)

    def _test(self, columns: list[tuple[str, str]]) -> str:
        column, kind = self.draw.choice(columns)
        if kind not in POOLS:
            return f"({column} is not null)"
        if kind == "bool" and self.draw.random() < 0.3:
            return column
        tests: list[Callable[[], str]] = [
            lambda: f"({column} is null)",
            lambda: f"({column} is not null)",
            lambda: f"({column} {self._operator(kind)} {self._other(columns, kind)})",
            lambda: f"({column} {self._operator(kind)} {self._other(columns, kind)})",
            lambda: f"({column} is{self._not()} distinct from {self._other(columns, kind)})",
            lambda: f"({column}{self._not()} in ({self._several(columns, kind)}))",
        ]
        if kind not in UNORDERED:
            symmetric = " symmetric" if self.draw.random() < 0.2 else ""
            tests.append(
                lambda: f"({column}{self._not()} between{symmetric} {self._other(columns, kind)} "
                f"and {self._other(columns, kind)})"
            )
        if kind in ("text", "varchar(6)", "char(4)"):
            tests.append(lambda: f"({column}{self._not()} like {self.draw.choice(_PATTERNS)})")
        if kind not in ("interval", "jsonb", "int4[]", "text[]") and not self.plain:
            tests += [lambda: self._quantified(column, kind, columns), lambda: self._in_rows(column, kind, columns)]
        return self.draw.choice(tests)()

    def _not(self) -> str:
        return " not" if self.draw.random() < 0.4 else ""

    def _operator(self, kind: str) -> str:
        return self.draw.choice(("=", "<>") if kind in UNORDERED else ("=", "=", "<>", "<", "<=", ">", ">="))

    def _other(self, columns: list[tuple[str, str]], kind: str) -> str:
        near = [column for column, k in columns if k in self._comparable(kind)]
        return self.draw.choice(near) if self.draw.random() < 0.3 else self.literal(self._near(kind))

    def _several(self, columns: list[tuple[str, str]], kind: str) -> str:
        return ", ".join(self._other(columns, kind) for _ in range(self.draw.randint(1, 3)))

    def _quantified(self, column: str, kind: str, columns: list[tuple[str, str]]) -> str:
        word = self.draw.choice(("any", "all"))
        if kind == "int4" and (arrays := [c for c, k in columns if k == "int4[]"]):
            return f"({column} {self._operator(kind)} {word} ({self.draw.choice(arrays)}))"
        elements = ", ".join(self._of(columns, kind, 0)[0] for _ in range(self.draw.randint(1, 3)))
        return f"({column} {self._operator(kind)} {word} (array[{elements}]))"

    def _in_rows(self, column: str, kind: str, columns: list[tuple[str, str]]) -> str:
        """A subquery of the same kind, which may look at the row around it."""
        if len(self._around) >= 2 or self._around and self.draw.random() < 0.5:
            return f"({column} is null)"
        self._around.append(columns)
        try:
            table, alias = self.draw.choice(sorted(self.tables)), self._alias()
            inner = self._columns(table, alias)
            own = [c for c, k in inner if k in self._comparable(kind)]
            where = self.boolean(inner, 1)
            if len(self._around) == 2 and self.draw.random() < 0.7 and (pair := self._pair(inner, self._around[0])):
                where += f" and {pair[0]} {self.draw.choice(('=', 'is distinct from'))} {pair[1]}"
            if not own:
                return f"({self._not()} exists (select 1 from {table} as {alias} where {where}))"
            if self.draw.random() < 0.3 and (pair := self._pair(inner, columns)):
                where += f" and {pair[0]} = {pair[1]}"
            rows = f"(select {self.draw.choice(own)} from {table} as {alias} where {where})"
            if self.draw.random() < 0.3:
                return f"({column} {self._operator(kind)} {self.draw.choice(('any', 'all'))} {rows})"
            return f"({column}{self._not()} in {rows})"
        finally:
            self._around.pop()


_PATTERNS = ("'a%'", "'%'", "'_'", "''", "'%\\%'", "'A'")
