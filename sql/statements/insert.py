"""INSERT: which rows go where, with defaults, types and assignment casts.  Pure."""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp

from catalog_log.objects import (
    ALWAYS,
    MATERIALIZED_VIEW,
    SOURCE,
    VIEW,
    WEBHOOK,
    Item,
    Source,
    Table,
    WebhookSource,
    is_table,
)
from journal.errors import Conflict, InvalidUsage
from journal.timestamps import CatalogTs
from sql.binding.bind import bind_query, cast_outputs, first_branch, unique_names
from sql.binding.bind_select import check_query
from sql.objects.names import ImageLike, Names, SystemRelation, column_types, relation
from sql.objects.uniques import uniques_of
from sql.statements.assigning import NULL, assign_output, default_slot, literal_slot, no_column_of, stored
from sql.statements.cells import Cells as LikeCells
from sql.statements.conflict_plan import plan_conflict
from sql.statements.defaults import default_of, of_calls, typed_expression
from sql.statements.plans import InsertPlan, Slot
from sql.statements.returning import numbers_given, numbers_in, of_insert
from sql.statements.select import of_each_row, plan_bound, read_before, types_of_gives
from sql.statements.sequence_calls import Meaning, Said, calls_in, check_drawn, of_query
from sql.statements.sequence_rows import parted
from sql.syntax import statements as st
from sql.syntax.query import USER
from sql.syntax.to_tree import parse_tokens
from sql.syntax.tokens import tokenize
from sql.syntax.values_list import Cell, Cells, Number, Param, Text, Word
from sql.typing.assign import assign, assignable
from sql.typing.check import Checker
from sql.typing.check_expressions import PARAMETERS_MAX
from sql.typing.check_zoned import checker_for
from sql.typing.zones import has_moments
from trees import types as t
from trees.budget import bounded
from trees.errors import mismatch, no_column, unsupported, wrong_kind
from trees.nodes import cast, declared_type, named_type, only, union_all, unnest
from values.types import SqlType, parse_type

DIGITS_MAX = 30
"""Of a number that is read without a tree: below what any of the types holds, so that longer ones keep their errors."""

ROWS_MAX = 100_000
"""Rows in one VALUES list: what a 1 MiB statement could hold is fewer, so this only bounds what planning may cost."""


@bounded
def plan_insert(s: st.Insert, image: ImageLike, names: Names, declared: dict[int, SqlType] | None = None) -> InsertPlan:
    """Plan an INSERT.  Raises 42P01, 42809, 42703, 42601 (counts), 42804 and the errors of its query."""
    table = table_named(s.table, image, names) if s.posted is None else posted_to(s, image, names)
    plan = replace(_planned(s, table, image, names, declared), uniques=uniques_of(table, image))
    if s.conflict is None and s.returning is None:
        return plan
    # What a parameter is the rows say first, then what is set in the place of one, then RETURNING.
    behind = [*(s.returning or ()), *(s.conflict.values if s.conflict else ()), *_where(s)]
    said = {n: plan.params[n] for n in numbers_given(s) if n in plan.params} if any(map(numbers_in, behind)) else {}
    known = {**(declared or {}), **said}
    params = dict(plan.params)
    if s.conflict is not None:
        conflict, found = plan_conflict(s, s.conflict, plan, image, names, known)
        plan, known, params = replace(plan, conflict=conflict), {**found, **known}, {**params, **found, **said}
        plan = replace(plan, params=dict(sorted(params.items())))
    if s.returning is not None:
        returning, found = of_insert(s, plan, image, names, known)
        plan = replace(plan, returning=returning, params=dict(sorted({**params, **found, **known}.items())))
    return plan


def _where(s: st.Insert) -> list[exp.Expression]:
    return [] if s.conflict is None or s.conflict.where is None else [s.conflict.where]


def _planned(
    s: st.Insert, table: Table, image: ImageLike, names: Names, declared: dict[int, SqlType] | None
) -> InsertPlan:
    types = tuple(column_types(table).values())
    targets = _targets(s, table)
    if s.source is None:
        row = tuple(default_slot(table, i, types[i]) for i in range(len(types)))
        return InsertPlan(table, types, {}, CatalogTs(image.upper - 1), (row,), order=_order(1, targets, types))
    values = s.source if isinstance(s.source, Cells) else _plain_values(s.source)
    if isinstance(values, exp.Values) and (values.args.get("with_") or values.find(exp.Select) is not None):
        # which may read relations
        values, targets = _without_defaults(values, targets, s.columns is not None)
        source = _selected(values, table, targets)
        return _insert_query(source, table, types, targets, s, image, names, declared)
    if values is not None:
        return _insert_values(table, types, targets, values, s, image, names, declared)
    return _insert_query(s.source, table, types, targets, s, image, names, declared)


