"""What engines are told of a view, worked out from what its user meant.

The catalog keeps a view as its statement and what the names in it mean (:class:`catalog_log.objects.Definition`); every
process lowers that by its own code when it needs it, so that what is mended in lowering is mended for views that exist.
A view that cannot be lowered any more is an error for who reads it, and nobody else's.

What is lowered is the plan of one bound tree, plain views standing in it where they are named; passes over plans make
it less, and it is spelled as a tree again, which Spark's text is printed of.  Lowered views are remembered: a lowering
is a function of the view, of the relations that it names and of how the plain views among them are lowered, and holds
for as long as those are what they were.  Any thread may call.
"""

from __future__ import annotations

import logging
import threading
from collections import OrderedDict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

from sqlglot import exp

from catalog_log.objects import Column, Item, MaterializedView, Reference, Relation, SparkText, View
from journal.errors import InvalidUsage
from lower.spark.lowering import printed, spark_sql, spark_tree
from lower.spelled import NotSpelled, spelled
from plan import relations as r
from plan.asked_apart import asked_apart
from plan.columns import has_subqueries
from plan.compared import compared_as_columns, floats_by_decimals
from plan.folding import folded
from plan.inlining import inlined
from plan.joined_by import joined_by
from plan.limited import limited
from plan.named_below import named_below
from plan.nodes import walk
from sql.algebra.queries import Columns, plan_over
from sql.algebra.scope import NotPlanned
from sql.binding.bind import Bound, bind_kept, cast_outputs, first_branch, name_of, real_tables
from sql.objects.called import Objects
from sql.syntax import statements as st
from sql.syntax.parse import parse
from trees.budget import DEPTH_MAX, bounded, check_expanded, surveyed, too_complex
from trees.nodes import parse_spark, stand_in
from values.types import SqlType, parse_type

log = logging.getLogger(__name__)

INLINED_CHARS_MAX = 1 << 20
"""Texts of plain views in one query, as often as they are read there: as long as a statement may be."""

KEPT_CHARS_MAX = 8 * INLINED_CHARS_MAX
"""Lowered texts that are remembered, all together: those of some 20,000 everyday views, and of eight of the largest."""


VIEWS_DEEP_MAX = DEPTH_MAX
"""Plain views over each other: inlined, each is at least a level of the query's tree."""


KEPT_NODES_MAX = 200_000
"""Nodes of plans that are remembered, all together: some 100 MB (460 bytes a node, measured), those of some 3,000
everyday views.  A text is a tenth of its plan, so of most views only that is remembered, and a plan is made again when
somebody reads the view."""

TEXT_ALONE = "the catalog keeps its query as spark's text"
"""Why a view of a catalog of format 1 or 2 has no plan."""

LOWERING_COSTS = 12
"""A character of a view's statement takes as long to lower as so many of Spark's text take to read (measured: 9.5 to
12.8, of statements of 130 to 4,600 characters)."""


@dataclass(frozen=True, eq=False)
class Unplanned:
    """A bound tree that has no plan, and why.  Nobody changes it."""

    tree: exp.Expression
    why: str


class _Below(NamedTuple):
    """A plain view where it is read: its text, and what is stored of the relations in it, which plans have and texts
    do not."""

    text: str
    stored: Mapping[str, tuple[Column, ...]]


@dataclass(eq=False)
class _Lowered:
    """``text`` and ``query`` hold while the view, what it names and what the plain views among that say are these."""

    view: Item
    reads: tuple[Item | None, ...]
    inlined: tuple[_Below, ...]
    text: str
    query: r.Query | Unplanned | None
    """``None`` where it is not remembered any more."""
    nodes: int

    def holds(self, view: Item, reads: tuple[Item | None, ...], inlined: tuple[_Below, ...]) -> bool:
        # Values that did not change are mostly the same objects, and then nothing is compared.
        return self.view == view and self.reads == reads and self.inlined == inlined

    @cached_property
    def below(self) -> _Below:
        """As who reads it has it."""
        tables = [each for each in self.reads if isinstance(each, Relation) and not isinstance(each, View)]
        stored = {each.id: each.stored for each in tables}
        for each in self.inlined:
            stored.update(each.stored)
        return _Below(self.text, stored)


