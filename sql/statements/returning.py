"""RETURNING: what a statement gives of the rows that it wrote.  Pure.

Those rows are in this process: outputs that are columns are taken from them, and all others are worked out by a query
over them, as if they were a relation.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from sqlglot import exp

from catalog_log.objects import Column, Item, Table
from journal.errors import InvalidUsage
from journal.timestamps import CatalogTs
from sql.binding.bind import Bound, OutputType, bind_query, folded
from sql.binding.ctes import cte_of
from sql.objects.names import ImageLike, Names, column_types, name_parts
from sql.statements.plans import InsertPlan, Returning, SelectPlan
from sql.statements.sequence_calls import calls_in, of_query
from sql.syntax.query import Insert
from sql.syntax.values_list import Cells, Param
from sql.typing.rows_made import check_none
from trees.errors import grouping, unsupported
from trees.nodes import position
from values.types import SqlType

ROWS, AT = "tm_rows", "tm_at"
"""What the rows are called as a relation, and its last column, which says which row it is."""


def row_column(at: int) -> str:
    """What the relation's column is called that has the row's value at that place."""
    return f"r{at}"


def _quoted(name: str) -> exp.Column:
    return exp.column(exp.to_identifier(name, quoted=True), table=exp.to_identifier(ROWS, quoted=True))


@dataclass
class Bindings:
    """RETURNING bound.  ``beside`` are the columns of other relations that it names, as ``(relation, column)``."""

    bound: Bound
    beside: list[tuple[str, str]]
    _table: Table
    _called: str

    def planned(
        self, types_beside: Sequence[SqlType], params: dict[int, SqlType], number: int, catalog_ts: CatalogTs
    ) -> Returning:
        """The plan, where ``beside`` are of these types, and the statement has parameters up to ``number``."""
        kinds = [*column_types(self._table).values(), *types_beside]
        own = [(self._called, column.name) for column in self._table.columns]
        place = {key: at for at, key in enumerate([*own, *self.beside])}
        outputs = [each.unalias() for each in self.bound.tree.expressions]
        plain = [place.get(_key(each.this)) if _is_column(each) else None for each in outputs]
        if None not in plain:
            return Returning(self.bound.columns, tuple(at for at in plain if at is not None))
        tree = exp.Select(expressions=[each.copy() for each in self.bound.tree.expressions])
        for column in list(tree.find_all(exp.Column)):
            if _key(column) in place:  # and not of a subquery's own
                column.replace(_quoted(row_column(place[_key(column)])))
        tree.append("expressions", exp.alias_(_quoted(AT), AT, quoted=True))
        relation = exp.Table(this=exp.to_identifier(ROWS, quoted=True))
        relation.set("alias", exp.TableAlias(this=exp.to_identifier(ROWS, quoted=True)))
        tree.set("from_", exp.From(this=relation))
        read = _ctes_read(self.bound.tree, self.bound.tree.expressions)
        if read:
            queries = [each.copy() for each in self.bound.tree.ctes if any(each is one for one in read)]
            recursive = self.bound.tree.args["with_"].args.get("recursive")
            tree.set("with_", exp.With(expressions=queries, recursive=recursive))
        number_of_row = OutputType(AT, SqlType("int8"))
        row = [Column(row_column(at), str(kind)) for at, kind in enumerate(kinds)]
        query = SelectPlan(
            "given", tree, (*self.bound.columns, number_of_row), (ROWS,), (),
            {n: params.get(n, SqlType("text")) for n in range(1, number + 1)}, catalog_ts, volatile=True,
            columns_read={ROWS: (*row, Column(AT, str(number_of_row.type)))},
        )  # fmt: skip
        return Returning(self.bound.columns, query=query)


def bound_returning(
    outputs: Sequence[exp.Expression], source: exp.Select, table: Table, called: str, image: ImageLike, names: Names,
    declared: dict[int, SqlType] | None, beside: Collection[int], assigned: Sequence[SqlType] = (),
    where: str = "RETURNING",
) -> Bindings:  # fmt: skip
    """``outputs`` of RETURNING over what ``source`` has in FROM.  0A000 for subqueries that read relations, and calls
    of sequences in it.

    ``beside``: the parameters of the statement; ``assigned``: the types of what outputs are set to, which stand in
    another place than RETURNING: ``where``.
    """
    check_none(outputs, where)
    query = returning_query(outputs, source)
    _check_subqueries(query, where)
    check_outputs(query, image, names, where)
    bound = bind_query(query, image, names, declared, assigned=assigned, beside=beside)
    own = {column.name for column in table.columns}
    around = _aliases(query)
    columns = [c for each in bound.tree.expressions for c in each.find_all(exp.Column) if c.table in around]
    found = dict.fromkeys(map(_key, columns))
    others = [key for key in found if key[0] != called or key[1] not in own]
    return Bindings(bound, others, table, called)


def of_insert(
    s: Insert, plan: InsertPlan, image: ImageLike, names: Names, declared: dict[int, SqlType]
) -> tuple[Returning, dict[int, SqlType]]:
    """RETURNING of an INSERT whose rows ``plan`` makes, and the types of its parameters, of which ``declared`` are
    known."""
    outputs = s.returning or ()
    parts = target_parts(s, plan.table, image)
    target = exp.Table(**dict(zip(("this", "db", "catalog"), reversed(parts), strict=False)))
    target.set("alias", exp.TableAlias(this=exp.to_identifier(s.called, quoted=True)))
    source = exp.Select(from_=exp.From(this=target), with_=s.with_)
    bindings = bound_returning(
        outputs, source, plan.table, s.called, image, names, declared,
        {*plan.params, *declared},
    )  # fmt: skip
    params = bindings.bound.params
    known = {**plan.params, **params}
    return bindings.planned((), known, max(known, default=0), plan.catalog_ts), params


def target_parts(s: Insert, table: Item, image: ImageLike) -> list[exp.Identifier]:
    """The name of an INSERT's table, which is never that of a query of its WITH."""
    parts = s.table.parts if s.with_ is None else name_parts(image, table)
    return [exp.to_identifier(part, quoted=True) for part in parts]


