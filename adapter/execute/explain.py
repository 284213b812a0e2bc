"""EXPLAIN: what a statement is planned to do, at which timestamps it reads, how a view is maintained.

Pure: the executor brings the image and the oracle's state.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from adapter.execute.key_reads import listed_keys
from catalog_log.objects import Item, MaterializedView, Queried, Relation, View, ever, key_names
from catalog_log.settings import GEAR, cluster_setting
from collection.columns import sql_type
from controllers.compute.operators.built import Kept
from controllers.compute.operators.lowered import Lowered
from controllers.compute.operators.operator import Explained
from controllers.compute.peek_query import query_of
from controllers.peeks.peek import Considered, Peek
from journal.errors import InvalidUsage
from lower.lookup.among import AMONG
from lower.lookup.asked import Lookup
from lower.lookup.lists import Key
from oracle.state import OracleState
from plan.text import lines as plan_lines
from sql.binding.bind import Bound, inputs_of
from sql.objects.called import Objects
from sql.objects.given import Given, is_given
from sql.objects.identifiers import quoted
from sql.objects.names import ImageLike, Names, SystemRelation, cluster_named, full_name, relation
from sql.statements.as_of import plan_as_of
from sql.statements.changes import plan_change
from sql.statements.ddl import plan_ddl
from sql.statements.insert import plan_insert
from sql.statements.plans import SelectPlan
from sql.statements.select import bind_select, drawn_over_rows, plan_bound, plan_query, plan_select
from sql.statements.writing import plan_writing
from sql.syntax import statements as st
from sql.syntax.merge import Merge
from sql.syntax.query import AsOf
from sql.views.inlined import as_called, with_views
from sql.views.kept_views import TEXT_ALONE, planned_query, spark_query
from trees.budget import bounded
from trees.errors import wrong_kind
from values.types import SqlType, carried


class Explanation(NamedTuple):
    """The lines of an EXPLAIN; and what its query would ask of a cluster, if it asks one."""

    lines: list[str]
    peek: Peek | None = None


@bounded
def explain(statement: st.Explain, image: ImageLike, names: Names, state: OracleState | None) -> Explanation:
    """Raises what planning the statement raises."""
    inner = statement.statement
    if statement.mode == "strategy":
        return Explanation(_strategy(statement, image, names))
    gear = cluster_setting(image, GEAR, cluster_named(image, names.cluster).id)
    if isinstance(inner, st.Query) and inner.as_of is not None:
        return _historical(statement, inner, inner.as_of, image, names, state, gear)
    if isinstance(inner, st.Query):
        over_rows = drawn_over_rows(inner.ast, image, names)
        if over_rows is not None:
            if statement.mode == "timestamp":
                return Explanation(_timestamp(over_rows, image, state))
            return _explained(over_rows, image, gear)
        bound = bind_select(inner.ast, image, names) if statement.mode != "timestamp" else None
        if bound is not None:
            plan = plan_bound(bound, image, names)
            planned = ["Draws values of sequences, each time it runs"] if plan.draws else _planned(bound, image)
            return _explained(plan, image, gear, planned)
        plan = plan_select(inner.ast, image, names)
        return _explained(plan, image, gear) if statement.mode != "timestamp" else Explanation(
            _timestamp(plan, image, state)
        )
    if statement.mode == "timestamp":
        raise wrong_kind("this statement", "query")
    if isinstance(inner, st.Insert):
        made = plan_insert(inner, image, names)
        lines = [f"Insert into {made.table.name} ({made.table.id})"]
        if made.query is None:
            return Explanation([*lines, f"  Values: {len(made.rows)} row" + "s" * (len(made.rows) != 1)])
        below, peek = _explained(made.query, image, gear)
        return Explanation([*lines, *(f"  {line}" for line in below)], peek)
    if isinstance(inner, (st.Change, st.Truncate)):
        lines, peek = [], None
        for change in plan_change(inner, image, names).changes:
            word = {"UPDATE": "Update", "DELETE": "Delete"}.get(inner.tag, "Truncate")
            lines.append(f"{word} {change.table.name} ({change.table.id})")
            below, peek = _explained(change.query, image, gear)
            lines += [f"  {line}" for line in below]
        return Explanation(lines, peek)
    if isinstance(inner, st.Writing):
        return Explanation(_parts(inner, image, names, state))
    if isinstance(inner, st.DDL):
        plan = plan_ddl(inner, image, names)
        lines = [plan.tag] + [f"  {'put' if u.diff > 0 else 'remove'} {u.collection} {u.key}" for u in plan.updates]
        return Explanation(lines + [f"  notice: {notice.message}" for notice in plan.notices])
    raise wrong_kind("this statement", "statement that can be explained")


def _parts(inner: st.Writing, image: ImageLike, names: Names, state: OracleState | None) -> list[str]:
    """The statement itself, and in it the WITH queries that write, as PostgreSQL calls them; of MERGE its clauses."""
    *others, main = plan_writing(inner, image, names, {}).parts
    own = inner.own if isinstance(inner, Merge) else frozenset()
    lines = []
    for each in others:
        called = f"When {(each.part.name or '').split()[-1]}" if each.part.name in own else f"CTE {each.part.name}"
        below = explain(st.Explain("plan", each.statement), each.over(image), names, state).lines
        lines += [f"  {called}", *(f"    {line}" for line in below)]
    if isinstance(inner, Merge):
        return ["Merge", *lines]
    first, *rest = explain(st.Explain("plan", main.statement), main.over(image), names, state).lines
    return [first, *lines, *rest]


def _historical(
    statement: st.Explain, inner: st.Query, said: AsOf, image: ImageLike, names: Names, state: OracleState | None,
    gear: str,
) -> Explanation:  # fmt: skip
    """Of a query that says AS OF.  Its timestamp is as it was written: some are none before the query is run."""
    plan_as_of(said, image, names)
    plan, line = plan_query(inner, image, names), f"As of: {said.text}"
    if statement.mode == "timestamp":
        return Explanation([line, *_timestamp(plan, image, state)])
    bound = bind_select(inner.ast, image, names)
    lines, peek = _explained(plan, image, gear, () if bound is None else _planned(bound, image))
    return Explanation([line, *lines], peek)


def _explained(plan: SelectPlan, image: ImageLike, gear: str, planned: Sequence[str] = ()) -> Explanation:
    asked = plan.reads or plan
    by_cluster = asked.kind == "peek" and asked.lookup is None and asked.one_row is None
    return Explanation(_select(plan, image, gear, planned), _peek(asked) if by_cluster else None)


def _peek(plan: SelectPlan) -> Peek:
    """What a cluster would be asked, were its parameters NULL."""
    nothing = [None] * max(plan.params, default=0)
    text = plan.plan_text(nothing)
    sql = plan.spark_sql(nothing) if text is None else ""
    inputs = tuple([each for each in plan.inputs if not is_given(each)])
    return Peek("", sql, inputs, plan.catalog_ts, None, plan=text)


def files(found: Mapping[str, Considered | None], image: ImageLike) -> list[str]:
    """What a cluster says that it would read, by relation."""
    return ["Files, as the cluster has them now:",
            *(f"  {_label(image, i)} ({i}): {_files(each)}" for i, each in found.items())]  # fmt: skip


def _files(found: Considered | None) -> str:
    if found is None:
        return "nobody has read it there yet"
    beside = f"{found.beside:,} change" + "s" * (found.beside != 1)
    if not found.files:
        return f"none; {beside} in memory"
    read = f"{found.files - found.pruned} read ({found.bytes_read:,} bytes)"
    cached = ", kept in Spark's cache" if found.cached else ""
    return f"{found.files} considered, {found.pruned} pruned, {read}{cached}; {beside} beside them"


def _planned(bound: Bound, image: ImageLike) -> list[str]:
    """What is worked out, whoever does it; for a query that has no plan yet the reason, since it can be run all the
    same."""
    objects = Objects.of(image)
    try:
        made = with_views(bound.plan, objects)
    except InvalidUsage as error:
        return [f"Plan: {error.message}"]
    shown = as_called(made, objects, lambda item: f"{_label(image, item.id)} ({item.id})")
    return ["Plan:", *(f"  {line}" for line in plan_lines(shown))]


def _select(plan: SelectPlan, image: ImageLike, gear: str, planned: Sequence[str] = ()) -> list[str]:
    if plan.reads is not None:
        read = [f"  {line}" for line in _select(plan.reads, image, gear)]
        return ["Draws values of sequences, each time it runs, for the rows of:", *read]
    if plan.kind == "constant":
        return ["Constant: answered by the adapter", *planned]
    if plan.kind == "given":
        return [*(f"CTE Scan on {_label(image, each)}" for each in plan.inputs), *planned]
    if plan.kind == "catalog":
        return [f"System relations: answered by the adapter at catalog timestamp {plan.catalog_ts}"]
    lines = []
    found = plan.lookup or plan.one_row
    if found is not None:
        index = image.item(found.index_id)
        on = image.item(found.relation_id)
        listed = None if plan.lookup is None or index is None else listed_keys(image, found, index.cluster_id, None)
        lines.append(_looked_up(found, index, on, listed))
        made = ["evaluated by the adapter"] if plan.lookup is None else _residual(found.residual, on)
        lines += [f"  {line}" for line in made]
    else:
        lines += _asked(plan, gear)
    lines.append("Inputs: " + ", ".join(f"{_label(image, each)} ({each})" for each in plan.inputs))
    lines += [*planned, "Spark SQL:"]
    return lines + [f"  {line}" for line in plan.shown.splitlines()]


def _looked_up(
    found: Lookup, index: Item | None, on: Item | None, listed: tuple[Item, Item, Sequence[Key]] | None
) -> str:
    length, several = len(found.key), ""
    if listed is not None and listed[2]:
        on, index, keys = listed
        word, of, *_ = keys[0][-1]
        members = f"the keys in ${of}" if word == "param" and of in found.lists else f"{len(keys)} keys"
        length, several = len(keys[0]), f", one of {members}"
    columns = ", ".join(key_names(index, on)[:length]) if index else ""
    by = f" by {columns}{several}" if columns else ", whole relation"
    return f"Index lookup on {index.name if index else found.index_id}{by}"


def _asked(plan: SelectPlan, gear: str) -> list[str]:
    """Who answers it in a cluster whose gear is ``gear``."""
    found = query_of(_peek(plan)).here(gear)
    told = Explained(found if isinstance(found, str) else None, "what it reads is small", ())
    return ["Read by the cluster", f"  gear: {told.gear}"]


def _residual(residual: Mapping[str, object], relation: Item | None) -> list[str]:
    """What is done with rows that an index finds (of the form of :mod:`controllers.arrangements.residual`), as SQL."""
    ever_had = sorted(ever(relation), key=lambda column: column.id) if isinstance(relation, Relation) else []
    names = [quoted(column.name) for column in ever_had]
    lines = []
    if residual.get("filter") is not None:
        lines.append(f"filter: {_shown(residual['filter'], names)}")
    folded = residual.get("aggregate")
    outputs = [_shown(each, names) for each in (folded if folded is not None else residual.get("project") or ())]
    if outputs:
        lines.append(f"output: {', '.join(outputs)}")
    if order := residual.get("order_by"):
        lines.append("order by: " + ", ".join(f"{at + 1} {way} nulls {nulls}" for at, way, nulls in order))
    for name in ("limit", "offset"):
        if residual.get(name):
            lines.append(f"{name}: {_shown(residual[name], names)}")
    return lines


def _shown(node: object, names: Sequence[str]) -> str:
    if not isinstance(node, (list, tuple)):
        return str(node)
    kind, *rest = node
    if kind == "col":
        return names[rest[0]] if rest[0] < len(names) else f"column {rest[0] + 1}"
    if kind == "lit":
        return "NULL" if rest[0] is None else f"{quote_text(str(rest[0]))}::{rest[1]}"
    if kind == "param":
        return f"${rest[0]}"
    parts = [_shown(each, names) for each in rest if isinstance(each, (list, tuple))]
    if kind == "is_null":
        return f"{parts[0]} IS NULL"
    if kind == "not":
        return f"NOT ({parts[0]})"
    if kind == AMONG:
        return f"{parts[0]} = ANY ({parts[1]})"
    if kind == "in":
        return f"{parts[0]} IN ({', '.join(parts[1:])})"
    if kind in ("and", "or"):
        return "(" + f" {kind.upper()} ".join(parts) + ")"
    if kind == "count_star":
        return "count(*)"
    if len(parts) == 2:
        return f"({parts[0]} {kind} {parts[1]})"
    return f"{kind}({', '.join(parts)})"


def quote_text(text: str) -> str:
    """``text`` as a literal of SQL."""
    return "'" + text.replace("'", "''") + "'"


def _label(image: ImageLike, item_id: str) -> str:
    item = image.item(item_id)
    if isinstance(item, Given):
        return item.name
    return full_name(image, item) if item is not None else item_id


def _timestamp(plan: SelectPlan, image: ImageLike, state: OracleState | None) -> list[str]:
    lines = [f"catalog_ts: {plan.catalog_ts}", f"catalog upper: {image.upper}"]
    if state is not None:
        lines += [f"as_of: {state.last_ts} (newest of the table timeline at a barrier)", f"since: {state.since}"]
    for each in plan.inputs:
        item = image.item(each)
        change = state.last_change(each) if state is not None else None
        if item is not None and isinstance(item, MaterializedView):
            lines.append(f"input {_label(image, each)} ({each}): maintained by cluster {item.cluster_id}")
        else:
            lines.append(
                f"input {_label(image, each)} ({each}): "
                + (f"last changed at {change}" if change is not None else "never written")
                + (f", its past is kept from {state.kept[each]} on" if state and each in state.kept else "")
            )
    return lines


def _strategy(statement: st.Explain, image: ImageLike, names: Names) -> list[str]:
    session_cluster = cluster_named(image, names.cluster).id
    if statement.name is not None:
        item = relation(image, names, statement.name)
        if isinstance(item, SystemRelation) or not isinstance(item, Queried):
            raise wrong_kind(str(statement.name), "view")
        objects = Objects.of(image)
        kept_by = item.cluster_id if isinstance(item, MaterializedView) else session_cluster
        types = [sql_type(column.type) for column in item.stored]
        lowered = Lowered(planned_query(item, objects), spark_query(item, objects))
        return _strategy_of(lowered, item.inputs, types, item, image, kept_by)
    inner = statement.statement
    query = inner.query if isinstance(inner, st.CreateView) else inner.ast if isinstance(inner, st.Query) else None
    if query is None:
        raise wrong_kind("this statement", "query")
    plan = plan_select(query, image, names)
    nothing = [None] * max(plan.params, default=0)
    planned = plan.query(nothing)
    lowered = Lowered(planned) if planned is not None else Lowered(TEXT_ALONE, plan.spark_sql(nothing))
    types = [column.type for column in plan.columns]
    return _strategy_of(lowered, plan.inputs, types, None, image, session_cluster)


def _strategy_of(
    lowered: Lowered, inputs: tuple[str, ...], types: Sequence[SqlType], item: Item | None, image: ImageLike,
    cluster_id: str,
) -> list[str]:  # fmt: skip
    """What its operators say of a view with columns of ``types``."""
    items = {i: found for i in inputs if isinstance(found := image.item(i), Relation)}
    stored = {i: [column.name for column in each.stored] for i, each in items.items()}
    kept = Kept(lowered, stored, [carried(each) for each in types])
    columns = ((i, each.name, column) for i, each in items.items() for column in each.columns)
    called = {(i, column.stored_as): f"{quoted(name)}.{quoted(column.name)}" for i, name, column in columns}
    lines = list(kept.explain(cluster_setting(image, GEAR, cluster_id), lambda *column: called.get(column)))
    if item is not None:
        lines.append("inputs: " + ", ".join(inputs_of(item) if isinstance(item, View) else item.inputs))
    return [*lines, "query:", *(f"  {line}" for line in lowered.shown().splitlines())]
