"""DELETE, UPDATE and TRUNCATE: the query that gives each row that goes, and how the row is made that comes for it.
Pure.

A row goes once, however many rows of USING or FROM match it.  Equal rows of a table cannot be told apart, yet each of
them counts.  So where other relations stand beside it the table's rows are numbered in the query that reads them, and
whoever runs it takes each number once; a DELETE that need not know which row it was that matched asks by EXISTS.
"""

from __future__ import annotations

from collections import abc
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from sqlglot import exp

from catalog_log.objects import Column, Item, Sequence, Table
from journal.errors import InvalidUsage
from journal.timestamps import CatalogTs
from lower.lookup.points import point
from plan.relations import Query
from sql.binding.bind import Bound, OutputType, bind_query, cast_outputs, unique_names
from sql.objects.names import ImageLike, Names, column_types, name_parts
from sql.objects.uniques import Unique, uniques_of
from sql.statements.assigned_columns import Set, assigned_columns
from sql.statements.assigning import assign_output, default_slot
from sql.statements.insert import table_named
from sql.statements.plans import ChangePlan, InsertPlan, Point, Returning, SelectPlan, Slot, TableChange
from sql.statements.returning import bound_returning, check_each_row, check_outputs, returning_query
from sql.statements.select import algebra_bound
from sql.statements.sequence_calls import calls_in, of_query
from sql.syntax import statements as st
from sql.typing.assign import assign
from sql.typing.rows_made import check_none
from trees.budget import bounded
from trees.errors import unsupported
from values.types import SqlType

NUMBER = "?number"
"""What the numbers of a table's rows are called in the query; with as many ``?`` before it as no column of the table
has."""


@bounded
def plan_change(
    s: st.Change | st.Truncate, image: ImageLike, names: Names, declared: dict[int, SqlType] | None = None
) -> ChangePlan:
    """Plan a change.  Raises 42P01, 42809, 42501, 42703, 42601, 42804, 428C9 and the errors of its query."""
    if isinstance(s, st.Truncate):
        return _truncate(s, image, names)
    return _Change(s, image, names, dict(declared or {})).planned()


def _truncate(s: st.Truncate, image: ImageLike, names: Names) -> ChangePlan:
    changes: dict[str, TableChange] = {}
    for name in s.tables:
        parts = [exp.to_identifier(part, quoted=True) for part in name.parts]
        table = exp.Table(**dict(zip(("this", "db", "catalog"), reversed(parts), strict=False)))
        rows = exp.Select(expressions=[exp.Literal.number(1)], from_=exp.From(this=table))
        change = _Change(st.Delete(name, rows, None), image, names, {}).planned().changes[0]
        changes.setdefault(change.table.id, change)
    owned = [each for i in changes for each in image.dependents(i) if s.restart and isinstance(each, Sequence)]
    restarts = tuple([(each.id, each.start) for each in owned if each.owner is not None])
    return ChangePlan(tuple(changes.values()), {}, CatalogTs(image.upper - 1), restarts=restarts)