_kept: OrderedDict[str, _Lowered] = OrderedDict()
_kept_chars = 0
_planned: OrderedDict[str, _Lowered] = OrderedDict()
"""Those of ``_kept`` whose plans are remembered."""
_kept_nodes = 0
_lock = threading.Lock()


@bounded
def spark_query(view: View | MaterializedView, objects: Objects) -> str:
    """The query of ``view`` in Spark SQL: plain views inlined, relations named by item id, outputs called as the view's
    columns are and of their types.

    Raises ``InvalidUsage`` where it cannot be lowered (any more), 54001 where that is too much.
    """
    return view.query.sql if isinstance(view.query, SparkText) else _lowered_whole(view, objects).text


@bounded
def planned_query(view: View | MaterializedView, objects: Objects) -> r.Query | str:
    """The same query as a plan; or why it has none.  Raises as :func:`spark_query`."""
    if isinstance(view.query, SparkText):
        return TEXT_ALONE
    found = _held_query(view, objects)
    return f"its query has no plan ({found.why})" if isinstance(found, Unplanned) else found


def _bound_query(view: View, objects: Objects) -> exp.Expression | None:
    """The same as a bound tree, which is the caller's; ``None`` where only Spark's text of it is known."""
    if isinstance(view.query, SparkText):
        return None
    found = _held_query(view, objects)
    return found.tree.copy() if isinstance(found, Unplanned) else spelled(found.relation, found.names)


def _held_query(view: View | MaterializedView, objects: Objects) -> r.Query | Unplanned:
    found = _lowered_whole(view, objects)
    query = found.query
    if query is None:
        objects.spend(LOWERING_COSTS * len(view.create_sql))
        _, query = _made(view, objects)
        _remember(view.id, found, query)
    else:
        with _lock:
            if view.id in _planned:
                _planned.move_to_end(view.id)
    return query


def _lowered_whole(view: View | MaterializedView, objects: Objects) -> _Lowered:
    """``view`` lowered, and the plain views that it reads before it."""
    below: dict[str, _Below] = {}
    for each in _with_views_below(view, objects):
        found = _lowered(each, objects, below)
        below[each.id] = found.below
    return found


def keep_lowered(view: View | MaterializedView, bound: Bound, objects: Objects) -> None:
    """Lower ``view``, whose query was just bound, so that whoever reads it next does not have to.  Raises as
    :func:`spark_query`."""
    if not isinstance(view.query, SparkText):
        _keep(view, objects, {}, *_named(bound, view.columns, objects))


def reads_column(view: View | MaterializedView, relation_id: str, column_id: int, objects: Objects) -> bool:
    """Whether ``view`` reads that column of a relation that it names: by its name, by ``*`` or by NATURAL.

    It does not exactly if it means the same query where the relation never had the column.
    """
    if isinstance(view.query, SparkText):
        return True  # nothing is known of it

    def without(object_id: str) -> Item | None:
        item = objects.item(object_id)
        if object_id != relation_id or not isinstance(item, Relation):
            return item
        return replace(item, columns=tuple(column for column in item.columns if column.id != column_id))

    references = tuple(
        _without(each, column_id) if each.relation_id == relation_id else each for each in view.query.references
    )
    narrower = replace(view, query=replace(view.query, references=references))
    objects.spend(2 * LOWERING_COSTS * len(view.create_sql))
    try:
        here = view_query(view)
        there = here.copy()
        for each in view.query.references:
            if each.relation_id == relation_id and column_id in each.column_ids:
                _leave_alias_out(there, each, each.column_ids.index(column_id))
        without_it = bound_as(narrower, there, Objects(without, objects.spend))
        return _by_name(without_it.tree) != _by_name(bound_as(view, here, objects).tree)
    except InvalidUsage:
        return True


