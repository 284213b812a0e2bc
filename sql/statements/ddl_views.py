"""CREATE VIEW, MATERIALIZED VIEW and INDEX: what is worked out from relations and kept.  Pure."""

from __future__ import annotations

from catalog_log import model, records
from catalog_log.model import Schema
from catalog_log.objects import Column, Definition, Index, Item, MaterializedView, SparkText, View
from journal.errors import InvalidUsage
from sql.binding.bind import Bound, bind_query
from sql.binding.recursion import only_of_constants
from sql.objects.called import Objects
from sql.objects.identifiers import IDENTIFIER_BYTES_MAX, check_columns, check_identifier
from sql.objects.item_ids import ItemIds
from sql.objects.names import ImageLike, Names, SystemRelation, cluster_named, relation, target_schema
from sql.statements.ddl_clustering import clustered
from sql.statements.ddl_made import created, exists, new_columns, taken
from sql.statements.plans import DdlPlan
from sql.syntax import statements as st
from sql.views.kept_views import keep_lowered, named_query
from trees.errors import no_column, unsupported, wrong_kind


def plan_create_view(s: st.CreateView, image: ImageLike, names: Names) -> DdlPlan:
    schema = target_schema(image, names, s.name)
    cluster = cluster_named(image, s.cluster or names.cluster) if s.materialized else None
    name = check_identifier(s.name.last)
    if taken(image, schema, name):
        return exists("relation", name, s.if_not_exists, s.tag)
    bound = bind_query(s.query, image, names, defines=True)
    _check_view(bound, s)
    columns = new_columns(image, _view_columns(bound, s))
    ids = ItemIds(image)
    head = ids.item(), schema.id, name, s.text, columns
    objects = Objects.of(image)
    if image.genesis.format_version >= records.DEFINITIONS_FROM:
        query = Definition(bound.references, bound.inputs)
    else:
        query = SparkText(named_query(bound, columns, objects), bound.depends_on, bound.inputs)
    item = View(*head, query=query) if cluster is None else MaterializedView(*head, query=query, cluster_id=cluster.id)
    keep_lowered(item, bound, objects)  # what could not be told to Spark is refused here
    return created(ids, s.tag, item, also=clustered(item, s.cluster_by))


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


def plan_create_index(s: st.CreateIndex, image: ImageLike, names: Names) -> DdlPlan:
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


PLANS = {st.CreateView: plan_create_view, st.CreateIndex: plan_create_index}