def source_hint(item: Item) -> str:
    """Where the rows of a source come from, for who would write them."""
    if isinstance(item, WebhookSource):
        return "post to it over HTTP instead"
    if isinstance(item, Source) and item.generator is not None:
        return "its rows are made up by a load generator"
    return "produce to its topic instead"


def table_named(name: st.Name, image: ImageLike, names: Names) -> Table:
    """The table whose rows a statement writes.  Raises 42P01, 42501 for the system's, 42809 for anything else."""
    found = relation(image, names, name)
    if isinstance(found, SystemRelation):
        raise InvalidUsage(f'permission denied for table "{name.last}"', sqlstate="42501")
    if not is_table(found):
        hint = {
            SOURCE: source_hint(found),
            WEBHOOK: source_hint(found),
            VIEW: "write to the tables that it reads",
            MATERIALIZED_VIEW: "write to the tables that it reads",
        }.get(found.kind)
        raise wrong_kind(found.name, "table", hint)
    return found


def posted_to(s: st.Insert, image: ImageLike, names: Names) -> WebhookSource:
    """The source whose rows were posted, which is the one that ``s`` was made for.  40001 where it is another by
    now: another may ask for something else before it takes a row."""
    found = relation(image, names, s.table)
    if not isinstance(found, WebhookSource) or found.id != s.posted:
        raise Conflict(f'source "{s.table.last}" was replaced while rows were posted to it', hint="post them again")
    return found


def _targets(s: st.Insert, table: Item) -> list[int]:
    position = {column.name: i for i, column in enumerate(table.columns)}
    if s.columns is None:
        return list(range(len(table.columns)))
    found = []
    for name in s.columns:
        if name not in position:
            raise no_column_of(table, name)
        if position[name] in found:
            raise InvalidUsage(f'column "{name}" specified more than once', sqlstate="42701")
        found.append(position[name])
    return found


def _plain_values(source: exp.Expression) -> exp.Values | None:
    """The VALUES list of ``source`` if it is nothing else (no ORDER BY or LIMIT around it)."""
    if isinstance(source, exp.Values) and not any(source.args.get(k) for k in ("order", "limit", "offset")):
        return source
    return None


def _without_defaults(values: exp.Values, targets: list[int], listed: bool) -> tuple[exp.Values, list[int]]:
    """Without the columns that are DEFAULT in every row, which are as those that are not named."""
    rows, width = [_nodes_of(row) for row in values.expressions], None
    for row in rows:
        width = _check_width(len(row), width, targets, listed)
    left_out = {at for at, cells in enumerate(zip(*rows, strict=True)) if all(map(_is_default, cells))}
    if not left_out:
        return values, targets
    kept = [[cell for at, cell in enumerate(row) if at not in left_out] for row in rows]
    made = exp.Values(expressions=[exp.Tuple(expressions=[cell.copy() for cell in row]) for row in kept])
    made.set("with_", values.args.get("with_"))
    return made, [index for at, index in enumerate(targets) if at not in left_out]


def _selected(values: exp.Values, table: Item, targets: list[int]) -> exp.Expression:
    """The rows of ``values`` as a query, the columns' defaults in the places of DEFAULT."""
    found: list[exp.Query] = []
    types = column_types(table)
    for row in values.expressions:
        cells = [each.copy() for each in (row.expressions if isinstance(row, exp.Tuple) else [row])]
        for at, (cell, index) in enumerate(zip(cells, targets, strict=False)):
            if isinstance(cell, exp.Var) and cell.name.upper() == "DEFAULT":
                column = table.columns[index]
                cells[at] = default_of(table, column) or _of_type(exp.null(), types[column.name])
            elif _is_untyped(cell) and not t.is_text(wanted := types[table.columns[index].name]):
                cells[at] = _of_type(cell, wanted)  # else it would be what it is in a UNION: text
        found.append(exp.Select(expressions=cells))
    made = union_all(found)
    if values.args.get("with_"):
        made.set("with_", values.args["with_"].copy())
    return made


def _of_type(cell: exp.Expression, wanted: SqlType) -> exp.Expression:
    """``cell`` cast as a statement casts, without a length, which its column sees to."""
    name = f"_{wanted.element.name}" if wanted.is_array else wanted.name
    return exp.Cast(this=cell, to=named_type(name))


