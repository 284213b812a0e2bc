"""DDL statements to catalog updates: a pure function of the statement, one image and the session's names.

``plan_ddl`` promises that its updates make sense exactly on the image that it was given: the compare-and-append
refuses them on any other, and then the statement is planned again.  It never calls a controller (DESIGN I8).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from catalog_log import model, records
from catalog_log.model import Schema
from catalog_log.objects import (
    Column,
    Definition,
    Errors,
    Index,
    Item,
    MaterializedView,
    Source,
    SparkText,
    Table,
    View,
    numbered,
)
from journal.errors import InvalidUsage
from journal.names import TopicNames
from sql.binding.bind import Bound, bind_query
from sql.binding.recursion import only_of_constants
from sql.objects.called import Objects
from sql.objects.identifiers import (
    IDENTIFIER_BYTES_MAX,
    check_columns,
    check_identifier,
    check_schema_name,
    errors_name,
)
from sql.objects.item_ids import ItemIds
from sql.objects.names import (
    ImageLike,
    Names,
    SystemRelation,
    cluster_named,
    database_of,
    relation,
    target_schema,
)
from sql.statements.ddl_alter import plan_rename, plan_rename_schema, plan_set_schema
from sql.statements.ddl_cluster import plan_cluster
from sql.statements.ddl_columns import plan_columns
from sql.statements.ddl_comment import plan_comment
from sql.statements.ddl_drop import plan_drop
from sql.statements.ddl_made import created, exists, taken
from sql.statements.ddl_reset import plan_reset
from sql.statements.ddl_sequences import (
    plan_alter_sequence,
    plan_create_sequence,
    put_position,
    with_sequences,
)
from sql.statements.defaults import read_by_default
from sql.statements.plans import DdlPlan
from sql.syntax import statements as st
from sql.trees.budget import bounded
from sql.trees.errors import already_exists, no_column, unsupported, wrong_kind
from sql.views.kept_views import keep_lowered, named_query
from values.numeric.sequence_values import Position

ERRORS_COLUMNS = (
    Column("error", "text"),
    Column("value", "text"),
    Column("topic", "text"),
    Column("partition", "int4"),
    Column("offset", "int8"),
)
"""What is kept of a message that is no row of its source."""


def _create_schema(s: st.CreateSchema, image: ImageLike, names: Names) -> DdlPlan:
    database = database_of(image, names)
    if len(s.name.parts) > 1 and s.name.parts[0] != names.database or len(s.name.parts) > 2:
        raise InvalidUsage(f'database "{s.name.parts[0]}" does not exist', sqlstate="3D000")
    name = check_schema_name(s.name.last)
    if image.schema_by_name(database.id, name) is not None:
        return exists("schema", name, s.if_not_exists, s.tag, "42P06")
    ids = ItemIds(image)
    schema_id = ids.schema()
    return DdlPlan(
        (records.put(model.SCHEMAS, schema_id, Schema(schema_id, database.id, name)), ids.update()),
        s.tag,
        created=(schema_id,),
    )


def _columns(defs: tuple[st.ColumnDef, ...], what: str, image: ImageLike) -> tuple[Column, ...]:
    if not defs:
        raise InvalidUsage(f"a {what} needs at least one column", sqlstate="42601")
    check_columns([d.name for d in defs])
    return _new_columns(image, (Column(d.name, str(d.type), d.nullable, d.default_sql) for d in defs))


def _reads(defs: tuple[st.ColumnDef, ...], image: ImageLike, names: Names) -> tuple[tuple[int, tuple[str, ...]], ...]:
    """The sequences that the DEFAULTs of a new table's columns read, which are checked here."""
    found = []
    for number, each in enumerate(defs, 1):
        if each.default is not None and (ids := read_by_default(each, image, names)):
            found.append((number, ids))
    return tuple(found)


def _new_columns(image: ImageLike, columns: Iterable[Column]) -> tuple[Column, ...]:
    """Of a new relation: with ids, where the catalog keeps them."""
    return numbered(columns) if image.genesis.format_version >= records.COLUMN_IDS_FROM else tuple(columns)


def _create_table(s: st.CreateTable, image: ImageLike, names: Names) -> DdlPlan:
    schema = target_schema(image, names, s.name)
    columns = _columns(s.columns, "table", image)
    reads = _reads(s.columns, image, names)
    name = check_identifier(s.name.last)
    if taken(image, schema, name):
        return exists("relation", name, s.if_not_exists, s.tag)
    ids = ItemIds(image)
    item = Table(ids.item(), schema.id, name, s.text, columns, reads=reads)
    item, sequences = with_sequences(item, s.columns, ids, image)
    positions = [put_position(each, Position(each.start)) for each in sequences]
    return created(ids, s.tag, item, *sequences, also=positions)


def _create_source(s: st.CreateSource, image: ImageLike, names: Names) -> DdlPlan:
    schema = target_schema(image, names, s.name)
    columns = _columns(s.columns, "source", image)
    name = check_identifier(s.name.last)
    if not s.topic or len(s.topic) > 249:
        raise InvalidUsage(f'invalid topic name "{s.topic}"', sqlstate="22023", hint="1 to 249 characters")
    environment = TopicNames(image.genesis.environment_id)
    if environment.reserved(s.topic):
        raise InvalidUsage(
            f'permission denied for topic "{s.topic}"',
            sqlstate="42501",
            detail=f"topics {environment.env}.* are Tidemark's own",
            hint="copy what is to be read to a topic with another prefix",
        )
    if taken(image, schema, name):
        return exists("relation", name, s.if_not_exists, s.tag)
    of_errors = check_identifier(errors_name(name))
    if taken(image, schema, of_errors):
        raise already_exists("relation", of_errors)
    ids = ItemIds(image)
    source_id, errors_id = ids.item(), ids.item()
    source = Source(
        source_id,
        schema.id,
        name,
        s.text,
        columns,
        topic=s.topic,
        format=s.format,
        envelope=s.envelope,
        errors_id=errors_id,
    )
    errors = Errors(errors_id, schema.id, of_errors, s.text, _new_columns(image, ERRORS_COLUMNS), source_id=source_id)
    return created(ids, s.tag, source, errors)