class _Change:
    """One table's."""

    def __init__(self, s: st.Change, image: ImageLike, names: Names, declared: dict[int, SqlType]) -> None:
        self._s = s
        self._names = names
        self._declared = declared
        self._table = table_named(s.table, image, names)
        self._image = image
        self._types = tuple(column_types(self._table).values())
        self._stored, self._seen = _as_read(self._table)
        self._number = _unlike(NUMBER, [column.name for column in self._seen])
        target = s.rows.args["from_"].this
        self._called = _folded(target.args["alias"].this) if target.args.get("alias") else s.table.last
        if len(s.table.parts) == 1 and s.table.last in [_folded(each.args["alias"].this) for each in s.rows.ctes]:
            self._s = s = replace(s, rows=s.rows.copy())  # what is changed is never a query of WITH
            s.rows.args["from_"].this.set("db", exp.to_identifier(name_parts(image, self._table)[0], quoted=True))
        self._numbers = _parameters([s.rows, *(s.returning or ())])

    def planned(self) -> ChangePlan:
        s, image = self._s, self._image
        if isinstance(s, st.Update):
            check_each_row(s.rows, "UPDATE")
            check_none(s.rows.expressions, "UPDATE")
        check_none(s.returning or (), "RETURNING")
        self._check_columns()
        sets = self._sets()
        inside = isinstance(s, st.Delete) and s.returning is not None
        returning = None
        if s.returning is not None and not inside:
            returning = bound_returning(
                s.returning, s.rows, self._table, self._called, image, self._names, self._declared, self._numbers
            )
            self._declared |= {n: kind for n, kind in returning.bound.params.items() if n not in self._declared}
        query, numbered = self._query(sets, () if returning is None else returning.beside, inside)
        assigned = [self._types[each.index] for each in sets if each.value is not None]
        seen = replace(self._table, columns=self._seen, dropped=())
        bound = bind_query(
            query, _With(image, self._table, seen), self._names, self._declared, assigned=assigned,
            beside=self._numbers,
        )  # fmt: skip
        if bound.system:
            raise unsupported(f"{s.tag} by what system relations say", "ask them first, and name the values")
        if inside:
            self._hide(bound, len(sets) + len(self._stored), numbered)
        params = self._parameters(bound, {} if returning is None else returning.bound.params)
        self._assign(bound, sets)
        old, beside = len(assigned), len(assigned) + len(self._stored)
        plan, algebra = algebra_bound(bound, image, self._names)
        plan = replace(plan, columns=bound.columns, params=params)
        if self._table.dropped:
            plan = replace(plan, lookup=None, one_row=None)
        new = self._new(plan, sets, old) if isinstance(s, st.Update) else None
        at = len(bound.columns) - 1 if numbered else None
        uniques = uniques_of(self._table, image)
        at_key = self._point(algebra, params, uniques) if uniques and not self._table.dropped else None
        change = TableChange(self._table, plan, self._stored, old, beside, at, new, uniques, at_key)
        told = None
        if inside:
            end = len(bound.columns) - numbered
            told = Returning(bound.columns[beside:end], tuple(range(len(self._types), len(self._types) + end - beside)))
        elif returning is not None:
            kinds = [column.type for column in bound.columns[beside : beside + len(returning.beside)]]
            told = returning.planned(kinds, params, max(params, default=0), plan.catalog_ts)
        return ChangePlan((change,), params, plan.catalog_ts, told, plan.literals)

    def _point(
        self, query: Query | None, params: Mapping[int, SqlType], uniques: abc.Sequence[Unique]
    ) -> Point | None:
        """The key of which ``query`` reads the row alone."""
        if query is None:
            return None
        found = point(query.relation, self._table, [each.index for each in uniques], params)
        if found is None:
            return None
        index, key = found
        return Point(next(each for each in uniques if each.index == index), key)

    def _check_columns(self) -> None:
        """0A000 for what would see the columns that the table had, which are read along with each row that goes:
        ``*`` and NATURAL JOIN of the table, read once more."""
        rows = self._s.rows
        if not self._table.dropped or sum(_folded(t.this) == self._s.table.last for t in rows.find_all(exp.Table)) < 2:
            return
        stars = [each for each in rows.find_all(exp.Star) if not isinstance(each.parent, exp.Count)]
        natural = [each for each in rows.find_all(exp.Join) if each.args.get("method") == "NATURAL"]
        if stars or natural:
            what = "* or NATURAL JOIN of a table that lost columns, in a statement that changes it,"
            raise unsupported(what, "name the columns")

    # --- what is set

    def _sets(self) -> list[Set]:
        s = self._s
        if not isinstance(s, st.Update):
            return []
        return assigned_columns(s.assigned, s.rows.expressions, self._table, self._called, self._types)

    def _assign(self, bound: Bound, sets: abc.Sequence[Set]) -> None:
        """Cast what is set as an assignment does, and every output to what it is kept as."""
        place = 0
        for each in sets:
            if each.value is None:
                continue
            got, wanted = bound.columns[place].type, self._types[each.index]
            assign(exp.null(), got, wanted, self._table.columns[each.index].name, bound.zone)
            if got != wanted:
                assign_output(bound.tree, place, got, wanted, bound.zone)
            place += 1
        wanted = [self._types[each.index] for each in sets if each.value is not None]
        types = [*wanted, *(column.type for column in bound.columns[place:])]
        outputs = unique_names([column.name for column in bound.columns])
        cast_outputs(bound.tree, types, outputs)
        bound.columns = tuple([OutputType(c.name, kind) for c, kind in zip(bound.columns, types, strict=True)])

    def _new(self, query: SelectPlan, sets: abc.Sequence[Set], old: int) -> InsertPlan:
        """How rows are made that come in the places of others."""
        given = [each.index for each in sets if each.value is not None]
        changed = {each.index for each in sets}
        index_of = {column.id or column.name: at for at, column in enumerate(self._table.columns)}
        kept = [index_of.get(column.id or column.name) for column in self._stored]
        places = [*given, *(None if at in changed else at for at in kept)]
        places += [None] * (len(query.columns) - len(places))
        defaults: dict[int, Slot] = {
            each.index: default_slot(self._table, each.index, self._types[each.index])
            for each in sets if each.value is None
        }  # fmt: skip
        return InsertPlan(
            self._table, self._types, query.params, query.catalog_ts, query=query, query_columns=tuple(places),
            defaults=defaults, literals=query.literals,
        )  # fmt: skip

    # --- the query

    def _query(
        self, sets: abc.Sequence[Set], beside: abc.Sequence[tuple[str, str]], inside: bool
    ) -> tuple[exp.Expression, bool]:
        """The rows that go, as a query, and whether its last output numbers them."""
        s = self._s
        rows = s.rows.copy()
        old = [_column(self._called, column.name) for column in self._seen]
        outputs = [*(each.value.copy() for each in sets if each.value is not None), *old]
        outputs = [_named(each, f"?{at}") for at, each in enumerate(outputs)]
        outputs += [_named(_column(*key), f"?{len(outputs) + at}") for at, key in enumerate(beside)]
        if inside:
            check_outputs(returning_query(s.returning or (), s.rows), self._image, self._names)
            outputs += [each.copy() for each in s.returning or ()]
        by_exists = s.joined and isinstance(s, st.Delete) and not inside and not list(rows.find_all(exp.Lateral))
        numbered = s.joined and not by_exists
        if s.joined or inside:
            self._check_names(rows, [each.value for each in sets if each.value is not None])
        if by_exists:
            rows = _by_exists(rows)
        elif numbered:
            number = exp.Window(this=exp.RowNumber())
            target = rows.args["from_"].this
            every = [exp.Star(), _named(number, self._number)]
            inner = exp.Select(expressions=every, from_=exp.From(this=target.copy()))
            called = exp.TableAlias(this=exp.to_identifier(self._called, quoted=True))
            target.replace(exp.Subquery(this=inner, alias=called))
            outputs.append(_named(_column(self._called, self._number), self._number))
        rows.set("expressions", outputs)
        if calls_in(of_query(rows, self._image, self._names)):
            raise unsupported(f"a sequence's value in {s.tag}", "draw it by a SELECT before, and name it as a value")
        return rows, numbered

    def _check_names(self, rows: exp.Select, values: abc.Sequence[exp.Expression]) -> None:
        """The errors of the query as it is written, before there are names in it that are not the user's: of an UPDATE
        with the ``values`` that it sets."""
        flat = rows.copy()
        if values:
            flat.set("expressions", [each.copy() for each in values])
        if isinstance(self._s, st.Delete) and self._s.returning:
            flat.set("expressions", [each.copy() for each in self._s.returning])
        bind_query(flat, self._image, self._names, dict(self._declared), beside=self._numbers)

    def _hide(self, bound: Bound, first: int, numbered: bool) -> None:
        """Without the columns that no table of the user's has: ``*`` in RETURNING, which begins at output ``first``,
        takes them along."""
        ours = {self._number} | {column.name for column in self._seen} - {c.name for c in self._table.columns}
        last = len(bound.columns) - numbered

        def is_shown(at: int) -> bool:
            found = bound.tree.expressions[at].unalias()
            found = found.this if isinstance(found, exp.Cast) else found
            named = isinstance(found, exp.Column) and found.name in ours  # of the table, or of it once more
            return not named or not first <= at < last

        left = [at for at in range(len(bound.columns)) if is_shown(at)]
        bound.tree.set("expressions", [bound.tree.expressions[at] for at in left])
        bound.columns = tuple([bound.columns[at] for at in left])

    def _parameters(self, bound: Bound, others: dict[int, SqlType]) -> dict[int, SqlType]:
        known = {**others, **bound.params}
        for number in range(1, max(self._numbers, default=0) + 1):
            if number not in known:
                raise InvalidUsage(f"could not determine data type of parameter ${number}", sqlstate="42P18")
        return dict(sorted(known.items()))


