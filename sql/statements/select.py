"""A query to a :class:`~sql.statements.plans.SelectPlan`: bound, views inlined, by lookup where an index can answer."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from sqlglot import exp

from catalog_log.objects import Relation, Table, View
from journal.errors import InvalidUsage
from journal.timestamps import CatalogTs
from lower.duckdb.decided import Undecided, decided
from lower.lookup.asked import Lookup
from lower.lookup.lists import listed
from lower.lookup.lowering import lookup, read_by
from lower.lookup.points import one_row
from plan import relations as r
from sql.binding.bind import Bound, bind_query, real_tables
from sql.binding.recursion import only_of_constants
from sql.objects.called import Objects
from sql.objects.given import is_given
from sql.objects.names import ImageLike, Names
from sql.objects.uniques import indexes_of, uniques_of
from sql.statements.keys_seen import Seen, keys_seen
from sql.statements.plans import SelectPlan
from sql.statements.put_back import NotAlike
from sql.statements.samples import check_alike, shortened
from sql.statements.sequence_calls import calls_in, check_choices, check_drawn, is_call, of_query
from sql.statements.sequence_rows import Parted, parted
from sql.statements.sequence_state import states_read
from sql.syntax.query import Query
from sql.system.parameters import read_as
from sql.system.queries import typed_query
from sql.system.types import TEXT, PgType, type_of
from sql.system.zones import check_zone
from sql.typing.check_sequences import WHERE
from sql.views.kept_views import Unplanned, columns_read, inline_views, planned_as
from trees.budget import bounded
from trees.errors import unsupported
from trees.functions import SYSTEM, SYSTEM_NAMES, SYSTEM_TYPES, display_name
from trees.unwritten import Unwritten
from values.types import SqlType

LEFT_TO_THE_SYSTEM = ("42883", "0A000", "42704")
"""What the binder says of a query that only the system knows all names of."""


@bounded
def plan_query(
    query: Query, image: ImageLike, names: Names, declared: dict[int, SqlType] | None = None
) -> SelectPlan:
    """:func:`plan_select` of what ``query`` says, which is not written out where it can be planned without."""
    plan = by_samples(query.tree, image, names, declared) if isinstance(query.tree, Unwritten) else None
    plan = plan or plan_select(query.ast, image, names, declared)
    return plan if query.as_of is None else historical(plan)


def historical(plan: SelectPlan) -> SelectPlan:
    """``plan`` for a query that says AS OF.  An index knows the last minutes alone, so none is asked.

    0A000 where what it reads has no history, or where it would draw values.
    """
    if plan.kind == "catalog":
        raise unsupported("AS OF of system relations", hint="tidemark log --at tells what the catalog held")
    if plan.reads is not None or plan.draws:
        raise unsupported("a sequence's value AS OF a timestamp", hint="read first, then draw")
    return plan if plan.lookup is None and plan.one_row is None else replace(plan, lookup=None, one_row=None)


@bounded
def plan_select(
    ast: exp.Expression, image: ImageLike, names: Names, declared: dict[int, SqlType] | None = None
) -> SelectPlan:
    """Plan a query.  A query over system relations (or constants that only the system knows) has kind ``catalog``."""
    return by_samples(ast, image, names, declared) or _planned(ast, image, names, declared)


def by_samples(
    query: exp.Expression | Unwritten, image: ImageLike, names: Names, declared: dict[int, SqlType] | None
) -> SelectPlan | None:
    """The plan of ``query`` where it is planned by samples; ``None`` where what is written decides, and says what is
    wrong with it."""
    try:
        short = shortened(query, declared)
        # Not of calls of sequences, of which each is another one: those are no samples.
        if short is None or any(map(is_call, short.ast.walk())):
            return None
        plan = short.whole(_planned(short.ast, image, names, short.declared(declared)))
        if short.chained:
            more = shortened(query, declared, more=True)
            check_alike(plan, more.whole(_planned(more.ast, image, names, more.declared(declared))))
        return plan
    except (NotAlike, InvalidUsage):
        return None


def _planned(
    ast: exp.Expression, image: ImageLike, names: Names, declared: dict[int, SqlType] | None
) -> SelectPlan:
    try:
        return _plan_of(ast, image, names, declared)
    except InvalidUsage as error:
        if error.sqlstate != "42809":
            raise
        states = states_read(ast, image, names)
        if states is ast:
            raise
        return _plan_of(states, image, names, declared)


def _plan_of(
    ast: exp.Expression, image: ImageLike, names: Names, declared: dict[int, SqlType] | None
) -> SelectPlan:
    over_rows = drawn_over_rows(ast, image, names, declared)
    if over_rows is not None:
        return over_rows
    bound = bind_select(ast, image, names, declared)
    return _catalog(ast, image, names, declared) if bound is None else plan_bound(bound, image, names)


def drawn_over_rows(
    ast: exp.Expression, image: ImageLike, names: Names, declared: dict[int, SqlType] | None = None
) -> SelectPlan | None:
    """The plan of a query that draws values for rows that it reads; ``None`` for any other."""
    query = of_query(ast, image, names)
    parts = None if query is ast else parted(query)
    if parts is None:
        return None
    reads = read_before(parts, image, names, declared)
    types = types_of_gives(parts, reads, declared)
    bound = bind_query(parts.gives(reads.columns), image, names, types, beside=parts.params)
    return of_each_row(bound, parts, reads, image, names)


def read_before(
    parts: Parted, image: ImageLike, names: Names, declared: dict[int, SqlType] | None = None
) -> SelectPlan:
    """The plan of what is read before values are drawn."""
    bound = bind_select(parts.reads, image, names, declared, parts.params)
    if bound is None:
        hint = "ask each in a statement of its own"
        raise unsupported("a sequence's value beside what only the system knows", hint=hint)
    return plan_bound(bound, image, names)


def types_of_gives(parts: Parted, reads: SelectPlan, declared: dict[int, SqlType] | None) -> dict[int, SqlType]:
    """The types of the parameters that what is given for a row has, as far as they are known."""
    row = {parts.first + place: column.type for place, column in enumerate(reads.columns)}
    return {**(declared or {}), **reads.params, **row}


def of_each_row(bound: Bound, parts: Parted, reads: SelectPlan, image: ImageLike, names: Names) -> SelectPlan:
    """The plan of what is given for each row of ``reads``, bound."""
    check_drawn(bound.tree, exp.Select())
    plan = plan_bound(bound, image, names)
    known = {**bound.params, **reads.params}
    if (absent := next((n for n in parts.params if n not in known), None)) is not None:
        raise InvalidUsage(f"could not determine data type of parameter ${absent}", sqlstate="42P18")
    params = {number: known[number] for number in parts.params}
    return replace(
        plan, params=params, reads=reads, inputs=reads.inputs, depends_on=reads.depends_on, volatile=True,
        literals=plan.literals or reads.literals,
    )  # fmt: skip


def bind_select(
    ast: exp.Expression,
    image: ImageLike,
    names: Names,
    declared: dict[int, SqlType] | None = None,
    beside: Collection[int] = (),
) -> Bound | None:
    """A query bound, ``None`` where its plan is of kind ``catalog``.  ``beside``: as of
    :func:`~sql.binding.bind.bind_query`."""
    query = of_query(ast, image, names)
    try:
        bound = bind_query(query, image, names, declared, beside=beside)
    except InvalidUsage as error:
        user = error.sqlstate == "42703" and any(map(is_system_part, ast.find_all(exp.Column)))
        if (user or error.sqlstate in LEFT_TO_THE_SYSTEM) and reads_nothing(ast) and asks_the_system(ast):
            if query is ast:
                return None
            hint = "ask each in a statement of its own"
            raise unsupported("a sequence's value beside what only the system knows", hint=hint) from error
        raise
    if query is not ast:
        check_drawn(bound.tree, query)
    return None if bound.system else bound


def plan_bound(bound: Bound, image: ImageLike, names: Names) -> SelectPlan:
    """The plan of a bound query over user relations."""
    return algebra_bound(bound, image, names)[0]


def algebra_bound(bound: Bound, image: ImageLike, names: Names) -> tuple[SelectPlan, r.Query | None]:
    """The same with its algebra, in which parameters are without values; ``None`` of constants, and of what has
    none."""
    objects = Objects.of(image)
    tree = inline_views(bound.tree, bound.relations, objects)
    found = row = algebra = None
    seen: tuple[Seen, ...] = ()
    draws = bound.volatile is not None and bool(calls_in(tree))
    if draws:
        check_choices(tree)
        if not bound.constant:
            call = calls_in(tree)[0]
            raise unsupported(f"{display_name(call)}() beside what is read in this place", hint=WHERE)
    if not bound.constant:
        only_of_constants(tree)
        tree, query = planned_as(tree, bound.params, objects)
        if not isinstance(query, Unplanned):
            found, algebra = _lookup_of(query.relation, bound, image, names), query
            if found is None and bound.volatile is None:
                row = _one_row_of(query, bound, image, names)
            seen = keys_seen(query.relation, bound.params, image)
    plan = SelectPlan(
        kind="constant" if bound.constant else "given" if all(map(is_given, bound.depends_on)) else "peek",
        tree=tree,
        columns=bound.columns,
        inputs=bound.inputs,
        depends_on=bound.depends_on,
        params=bound.params,
        catalog_ts=CatalogTs(image.upper - 1),
        lookup=found,
        one_row=row,
        volatile=bound.volatile is not None,
        literals=bound.literals,
        draws=draws,
        keys_seen=seen,
        columns_read={} if bound.constant else columns_read(tree, objects),
    )
    return plan, algebra


def _lookup_of(plan: r.Relation, bound: Bound, image: ImageLike, names: Names) -> Lookup | None:
    """The lookup that answers ``plan`` by an index of the session's cluster."""
    cluster, item = image.cluster_by_name(names.cluster), image.item(read_by(plan) or "")
    if cluster is None or not isinstance(item, Relation) or isinstance(item, View):
        return None
    indexes = indexes_of(item.id, cluster.id, image)
    found = lookup(plan, item, indexes, bound.params)
    if found is None or not found.lists or found.key:
        return found
    # What is one of a parameter's values is found where each of these is a key; an engine compares them better.
    return None if listed(found, item, indexes, None) is None else found