def _is_untyped(cell: exp.Expression) -> bool:
    inner = unnest(cell)
    return isinstance(inner, (exp.Null, exp.Parameter)) or isinstance(inner, exp.Literal) and inner.is_string


def _insert_values(
    table: Item,
    types: tuple[SqlType, ...],
    targets: list[int],
    values: exp.Values | Cells,
    s: st.Insert,
    image: ImageLike,
    names: Names,
    declared: dict[int, SqlType] | None,
) -> InsertPlan:
    checker = checker_for(names.zone, lambda query, scope: check_query(checker, query, scope, {}), declared)
    given = values.rows if isinstance(values, Cells) else values.expressions
    if len(given) > ROWS_MAX:
        raise InvalidUsage(
            f"{len(given)} rows in one VALUES list",
            sqlstate="54000",
            detail=f"at most {ROWS_MAX} are accepted",
        )
    defaults: dict[int, Slot] = {}

    def default(index: int) -> Slot:
        if index not in defaults:
            defaults[index] = default_slot(table, index, types[index])
        return defaults[index]

    plain = _PlainCells(values.text, checker) if isinstance(values, Cells) else None
    alike = LikeCells(lambda text, kind: stored(t.parse_literal(text, kind), kind))
    meaning = Said(image, names)
    its_own, always = _identities(table, s)
    # What a number without a unit means hangs on the fields that an interval is declared with.
    read_as = [parse_type(c.type) if kind == t.INTERVAL else kind for c, kind in zip(table.columns, types, strict=True)]
    left_out = [i for i in range(len(types)) if i not in targets]
    rows = []
    width = None
    for row in given:
        nodes = row if plain is not None else _nodes_of(row)
        width = _check_width(len(nodes), width, targets, s.columns is not None)
        slots: list[Slot | None] = [None] * len(types)
        for index, node in zip(targets, nodes, strict=False):
            if _is_default(node):
                slots[index] = default(index)
            elif index in always:
                raise _not_default(table.columns[index].name)
            elif plain is not None:
                wanted = read_as[index] if isinstance(node, Text) else types[index]
                slots[index] = plain.slot(node, table.columns[index].name, wanted)
            elif isinstance(node, (exp.Null, exp.Parameter)) or (isinstance(node, exp.Literal) and node.is_string):
                wanted = read_as[index] if isinstance(node, exp.Literal) else types[index]
                slots[index] = _value_slot(node, table.columns[index].name, wanted, checker, meaning)
            else:
                rest = table.columns[index].name, types[index], checker, meaning
                slots[index] = alike.slot(node, index, types[index], lambda each, rest=rest: _value_slot(each, *rest))
            if index in its_own:
                slots[index] = default(index)
        for index in left_out if len(nodes) == len(targets) else range(len(types)):
            if slots[index] is None:
                slots[index] = default(index)
        rows.append(tuple(slots))
    params = {n: checker.params.get(n, t.TEXT) for n in range(1, max(checker.seen, default=0) + 1)}
    literals = checker.zone is not None and checker.zone.literals
    at = CatalogTs(image.upper - 1)
    return InsertPlan(table, types, params, at, tuple(rows), literals=literals, order=_order(len(rows), targets, types))


def _order(rows: int, targets: list[int], types: tuple[SqlType, ...]) -> tuple[int, ...]:
    """In which order Postgres evaluates the columns of a row: of one row as the table has them, of more as they are
    written, and what is not after that."""
    written = targets if rows > 1 else ()
    return (*written, *(i for i in range(len(types)) if i not in written))


def _identities(table: Item, s: st.Insert) -> tuple[set[int], set[int]]:
    """Places of identity columns: that have their own values whatever is given, and that may be given none."""
    if not table.identities:
        return set(), set()
    kinds = {place: table.identity_of(column) for place, column in enumerate(table.columns)}
    its_own = {place for place, identity in kinds.items() if identity is not None and s.overriding == USER}
    always = {place for place, identity in kinds.items() if identity is not None and identity[0] == ALWAYS}
    return its_own, always if s.overriding is None else set()


def _not_default(column: str) -> InvalidUsage:
    """428C9."""
    return InvalidUsage(
        f'cannot insert a non-DEFAULT value into column "{column}"',
        sqlstate="428C9",
        detail=f'column "{column}" is an identity column defined as GENERATED ALWAYS',
        hint="use OVERRIDING SYSTEM VALUE to override",
    )


def _nodes_of(row: exp.Expression) -> list[exp.Expression]:
    return row.expressions if isinstance(row, exp.Tuple) else [row.this if isinstance(row, exp.Paren) else row]


