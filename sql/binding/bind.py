"""Names and types of a whole query against one catalog image.

``bind_query`` resolves every relation to an item id, lets sqlglot qualify the columns, types every expression
(:mod:`sql.typing.check`) and decides name and type of each output.  The result is a tree in which relations are named
by item id and every output is cast to its type.  What is left to do is to put plain views in
(:mod:`sql.views.kept_views`) and to print it as Spark SQL.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass, field

from sqlglot import exp
from sqlglot.errors import OptimizeError, SqlglotError
from sqlglot.optimizer.annotate_types import annotate_types
from sqlglot.optimizer.qualify import qualify
from sqlglot.schema import MappingSchema

from catalog_log.objects import Item, Reference, Relation, View
from journal.errors import InvalidUsage
from plan.relations import Query
from sql.algebra.queries import plan_query
from sql.algebra.scope import NotPlanned
from sql.binding.bind_errors import explain_unresolved
from sql.binding.bind_order import sorted_outside
from sql.binding.bind_select import ALIASES, Outputs, check_query
from sql.binding.ctes import cte_of, rename_ctes
from sql.binding.grand_totals import with_grand_totals
from sql.binding.handed_in import handed_in
from sql.binding.known_args import check_known
from sql.binding.prepare_tree import ONE_COLUMN, prepare_tree
from sql.binding.recursion import well_formed
from sql.objects.called import Called, Meant, Objects
from sql.objects.names import ImageLike, Names, SystemRelation, column_types
from sql.syntax.statements import Name
from sql.typing.check import Checker
from sql.typing.check_zoned import checker_for
from sql.typing.float_ranges import with_ranges
from sql.typing.scope import Scope
from sql.typing.zones import Zone
from trees import types as t
from trees.errors import no_from_entry, unsupported, untold
from trees.functions import display_name, is_definite
from trees.nodes import bare, branches, cast, makes_items, position, unnest
from values.types import SqlType, spark_type


@dataclass(frozen=True)
class OutputType:
    name: str
    type: SqlType


@dataclass
class Bound:
    """A bound query.

    ``tree`` is in Spark's types with relations named by item id and parameters still in it.  ``system`` is true where
    it reads relations of the system schemas: then there is no tree, and DuckDB answers the query as it was written.
    """

    tree: exp.Expression | None
    columns: tuple[OutputType, ...]
    depends_on: tuple[str, ...]
    inputs: tuple[str, ...]
    params: dict[int, SqlType] = field(default_factory=dict)
    volatile: str | None = None
    system: bool = False
    relations: dict[str, Relation] = field(default_factory=dict)
    references: tuple[Reference, ...] = ()
    """What the names in it mean: what is kept of a view."""
    zone: Zone | None = None
    """The session's, where it is not UTC: it knows whether a literal was read by it."""

    @property
    def literals(self) -> bool:
        """Whether a literal in it was read by the session's zone."""
        return self.zone is not None and self.zone.literals

    @property
    def plan(self) -> Query:
        """The query as relational algebra, its plain views among what it reads."""
        assert self.tree is not None, "the system's relations are not planned"
        try:
            return plan_query(self.tree, self.relations, self.params)
        except NotPlanned as error:
            raise untold("this query", error) from error

    @property
    def constant(self) -> bool:
        """Whether it reads no relation at all."""
        return not self.depends_on and not self.system


def bind_query(
    ast: exp.Expression,
    image: ImageLike,
    names: Names,
    declared: dict[int, SqlType] | None = None,
    defines: bool = False,
    assigned: Sequence[SqlType] = (),
    beside: Collection[int] = (),
) -> Bound:
    """Bind a query.  Raises ``InvalidUsage`` with Postgres's SQLSTATEs; a position where the parser kept one.

    ``defines``: it is kept and read by others, so nothing in it may be by the session's zone.  ``assigned``: what the
    outputs are put into, which untyped ones then are.  ``beside``: parameters that may stand in another query of the
    statement and not in this one.
    """
    _check_aliases(ast)
    return _bound(ast, Called(image, names), names.zone, declared, defines, assigned, beside)