def _one_row_of(query: r.Query, bound: Bound, image: ImageLike, names: Names) -> Lookup | None:
    """What finds the one row that ``query`` can see, by an index of the session's cluster: where any engine would make
    the same of it."""
    cluster = image.cluster_by_name(names.cluster)
    table = image.item(bound.inputs[0]) if cluster is not None and len(bound.inputs) == 1 else None
    if not isinstance(table, Table) or table.dropped:
        return None
    uniques = [each.index for each in uniques_of(table, image) if each.index.cluster_id == cluster.id]
    found = one_row(query.relation, table, uniques, bound.params)
    if found is not None:
        try:
            decided(query)
        except Undecided:
            return None
    return found


def reads_nothing(ast: exp.Expression) -> bool:
    """Whether a query names no relation: ``select version()``."""
    return not any(isinstance(table.this, exp.Identifier) for table in real_tables(ast))


def asks_the_system(ast: exp.Expression) -> bool:
    """Whether a query names something that only the adapter knows: ``version()``, ``pg_get_userbyid``, ``regclass``.

    Nothing else is left to the engine of the system relations, which would answer by its own rules instead of
    Postgres's where the binder has refused.
    """
    return any(is_system_part(node) or isinstance(node, exp.Uuid) for node in ast.walk()) or names_system_type(ast)