def _by_name(tree: exp.Expression) -> str:
    """The text of a bound query, relations as they are named in it: what stands in their places lists all columns of
    one, and so does what calls them otherwise, whoever reads them."""
    tree = tree.copy()
    for table in tree.find_all(exp.Table):
        if table.args.get("alias") is not None:
            table.args["alias"].set("columns", None)
    return spark_sql(tree)


def _leave_alias_out(query: exp.Expression, reference: Reference, place: int) -> None:
    """Of ``relation AS r (a, b, …)`` what calls the column at ``place``."""
    for table in real_tables(query):
        alias = table.args.get("alias")
        if name_of(table).parts == reference.name and alias is not None and place < len(alias.columns):
            alias.set("columns", [each for at, each in enumerate(alias.columns) if at != place])


def _without(reference: Reference, column_id: int) -> Reference:
    left = [(name, i) for name, i in zip(reference.columns, reference.column_ids, strict=True) if i != column_id]
    return replace(reference, columns=tuple(name for name, _ in left), column_ids=tuple(i for _, i in left))


def named_query(bound: Bound, columns: tuple[Column, ...], objects: Objects) -> str:
    """A view's query in Spark SQL, its outputs called as engines know ``columns``."""
    return _named(bound, columns, objects)[0]


def _named(bound: Bound, columns: tuple[Column, ...], objects: Objects) -> tuple[str, r.Query | Unplanned]:
    """The same, and the plan that it is printed of."""
    tree = inline_views(bound.tree, bound.relations, objects)
    first = first_branch(tree)
    outputs = [(each.alias_or_name, column.stored_as) for each, column in zip(first.expressions, columns, strict=False)]
    if any(one != other for one, other in outputs):
        tree = _called(exp.Subquery(this=tree), outputs)
    told, query = planned_as(tree, {}, objects)
    in_spark = spark_tree(told)
    surveyed(in_spark, ())  # as the gate before Spark does (sql/views/spark_gate.py), of what is taken later
    text = printed(in_spark)
    if isinstance(query, Unplanned):
        parse_spark(text)  # of which there is nothing else, so that is what the gate reads
        for node in tree.walk():  # its places in a statement that is not the reader's
            if node._meta is not None:
                node._meta = {key: value for key, value in node._meta.items() if key not in _PLACES} or None
    return text, query


def planned_as(
    tree: exp.Expression, params: Mapping[int, SqlType], objects: Objects
) -> tuple[exp.Expression, r.Query | Unplanned]:
    """What the plan of ``tree`` says, and that plan: nothing is left of how a query was written, and every engine is
    told what operators see.  Itself, and why, where something in it is known as Spark's text alone, whose words mean
    what Spark means, or has no plan."""
    if (columns := columns_read(tree, objects)) is None:
        return tree, Unplanned(tree, TEXT_ALONE)
    try:
        query = plan_over(tree, columns, params)
        relation = folded(inlined(query.relation))
        if has_subqueries(relation):
            relation = floats_by_decimals(compared_as_columns(relation))
            relation = named_below(asked_apart(joined_by(relation)))
        return spelled(limited(relation), query.names), r.Query(relation, query.names)
    except (NotPlanned, NotSpelled) as why:
        log.info("a query is told as it was bound", extra={"why": str(why)})
        return tree, Unplanned(tree, str(why))


def columns_read(tree: exp.Expression, objects: Objects) -> Columns | None:
    """The columns of the relations that ``tree`` reads, as they are stored; ``None`` where something in it is known as
    Spark's text alone."""
    tables = list(tree.find_all(exp.Table))
    if any(table.meta.get(_TEXT_ALONE) for table in tables):
        return None
    items = {table.name: objects.item(table.name) for table in tables}
    return {i: tuple(item.stored) for i, item in items.items() if isinstance(item, Relation)}


_PLACES = frozenset({"start", "end", "line", "col"})