def numbers_given(s: Insert) -> set[int]:
    """The parameters in the rows of an INSERT."""
    if isinstance(s.source, Cells):
        return {cell.number for row in s.source.rows for cell in row if isinstance(cell, Param)}
    return set() if s.source is None else numbers_in(s.source)


def numbers_in(tree: exp.Expression) -> set[int]:
    """The parameters in it."""
    found = (each.this for each in tree.find_all(exp.Parameter))
    return {int(each.this) for each in found if isinstance(each, exp.Literal) and each.this.isdigit()}


def returning_query(outputs: Sequence[exp.Expression], source: exp.Select) -> exp.Select:
    """``outputs`` over what ``source`` has in FROM."""
    query = exp.Select(expressions=[each.copy() for each in outputs])
    for key in ("from_", "joins", "laterals", "with_"):
        value = source.args.get(key)
        if value:
            query.set(key, [each.copy() for each in value] if isinstance(value, list) else value.copy())
    return query


def _check_subqueries(query: exp.Select, where: str) -> None:
    """0A000 for subqueries that read relations, which nobody is asked for here, and for those in which something is
    called as what is around them."""
    around = _aliases(query)
    for output in query.expressions:
        sub = output.find(exp.Query, exp.Subquery, exp.Exists)
        if sub is None:
            continue
        within = [output, *_ctes_read(query, [output])]
        sources = [each for part in within for each in part.find_all(exp.Table, exp.Subquery, exp.Values, exp.Lateral)]
        tables = [each for each in sources if isinstance(each, exp.Table) and isinstance(each.this, exp.Identifier)]
        if any(cte_of(each, folded) is None for each in tables):
            raise unsupported(f"a subquery in {where}", "ask for it in a statement of its own", position(sub))
        called = {each.alias or (each.name if isinstance(each, exp.Table) else "") for each in sources}
        if not {each.lower() for each in called}.isdisjoint(each.lower() for each in around):
            what = f"a subquery in {where} that calls something as a table of the statement is called"
            raise unsupported(what, "call it otherwise", position(sub))


def _aliases(query: exp.Select) -> set[str]:
    """What the relations in FROM are called."""
    sources = [query.args["from_"].this, *(each.this for each in query.args.get("joins") or ())]
    inner = [each for source in sources for each in source.find_all(exp.Table, exp.Subquery, exp.Values, exp.Lateral)]
    called = [each.args["alias"].this if each.args.get("alias") else each.this for each in inner]
    return {folded(each) for each in called if isinstance(each, exp.Identifier)}


def _ctes_read(query: exp.Select, parts: Sequence[exp.Expression]) -> list[exp.CTE]:
    """The WITH queries of ``query`` that ``parts`` of it read, also through others."""
    found: list[exp.CTE] = []
    stack: list[exp.Expression] = list(parts)
    while stack:
        for table in stack.pop().find_all(exp.Table):
            cte = cte_of(table, folded)
            if cte is not None and cte in query.ctes and not any(cte is each for each in found):
                found.append(cte)
                stack.append(cte)
    return found


def check_outputs(query: exp.Select, image: ImageLike, names: Names, where: str = "RETURNING") -> None:
    """42803 for aggregates, 42P20 for windows; 0A000 for calls of sequences."""
    if calls_in(of_query(query, image, names)):
        raise unsupported(f"a sequence's value in {where}")
    check_each_row(query, where)


def check_each_row(query: exp.Select, where: str) -> None:
    """42803 for aggregates and 42P20 for windows of ``query`` itself among its outputs, which are of one row each."""
    for output in query.expressions:
        for found in output.find_all(exp.AggFunc, exp.Window):
            if found.find_ancestor(exp.Query) is not query:
                continue
            if isinstance(found, exp.Window):
                told = f"window functions are not allowed in {where}"
                raise InvalidUsage(told, sqlstate="42P20", position=position(found))
            if not isinstance(found.parent, (exp.Window, exp.Filter, exp.IgnoreNulls)):
                raise grouping(f"aggregate functions are not allowed in {where}", position(found))


def _is_column(output: exp.Expression) -> bool:
    return isinstance(output, exp.Cast) and isinstance(output.this, exp.Column)


def _key(column: exp.Column) -> tuple[str, str]:
    return column.table, column.name