def _check_aliases(ast: exp.Expression) -> None:
    """42601 for a query in FROM that is not called anything.  Views of older releases may hold such."""
    for source in ast.find_all(exp.Subquery, exp.Values, exp.Lateral):
        if not isinstance(source.parent, (exp.From, exp.Join)) or source.alias:
            continue
        inner: exp.Expression = source
        while isinstance(inner, (exp.Subquery, exp.Lateral)) and (inner is source or not inner.alias):
            inner = inner.this
        if isinstance(inner, (exp.Select, exp.SetOperation, exp.Values)):
            word, example = ("VALUES", "VALUES") if isinstance(inner, exp.Values) else ("subquery", "SELECT")
            hint = f"For example, FROM ({example} ...) [AS] foo."
            raise InvalidUsage(f"{word} in FROM must have an alias", sqlstate="42601", hint=hint)


def bind_kept(
    ast: exp.Expression,
    references: Sequence[Reference],
    objects: Objects,
    zone: str = "UTC",
    assigned: Sequence[SqlType] = (),
) -> Bound:
    """Bind a query that is kept, as a view's is, as it was bound when it was made, whatever is called so now.

    Raises as :func:`bind_query`: the binder may not take what one of an older release took.  ``zone`` is that of who
    defines it, by which nothing in it may be.
    """
    return _bound(ast, Meant(references, objects), zone, None, True, assigned)


def _bound(
    ast: exp.Expression,
    called: Called | Meant,
    zone: str,
    declared: dict[int, SqlType] | None,
    defines: bool,
    assigned: Sequence[SqlType],
    beside: Collection[int] = (),
) -> Bound:
    items, system = _relations(ast, called)
    if system:
        if items:
            raise unsupported("a query that reads both system and user relations")
        return Bound(None, (), (), (), dict(declared or {}), system=True)
    tree, by_id, references = _prepared(ast, called)
    well_formed(tree)
    schema = MappingSchema(
        {item.id: {c: spark_type(ty) for c, ty in column_types(item).items()} for item in by_id.values()},
        dialect="postgres",
        normalize=False,
    )
    columns_of = {i.id: list(column_types(i)) for i in by_id.values()}
    tree = _qualified(tree, schema, lambda error: explain_unresolved(_prepared(ast, called)[0], error, columns_of))
    checker = checker_for(zone, lambda node, scope: check_query(checker, node, scope, by_id), declared, defines)
    holder = exp.Paren(this=tree)
    outputs = check_query(checker, tree, Scope(), by_id)
    outputs = _as_assigned(checker, holder.this, outputs, assigned)
    volatile = volatile_part(holder.this)
    columns = []
    for name, found in outputs:
        columns.append(OutputType(name, t.TEXT if found == t.UNKNOWN else found))
    cast_outputs(holder.this, [c.type for c in columns], unique_names([c.name for c in columns]))
    with_grand_totals(holder)
    sorted_outside(holder)
    with_ranges(holder, bool(by_id))
    if checker.far:
        with suppress(InvalidUsage) if not by_id else nullcontext():  # what reads nothing, DuckDB answers as it is
            holder.set("this", handed_in(holder.this))
    numbers = range(1, max(checker.seen, default=0) + 1)
    params = {n: checker.params.get(n, t.TEXT) for n in numbers if n in checker.seen or n not in beside}
    if (absent := next((n for n in params if n not in checker.seen), None)) is not None:
        raise InvalidUsage(f"could not determine data type of parameter ${absent}", sqlstate="42P18")
    used = sorted(by_id, key=id_order)
    bound = Bound(holder.this, tuple(columns), tuple(used), (), params, volatile, relations=by_id)
    bound.references = references
    bound.zone = checker.zone
    bound.inputs = tuple(sorted({i for item in by_id.values() for i in inputs_of(item)}, key=id_order))
    return bound