def _is_default(node: exp.Expression | Cell) -> bool:
    if isinstance(node, Word):
        return node.word == "default"
    return isinstance(node, exp.Var) and node.name.upper() == "DEFAULT"


class _PlainCells:
    """Slots of the cells of one statement.  What is here word for word is what :func:`_value_slot` makes of them;
    whatever is rare is left to it."""

    def __init__(self, text: str, checker: Checker) -> None:
        self._text = text
        self._checker = checker
        self._types: dict[str, SqlType | None] = {}

    def slot(self, cell: Cell, column: str, wanted: SqlType) -> Slot:
        """Where the value of ``cell`` comes from.  Raises what :func:`_value_slot` raises."""
        if isinstance(cell, Text):
            return Slot(stored(self._checker.read(cell.text, wanted), wanted))
        if isinstance(cell, Param):
            if cell.type is None:
                return _param_slot(cell.number, column, wanted, self._checker)
            return self._cast_param(cell, wanted) or self._any(cell, column, wanted)
        if isinstance(cell, Number):
            return self._number(cell.digits, wanted) or self._any(cell, column, wanted)
        if cell.word == "null":
            return NULL
        return _value_slot(exp.Boolean(this=cell.word == "true"), column, wanted, self._checker)

    def _number(self, digits: str, wanted: SqlType) -> Slot | None:
        if len(digits) > DIGITS_MAX:
            return None
        try:
            if t.is_int(wanted) and "." not in digits:
                value, bound = int(digits), t.INT_RANGE[wanted.name]
                return Slot(value) if -bound <= value < bound else None
            if wanted.name == "numeric" or t.is_float(wanted):
                return Slot(stored(t.parse_literal(digits, wanted), wanted))
        except InvalidUsage:
            pass
        return None

    def _cast_param(self, cell: Param, wanted: SqlType) -> Slot | None:
        """``$n::type`` where that changes nothing that :func:`stored` would not do as well."""
        target = self._target(cell)
        known = self._checker.params.get(cell.number, target)
        if target is None or cell.number > PARAMETERS_MAX:
            return None
        if not (_same_values(known, target) and _same_values(target, wanted)):
            return None
        self._checker.seen.add(cell.number)
        self._checker.params.setdefault(cell.number, target)
        return Slot(param=cell.number, through=None if target == wanted else target)

    def _target(self, cell: Param) -> SqlType | None:
        if cell.type not in self._types:
            node = self._node(cell)
            plain = isinstance(node, exp.Cast) and isinstance(node.this, exp.Parameter)
            self._types[cell.type] = declared_type(node.to) if plain else None
        return self._types[cell.type]

    def _any(self, cell: Number | Param, column: str, wanted: SqlType) -> Slot:
        return _value_slot(self._node(cell), column, wanted, self._checker)

    def _node(self, cell: Number | Param) -> exp.Expression:
        text = self._text[cell.start : cell.end]
        try:
            node = parse_tokens(tokenize(text), text)
        except InvalidUsage as error:
            error.position = cell.start + (error.position or 1)
            raise
        for each in node.walk():
            if "start" in each.meta:
                each.meta["start"] += cell.start
        return node


def _same_values(got: SqlType, wanted: SqlType) -> bool:
    """Whether a value of ``got`` is one of ``wanted`` once :func:`stored` has checked and rounded it."""
    if t.is_int(got):
        return t.is_int(wanted) or wanted.name == "numeric"
    if got.name == wanted.name == "numeric":
        return True
    if got.name in ("text", "varchar") and got.precision is None:
        return wanted.name == "text" or (wanted.name == "varchar" and wanted.precision is None)
    return got == wanted and not (got.is_array or got.name in ("varchar", "bpchar"))


def _check_width(width: int, first: int | None, targets: list[int], listed: bool) -> int:
    if first is not None and width != first:
        raise InvalidUsage("VALUES lists must all be the same length", sqlstate="42601")
    if width > len(targets):
        raise InvalidUsage("INSERT has more expressions than target columns", sqlstate="42601")
    if width < len(targets) and listed:
        raise InvalidUsage("INSERT has more target columns than expressions", sqlstate="42601")
    return width


def _value_slot(
    node: exp.Expression, column: str, wanted: SqlType, checker: Checker, meaning: Meaning | None = None
) -> Slot:
    if isinstance(node, exp.Literal) and node.is_string:  # by far the commonest, and nothing to type
        return Slot(stored(checker.read(node.this, wanted), wanted))
    if isinstance(node, exp.Null):
        return NULL
    if isinstance(node, exp.Parameter):
        return _param_slot(int(node.this.this), column, wanted, checker)
    if node.find(exp.Column):
        raise no_column(node.find(exp.Column).name)
    if node.find(exp.Query, exp.Subquery):
        raise unsupported("a subquery in VALUES", hint="use INSERT … SELECT")
    if meaning is None:
        return literal_slot(typed_expression(node, column, wanted, checker), wanted)
    return literal_slot(of_calls(node, column, wanted, checker, meaning), wanted)