def inline_views(tree: exp.Expression, relations: Mapping[str, Relation], objects: Objects) -> exp.Expression:
    """``tree`` with every plain view's query in its place, and over relations of which engines know columns by other
    names one that calls them as they are called now: a copy, unless it is the same.  54001 where that is too much."""
    if not any(_stands_for_another(table, relations) for table in tree.find_all(exp.Table)):
        if tree.find(exp.With) is not None:
            check_expanded(tree)
        return tree
    holder = exp.Paren(this=tree.copy())
    inlined = 0
    for table in list(holder.find_all(exp.Table)):
        if not _stands_for_another(table, relations):
            continue
        item = relations[table.name]
        outputs = [(column.stored_as, column.name) for column in item.columns]
        if isinstance(item, View):
            text = spark_query(item, objects)
            inlined += len(text)
            if inlined > INLINED_CHARS_MAX:
                raise too_complex(f"the views that it reads are more than {INLINED_CHARS_MAX} characters")
            objects.spend(len(text))
            below = _bound_query(item, objects)
            source: exp.Expression = _known_as_text(text) if below is None else below
            if _calls_otherwise(item):
                source = _called(exp.Subquery(this=source), outputs)
        else:
            source = _called(exp.Table(this=table.this.copy()), outputs)
        stand_in(table, source)
    surveyed(holder.this, ())
    check_expanded(holder.this)
    return holder.this


_TEXT_ALONE = "text alone"
"""Noted on the relations that a query of Spark's reads of which nothing else is known."""


def _known_as_text(text: str) -> exp.Expression:
    tree = parse_spark(text)
    for table in tree.find_all(exp.Table):
        table.meta[_TEXT_ALONE] = True
    return tree


def _stands_for_another(table: exp.Table, relations: Mapping[str, Relation]) -> bool:
    """Whether something else goes where ``table`` stands."""
    item = None if table.db else relations.get(table.name)
    if item is None:
        return False
    # A relation that its query calls the columns of has those columns, also once it has got more.
    listed = table.args.get("alias") is not None and bool(table.args["alias"].columns)
    return listed or isinstance(item, View) or _calls_otherwise(item)


def _calls_otherwise(item: Relation) -> bool:
    return any(column.stored_as != column.name for column in item.columns)


def _called(source: exp.Subquery | exp.Table, outputs: Iterable[tuple[str, str]]) -> exp.Select:
    """``source`` with each column called as the second of its names."""
    source.set("alias", exp.TableAlias(this=exp.to_identifier("_q")))
    chosen = [
        exp.Alias(
            this=exp.column(exp.to_identifier(one, quoted=True), table="_q"),
            alias=exp.to_identifier(other, quoted=True),
        )
        for one, other in outputs
    ]
    return exp.select(*chosen).from_(source)


def _lowered(view: View | MaterializedView, objects: Objects, below: Mapping[str, _Below]) -> _Lowered:
    """``below`` are the plain views that it reads, by their ids."""
    reads, inlined = _reads(view, objects, below)
    with _lock:
        found = _kept.get(view.id)
        if found is not None and found.holds(view, reads, inlined):
            _kept.move_to_end(view.id)
            return found
    objects.spend(LOWERING_COSTS * len(view.create_sql))
    try:
        return _keep(view, objects, below, *_made(view, objects))
    except InvalidUsage as error:
        raise InvalidUsage(
            f'view "{view.name}" cannot be planned: {error.message}',
            sqlstate=error.sqlstate,
            detail=error.detail,
            hint="create it anew, by a statement that is supported",
        ) from error


def _made(view: View | MaterializedView, objects: Objects) -> tuple[str, r.Query | Unplanned]:
    return _named(bound_as(view, view_query(view), objects), view.columns, objects)


def view_query(view: View | MaterializedView) -> exp.Expression:
    """The query of the statement that made ``view``, for whoever changes it."""
    statement = parse(view.create_sql)
    if not isinstance(statement, st.CreateView):
        raise InvalidUsage("its statement makes no view", sqlstate="42601")
    return statement.query