def _prepared(
    ast: exp.Expression, called: Called | Meant
) -> tuple[exp.Expression, dict[str, Relation], tuple[Reference, ...]]:
    """A copy of ``ast`` whose relations are named by their ids; those, and what names in it mean."""
    tree = prepare_tree(ast)
    check_known(tree)
    holder = exp.Paren(this=tree)
    tables = rename_ctes(holder, folded, _cte_name)
    by_id, references = _name_by_id(holder.this, tables, called)
    _count_aliases(holder.this)
    if isinstance(called, Meant):
        _called_by_older_releases(holder)
    return holder.this, by_id, references


def _as_assigned(
    checker: Checker, query: exp.Expression, outputs: Outputs, assigned: Sequence[SqlType]
) -> Outputs:
    """``outputs`` with those of no type as what they are put into.  Beside others, or made distinct, they are text."""
    query = bare(query)
    if not isinstance(query, exp.Select) or query.args.get("distinct") is not None:
        return outputs
    found = list(outputs)
    for index, (wanted, (name, got)) in enumerate(zip(assigned, outputs, strict=False)):
        value = unnest(query.expressions[index].unalias()) if got == t.UNKNOWN else None
        if isinstance(value, exp.Parameter) and t.is_text(wanted):
            checker.deduce(int(value.this.this), t.TEXT, position(value))
        elif value is not None and not t.is_text(wanted):
            written = isinstance(value, exp.Literal) and wanted.name == "numeric" and not wanted.is_free
            found[index] = (name, t.numeric_text(value.this, position(value)) if written else wanted)
            checker.give(value, wanted)
    return found


def inputs_of(item: Item) -> tuple[str, ...]:
    """The collections that reading ``item`` reads: a plain view's inputs, anything else itself."""
    return item.inputs if isinstance(item, View) else (item.id,)


def id_order(item_id: str) -> tuple[int, str]:
    """Ids in the order in which they were given (``u2`` before ``u10``)."""
    digits = item_id[1:]
    return (int(digits), item_id) if digits.isdigit() else (1 << 62, item_id)


def name_of(table: exp.Table) -> Name:
    """What it says, as it stands.  42601 for more than three parts."""
    parts = [part for part in table.parts if isinstance(part, exp.Identifier)]
    if isinstance(table.this, exp.Dot) or len(parts) > 3:
        raise InvalidUsage(
            f"improper qualified name (too many dotted names): {table.sql('postgres')}",
            sqlstate="42601",
            position=position(table),
        )
    start = min((p.meta["start"] for p in parts if "start" in p.meta), default=0)
    return Name(tuple(p.name if p.args.get("quoted") else p.name.lower() for p in parts), start)


def real_tables(tree: exp.Expression) -> list[exp.Table]:
    """Those that name no WITH query."""
    tables = [x for x in tree.find_all(exp.Table) if isinstance(x.this, (exp.Identifier, exp.Dot))]
    return [x for x in tables if cte_of(x, folded) is None]


def _cte_name(number: int) -> str:
    """Of a WITH query: no relation's id, nor what compute calls its own."""
    return f"cte{number}"


def _relations(ast: exp.Expression, called: Called | Meant) -> tuple[list[Item], bool]:
    items, system = [], False
    for table in real_tables(ast):
        if isinstance(table.parent, exp.Into):
            raise unsupported("SELECT INTO", "make the table, then INSERT … SELECT", position(table))
        found = called.relation(name_of(table))
        if isinstance(found, SystemRelation):
            system = True
        else:
            items.append(found)
    return items, system