def _create_view(s: st.CreateView, image: ImageLike, names: Names) -> DdlPlan:
    schema = target_schema(image, names, s.name)
    cluster = cluster_named(image, s.cluster or names.cluster) if s.materialized else None
    name = check_identifier(s.name.last)
    if taken(image, schema, name):
        return exists("relation", name, s.if_not_exists, s.tag)
    bound = bind_query(s.query, image, names, defines=True)
    _check_view(bound, s)
    columns = _new_columns(image, _view_columns(bound, s))
    ids = ItemIds(image)
    head = ids.item(), schema.id, name, s.text, columns
    objects = Objects.of(image)
    if image.genesis.format_version >= records.DEFINITIONS_FROM:
        query = Definition(bound.references, bound.inputs)
    else:
        query = SparkText(named_query(bound, columns, objects), bound.depends_on, bound.inputs)
    item = View(*head, query=query) if cluster is None else MaterializedView(*head, query=query, cluster_id=cluster.id)
    keep_lowered(item, bound, objects)  # what could not be told to Spark is refused here
    return created(ids, s.tag, item)


def _check_view(bound: Bound, s: st.CreateView) -> None:
    if bound.system:
        raise unsupported("a view over system relations")
    if not bound.constant:
        only_of_constants(bound.tree)
    if bound.params:
        raise InvalidUsage("there is no parameter $1", sqlstate="42P02", detail="a view cannot have parameters")
    if s.materialized and bound.volatile:
        raise InvalidUsage(
            f"materialized views cannot contain {bound.volatile}()",
            sqlstate="0A000",
            detail="its result would not be a function of the data",
            hint="use a plain view on top, or filter when you select",
        )


def _view_columns(bound: Bound, s: st.CreateView) -> tuple[Column, ...]:
    found = [c.name for c in bound.columns]
    if s.columns is not None:
        if len(s.columns) > len(found):
            raise InvalidUsage("CREATE VIEW specifies more column names than columns", sqlstate="42601")
        found[: len(s.columns)] = s.columns
    check_columns(found)
    if not found:
        raise unsupported("a view without columns")
    return tuple(Column(name, str(c.type)) for name, c in zip(found, bound.columns, strict=False))


def _create_index(s: st.CreateIndex, image: ImageLike, names: Names) -> DdlPlan:
    found = relation(image, names, s.relation)
    if isinstance(found, SystemRelation):
        raise wrong_kind(s.relation.last, "relation that can be indexed")
    if isinstance(found, View):
        raise wrong_kind(found.name, "relation that can be indexed", "create a materialized view and index that")
    cluster = cluster_named(image, s.cluster or names.cluster)
    known = {c.name: c.stored_as for c in found.columns}
    for column in s.columns:
        if column not in known:
            raise no_column(column, known)
    key = tuple(known[column] for column in s.columns)
    check_columns(list(s.columns))
    schema = image.get(model.SCHEMAS, found.schema_id)
    if s.name is not None and len(s.name.parts) > 1:
        if target_schema(image, names, s.name).id != schema.id:
            raise InvalidUsage("an index lives in the schema of its relation", sqlstate="42P17")
    name = s.name.last if s.name is not None else _index_name(image, schema, found, s.columns)
    check_identifier(name)
    if taken(image, schema, name):
        return exists("relation", name, s.if_not_exists, s.tag)
    ids = ItemIds(image)
    item = Index(
        ids.item(), schema.id, name, s.text, relation_id=found.id, key=key, cluster_id=cluster.id
    )
    return created(ids, s.tag, item)


def _index_name(image: ImageLike, schema: Schema, found: Item, columns: tuple[str, ...]) -> str:
    """``<relation>_<columns>_idx``, with a number where that is taken, cut to fit."""
    stem = "_".join((found.name, *columns)).encode()[: IDENTIFIER_BYTES_MAX - 8].decode(errors="ignore")
    name, n = f"{stem}_idx", 0
    while taken(image, schema, name):
        n += 1
        name = f"{stem}_idx{n}"
    return name


_PLANS: dict[type[st.DDL], Callable[..., DdlPlan]] = {
    st.CreateSchema: _create_schema,
    st.CreateTable: _create_table,
    st.CreateSource: _create_source,
    st.CreateView: _create_view,
    st.CreateIndex: _create_index,
    st.CreateSequence: plan_create_sequence,
    st.AlterSequence: plan_alter_sequence,
    st.Drop: plan_drop,
    st.ResetSource: plan_reset,
    st.Rename: plan_rename,
    st.RenameSchema: plan_rename_schema,
    st.SetSchema: plan_set_schema,
    st.AlterColumns: plan_columns,
    st.AlterCluster: plan_cluster,
    st.Comment: plan_comment,
}
"""What each statement is planned by: its value, an image and a session's names to what is to be appended."""


@bounded
def plan_ddl(statement: st.DDL, image: ImageLike, names: Names) -> DdlPlan:
    """The updates, tag and notices of a DDL statement.  Raises ``InvalidUsage`` with Postgres's SQLSTATEs."""
    return _PLANS[type(statement)](statement, image, names)