def is_system_part(node: exp.Expression) -> bool:
    """Whether this node is a value that only the adapter knows."""
    if isinstance(node, exp.Column):
        return not node.table and not node.this.args.get("quoted") and node.name.lower() in ("user", "current_role")
    if isinstance(node, (exp.Connector, exp.Binary, exp.Case, exp.Coalesce)):
        return False  # functions to sqlglot, and none that is called by a name
    return isinstance(node, SYSTEM) or (isinstance(node, exp.Func) and _is_system(node))


def names_system_type(ast: exp.Expression) -> bool:
    """Whether a cast in it is to a type of the system's: ``'t'::regclass``."""
    types = (node.to.sql("postgres").lower() for node in ast.find_all(exp.Cast))
    return any(SYSTEM_TYPES.fullmatch(each.rsplit(".", 1)[-1]) for each in types)


def _is_system(node: exp.Func) -> bool:
    return not isinstance(node, exp.Cast) and SYSTEM_NAMES.fullmatch(display_name(node)) is not None


def _catalog(ast: exp.Expression, image: ImageLike, names: Names, declared: dict[int, SqlType] | None) -> SelectPlan:
    told = {number: type_of(kind) for number, kind in (declared or {}).items()}
    system = None
    try:
        system = typed_query(ast, image, names, told)
    except InvalidUsage:
        if not reads_nothing(ast):
            raise  # of any other only parts may be the system's to say: what is wrong with it is told once these are
    params, oids = dict(declared or {}), {}
    for number, kind in system.params.items() if system is not None else _untold(ast):
        if number not in params:
            params[number], oid = read_as(kind)
            if oid is not None:
                oids[number] = oid
    if system is not None:
        check_zone(system, names)
    tree = ast if system is None or reads_nothing(ast) else system.tree
    return SelectPlan("catalog", tree, (), (), (), params, CatalogTs(image.upper - 1), system=system, system_oids=oids)


def _untold(ast: exp.Expression) -> list[tuple[int, PgType]]:
    """The parameters of what is not typed as a whole: texts, which become what their places want."""
    numbers = [int(each.this.this) for each in ast.find_all(exp.Parameter) if isinstance(each.this, exp.Literal)]
    return [(number, TEXT) for number in range(1, max(numbers, default=0) + 1)]