def _name_by_id(
    tree: exp.Expression, tables: Sequence[exp.Table], called: Called | Meant
) -> tuple[dict[str, Relation], tuple[Reference, ...]]:
    """Rename every relation in ``tree``, named by ``tables``, to its item's id, keeping its name as the alias; what the
    names meant."""
    by_id: dict[str, Relation] = {}
    references: dict[tuple[str, ...], Reference] = {}
    whole_names = set()
    for table in tables:  # found before WITH queries got names that a relation may have, too
        name = name_of(table)
        if table.args.get("alias") is None:
            whole_names.add((called.schema(name), name.last))
        item = called.relation(name)
        by_id[item.id] = item
        _name_columns(table, item)
        columns = tuple(column.name for column in item.columns)
        column_ids = tuple(column.id for column in item.columns if column.id)
        references[name.parts] = Reference(name.parts, item.id, called.schema(name), columns, column_ids)
        if table.args.get("alias") is None:
            table.set("alias", exp.TableAlias(this=exp.to_identifier(name.last, quoted=True)))
        for key in ("db", "catalog"):
            table.set(key, None)
        table.set("this", exp.to_identifier(item.id, quoted=True))
    for column in [x for x in tree.find_all(exp.Column) if x.args.get("db") is not None]:
        schema, last = (folded(column.args[key]) for key in ("db", "table"))
        if (schema, last) not in whole_names:
            raise no_from_entry(last, position(column))
        column.set("db", None)
        column.set("catalog", None)
    return by_id, tuple(sorted(references.values(), key=lambda each: (id_order(each.relation_id), each.name)))


def _name_columns(table: exp.Table, item: Relation) -> None:
    """Where fewer columns are renamed than there are, the others keep their names.  42P10 for too many."""
    alias = table.args.get("alias")
    given = alias.columns if alias is not None else []
    if len(given) > len(item.columns):
        raise InvalidUsage(
            f'table "{alias.name}" has {len(item.columns)} columns available but {len(given)} columns specified',
            sqlstate="42P10",
            position=position(table),
        )
    if given and len(given) < len(item.columns):
        others = [exp.to_identifier(column.name, quoted=True) for column in item.columns[len(given) :]]
        alias.set("columns", [*given, *others])


def folded(identifier: exp.Expression) -> str:
    """Its name, in lower case where it was not quoted."""
    return identifier.name if identifier.args.get("quoted") else identifier.name.lower()


def _called_by_older_releases(tree: exp.Expression) -> None:
    """In kept views: the column of ``jsonb_array_elements(…) AS e`` was ``e.e``, before it was ``e.value``."""
    functions = {each.alias: each.meta.get(ONE_COLUMN) for each in tree.find_all(exp.Subquery, exp.Lateral)}
    for column in tree.find_all(exp.Column):
        if column.table == column.name and (now := functions.get(column.table)) is not None:
            column.set("this", exp.to_identifier(now, quoted=True))


def _rows_of_one_column(tree: exp.Expression) -> None:
    """Name the column where a row of a function in FROM is named: ``SELECT e FROM jsonb_array_elements(…) AS e``.

    What stands in HAVING, ORDER BY and DISTINCT ON is given its relation later, by what is noted on the query
    (:func:`sql.binding.bind_order.means_a_row`).
    """
    for select in tree.find_all(exp.Select):
        noted = {each.alias: each.meta.get(ONE_COLUMN) for each in _sources_of(select)}
        select.meta[ONE_COLUMN] = {name: column for name, column in noted.items() if column is not None}
    for whole in list(tree.find_all(exp.TableColumn)):
        select = whole.find_ancestor(exp.Select)
        while select is not None:
            source = next((each for each in _sources_of(select) if each.alias_or_name == whole.name), None)
            if source is not None:
                if (column := source.meta.get(ONE_COLUMN)) is not None:
                    whole.replace(exp.column(exp.to_identifier(column), table=exp.to_identifier(whole.name)))
                break
            select = select.find_ancestor(exp.Select)


def _sources_of(select: exp.Select) -> list[exp.Expression]:
    joins = [each.this for each in select.args.get("joins") or ()]
    return joins if select.args.get("from_") is None else [select.args["from_"].this, *joins]