def _by_exists(rows: exp.Select) -> exp.Select:
    """The rows of the first relation for which there is one of the others."""
    first, *rest = rows.args["joins"]
    inner = exp.Select(expressions=[exp.Literal.number(1)], from_=exp.From(this=first.this.copy()))
    if rest:
        inner.set("joins", [each.copy() for each in rest])
    if rows.args.get("where") is not None:
        inner.set("where", rows.args["where"].copy())
    outer = exp.Select(expressions=[], from_=rows.args["from_"].copy(), where=exp.Where(this=exp.Exists(this=inner)))
    if rows.args.get("with_") is not None:
        outer.set("with_", rows.args["with_"].copy())
    return outer


def _as_read(table: Table) -> tuple[tuple[Column, ...], tuple[Column, ...]]:
    """The columns of ``table`` as rows are written, those included that it had; and the same as a query sees them,
    which nobody can name who does not know these names."""
    if not table.dropped:
        return table.columns, table.columns
    gone = tuple([replace(c, name=f"?dropped {c.id}", field=c.stored_as) for c in table.dropped])
    return (*table.columns, *table.dropped), (*table.columns, *gone)


class _With:
    """``image`` with ``seen`` in the place of ``table``."""

    def __init__(self, image: ImageLike, table: Table, seen: Table) -> None:
        self._image, self._table, self._seen = image, table, seen

    def __getattr__(self, name: str) -> Any:
        return getattr(self._image, name)

    def item(self, item_id: str) -> Item | None:
        return self._or_seen(self._image.item(item_id))

    def item_by_name(self, schema_id: str, name: str) -> Item | None:
        return self._or_seen(self._image.item_by_name(schema_id, name))

    def _or_seen(self, item: Item | None) -> Item | None:
        return self._seen if item is not None and item.id == self._table.id else item


def _folded(name: exp.Identifier) -> str:
    return name.name if name.args.get("quoted") else name.name.lower()


def _unlike(name: str, names: abc.Sequence[str]) -> str:
    while name in names:
        name = f"?{name}"
    return name


def _column(relation: str, name: str) -> exp.Column:
    return exp.Column(this=exp.to_identifier(name, quoted=True), table=exp.to_identifier(relation, quoted=True))


def _named(value: exp.Expression, name: str) -> exp.Expression:
    return exp.Alias(this=value, alias=exp.to_identifier(name, quoted=True))


def _parameters(trees: abc.Sequence[exp.Expression]) -> range:
    numbers = [
        int(each.this.this) for tree in trees for each in tree.find_all(exp.Parameter)
        if isinstance(each.this, exp.Literal) and each.this.this.isdigit()
    ]  # fmt: skip
    return range(1, 1 + max(numbers, default=0))