def bound_as(view: View | MaterializedView, query: exp.Expression, objects: Objects) -> Bound:
    """``query`` as that of ``view``."""
    bound = bind_kept(query, view.query.references, objects)
    if len(bound.columns) != len(view.columns):
        raise InvalidUsage(f"its query gives {len(bound.columns)} columns, not {len(view.columns)}", sqlstate="42P16")
    types = [parse_type(column.type) for column in view.columns]
    if types != [column.type for column in bound.columns]:  # what is kept of it is of the types that it had
        cast_outputs(bound.tree, types)
    return bound


def _keep(
    view: View | MaterializedView, objects: Objects, below: Mapping[str, _Below], text: str, query: r.Query | Unplanned
) -> _Lowered:
    global _kept_chars
    lowered = _Lowered(view, *_reads(view, objects, below), text, None, 0)
    with _lock:
        if (before := _kept.pop(view.id, None)) is not None:
            _kept_chars -= len(before.text)
        _kept[view.id] = lowered
        _kept_chars += len(text)
        while _kept and _kept_chars > KEPT_CHARS_MAX:
            _, gone = _kept.popitem(last=False)
            _kept_chars -= len(gone.text)
            _forget_plan(gone)
    _remember(view.id, lowered, query)
    return lowered


def _remember(view_id: str, lowered: _Lowered, query: r.Query | Unplanned) -> None:
    """Keep ``query`` with ``lowered``, if that is kept, instead of those that nobody asked for for longest."""
    global _kept_nodes
    nodes = sum(1 for _ in (query.tree.walk() if isinstance(query, Unplanned) else walk(query.relation)))
    with _lock:
        if (before := _planned.get(view_id)) is not None:
            _forget_plan(before)
        if _kept.get(view_id) is not lowered:
            return
        lowered.query, lowered.nodes = query, nodes
        _planned[view_id] = lowered
        _kept_nodes += nodes
        while _planned and _kept_nodes > KEPT_NODES_MAX:
            _forget_plan(next(iter(_planned.values())))


def _forget_plan(lowered: _Lowered) -> None:
    """The lock is held."""
    global _kept_nodes
    if _planned.get(lowered.view.id) is lowered:
        del _planned[lowered.view.id]
        _kept_nodes -= lowered.nodes
        lowered.query = None


def _reads(
    view: View | MaterializedView, objects: Objects, below: Mapping[str, _Below]
) -> tuple[tuple[Item | None, ...], tuple[_Below, ...]]:
    """The relations that ``view`` names, and what is said by the plain views among them."""
    reads = tuple(objects.item(each) for each in view.depends_on)
    return reads, tuple(
        below[each.id] if each.id in below else _said(each, objects) for each in reads if isinstance(each, View)
    )


def _said(view: View, objects: Objects) -> _Below:
    # Of one that is known as Spark's text nothing has a plan that would need what is stored.
    return _Below(view.query.sql, {}) if isinstance(view.query, SparkText) else _lowered_whole(view, objects).below


def _with_views_below(view: View | MaterializedView, objects: Objects) -> list[View | MaterializedView]:
    """``view`` last, before it the plain views that it reads, each after those that it reads itself; none that is
    known as Spark's text, which is lowered as it is.

    Not recursive: views may be stacked deeper than Python's call stack.
    """
    done: dict[str, View | MaterializedView] = {}
    stack: list[View | MaterializedView] = [view]
    while stack:
        each = stack[-1]
        below = [objects.item(i) for i in each.depends_on if i not in done]
        missing = [b for b in below if isinstance(b, View) and not isinstance(b.query, SparkText)]
        if missing and len(stack) <= VIEWS_DEEP_MAX:
            stack.append(missing[0])
        elif missing:
            raise too_complex(f"it reads views that are stacked deeper than {VIEWS_DEEP_MAX}")
        else:
            done[each.id] = stack.pop()
    return list(done.values())