def _qualified(
    tree: exp.Expression, schema: MappingSchema, explained: Callable[[str], Exception]
) -> exp.Expression:
    """``tree`` with every column named with its relation, and with types; ``explained`` is what to raise for the
    library's word of what it does not find."""
    try:
        tree = qualify(tree, schema=schema, dialect="postgres", quote_identifiers=False, identify=False)
        _check_stars(tree)
        _rows_of_one_column(tree)
        for identifier in tree.find_all(exp.Identifier):
            identifier.set("quoted", True)  # all are in their final case now, and equal ones must compare equal
        return annotate_types(tree, schema=schema, dialect="postgres")
    except OptimizeError as error:
        _check_stars(tree)
        raise explained(str(error)) from error
    except InvalidUsage:
        raise
    except AssertionError as error:
        _check_stars(tree)  # ORDER BY the place of a column of one that stands there still
        raise untold("this query", error) from error
    except (SqlglotError, LookupError, ValueError, AttributeError, TypeError) as error:
        raise untold("this query", error) from error


def _count_aliases(tree: exp.Expression) -> None:
    """Note how many columns each alias names: making columns of ``*`` forgets those that there are not."""
    for alias in tree.find_all(exp.TableAlias):
        alias.meta[ALIASES] = len(alias.columns)


def _check_stars(tree: exp.Expression) -> None:
    """0A000 where a ``*`` has not become columns since what it is of has several of one name."""
    for select in tree.find_all(exp.Select):
        for each in select.expressions:
            if not isinstance(each.this if isinstance(each, exp.Column) else each, exp.Star):
                continue
            below = [inner.named_selects for inner in tree.find_all(exp.Select) if inner is not select]
            if any(len(names) != len(set(names)) for names in below):
                hint = "give its columns names of their own: FROM (SELECT …) AS q (a, b, …)"
                raise unsupported("* of a subquery with two columns of one name", hint=hint, position=position(each))


def unique_names(names: list[str]) -> list[str]:
    """Names that are distinct for Spark, which does not mind case: the second ``a`` becomes ``a_1`` and so on."""
    taken: set[str] = set()
    found = []
    for name in names:
        candidate, n = name, 0
        while candidate.lower() in taken:
            n += 1
            candidate = f"{name}_{n}"
        taken.add(candidate.lower())
        found.append(candidate)
    return found


def cast_outputs(query: exp.Expression, types: list[SqlType], names: list[str] | None = None) -> None:
    """Cast the outputs of ``query`` (each branch of a set operation) to ``types`` and call them ``names``."""
    for branch in branches(query):
        _cast_branch(branch, types, names)


def _cast_branch(query: exp.Expression, types: list[SqlType], names: list[str] | None) -> None:
    changed = []
    for index, (each, wanted) in enumerate(zip(query.expressions, types, strict=False)):
        inner = each.this if isinstance(each, exp.Alias) else each
        name = names[index] if names else each.alias_or_name
        if makes_items(inner):  # nothing may stand around it in Spark
            rows = inner.expressions[0]
            inner.set("expressions", [cast(rows.copy(), wanted.array)])
            changed.append(exp.Alias(this=inner.copy(), alias=exp.to_identifier(name, quoted=True)))
            continue
        already = isinstance(inner, exp.Cast) and inner.to == cast(exp.null(), wanted).to
        value = inner.copy() if already else cast(inner.copy(), wanted)
        changed.append(exp.Alias(this=value, alias=exp.to_identifier(name, quoted=True)))
    query.set("expressions", changed)


def first_branch(query: exp.Expression) -> exp.Select:
    """The SELECT that names the outputs of ``query``: the leftmost of a set operation."""
    while not isinstance(query, exp.Select):
        query = query.this
    return query


def volatile_part(tree: exp.Expression) -> str | None:
    """The name of something in ``tree`` that is no function of its inputs, or ``None``."""
    return next((display_name(node) for node in tree.walk() if not is_definite(node)), None)