def _param_slot(number: int, column: str, wanted: SqlType, checker: Checker) -> Slot:
    if not 1 <= number <= PARAMETERS_MAX:
        raise InvalidUsage(f"there is no parameter ${number}", sqlstate="42P02")
    checker.seen.add(number)
    if number in checker.placed or number not in checker.params:
        checker.deduce(number, wanted)
        checker.placed.add(number)
    known = checker.params[number]
    if not assignable(known, wanted):
        raise mismatch(
            f'column "{column}" is of type {t.shown(wanted)} but expression is of type {t.shown(known)}',
            hint="you will need to rewrite or cast the expression",
        )
    if checker.zone is not None and known != wanted and has_moments(wanted if has_moments(wanted) else known):
        given = cast(exp.Parameter(this=exp.Literal.number(number)), known)  # what it is by the zone the engine says
        return literal_slot(assign(given, known, wanted, column, checker.zone), wanted)
    return Slot(param=number)


def _insert_query(
    source: exp.Expression,
    table: Item,
    types: tuple[SqlType, ...],
    targets: list[int],
    s: st.Insert,
    image: ImageLike,
    names: Names,
    declared: dict[int, SqlType] | None,
) -> InsertPlan:
    source = of_query(source, image, names)
    parts, reads, beside = parted(source), None, range(0)
    if parts is not None:
        reads = read_before(parts, image, names, declared)
        beside = parts.params
        source, declared = parts.gives(reads.columns), types_of_gives(parts, reads, declared)
    bound = bind_query(source, image, names, declared, assigned=[types[i] for i in targets], beside=beside)
    if bound.system:
        raise unsupported("INSERT from system relations")
    if calls_in(source):
        check_drawn(bound.tree, source)
    _check_width(len(bound.columns), None, targets, s.columns is not None)
    targets = targets[: len(bound.columns)]
    wanted = [types[i] for i in targets]
    if any(got.type != want for got, want in zip(bound.columns, wanted, strict=False)):
        bound.tree = _decided_before(bound.tree)
    for got, want, index in zip(bound.columns, wanted, targets, strict=False):
        assign(exp.null(), got.type, want, table.columns[index].name, bound.zone)
        if got.type != want:
            assign_output(bound.tree, targets.index(index), got.type, want, bound.zone)
    cast_outputs(bound.tree, wanted, unique_names([table.columns[i].name for i in targets]))
    its_own, always = _identities(table, s)
    its_own |= {index for place, index in enumerate(targets) if place in s.left}
    for index in targets:
        if index in always and index not in its_own:
            raise _not_default(table.columns[index].name)
    given = set(targets) - its_own
    defaults = {i: default_slot(table, i, types[i]) for i in range(len(types)) if i not in given}
    query = (
        plan_bound(bound, image, names)
        if parts is None or reads is None
        else of_each_row(bound, parts, reads, image, names)
    )
    columns = tuple(
        type(c)(table.columns[i].name, want) for c, i, want in zip(bound.columns, targets, wanted, strict=False)
    )
    query = type(query)(**{**query.__dict__, "columns": columns, "lookup": None})
    return InsertPlan(
        table,
        types,
        query.params,
        CatalogTs(image.upper - 1),
        query=query,
        query_columns=tuple([index if index in given else None for index in targets]),
        defaults=defaults,
        literals=query.literals,
    )


def _decided_before(tree: exp.Expression) -> exp.Expression:
    """``tree`` as a query whose outputs may be cast: which rows there are is decided by what they are before."""
    inner = tree
    while isinstance(inner, (exp.Subquery, exp.Paren)) and only(inner, {"this"}):
        inner = inner.this
    if isinstance(inner, exp.Select) and not any(inner.args.get(key) for key in ("distinct", "limit", "offset")):
        return tree
    names = [exp.to_identifier(each.alias_or_name, quoted=True) for each in first_branch(inner).expressions]
    rows = exp.to_identifier("_rows", quoted=True)
    outer = exp.Select(expressions=[exp.Alias(this=exp.column(n.copy(), table=rows.copy()), alias=n) for n in names])
    outer.set("from_", exp.From(this=exp.Subquery(this=inner.copy(), alias=exp.TableAlias(this=rows))))
    return outer
