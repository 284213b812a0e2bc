"""SHOW objects, SHOW CREATE and SHOW variables: small answers from the image and the session.  Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

import pyarrow as pa

from adapter.state.interfaces import OutputColumn, Prepared, Result
from adapter.state.session_state import SessionState
from adapter.system.kinds import KIND_ROWS
from adapter.system.types import type_display
from catalog_log import model
from catalog_log.objects import KINDS, Item
from sql.objects.identifiers import quoted
from sql.objects.names import (
    ImageLike,
    Names,
    SystemRelation,
    candidates,
    find,
    relation,
    schema_named,
    target_schema,
)
from sql.syntax import statements as st
from sql.syntax.statements import KIND_WORDS
from trees.errors import no_relation, wrong_kind
from values.types import arrow_type, parse_type

_KINDS = {
    **{each.plural: tuple(of.kind for of in KINDS if of.word == each.word) for each in KINDS if each.plural},
    "objects": tuple(each.kind for each in KINDS),
}
"""What SHOW lists under each word: of kinds that are called alike, all."""

PLAN_CACHE = "plan_cache"
"""``SHOW plan_cache``: how this adapter's plan cache does.  It is no variable: it belongs to no session."""


def batch(columns: tuple[OutputColumn, ...], rows: Sequence[tuple]) -> pa.RecordBatch:
    """Rows as one record batch of ``columns``."""
    arrays = [pa.array([row[i] for row in rows], arrow_type(column.type)) for i, column in enumerate(columns)]
    return pa.RecordBatch.from_arrays(arrays, [f"c{i}" for i in range(len(columns))])


def shown(prepared: Prepared, rows: Sequence[tuple]) -> Result:
    """Rows as the result of a statement whose columns were told."""
    return Result(prepared.tag_hint, prepared.columns, [batch(prepared.columns, rows)])


def check_variable(statement: st.ShowVariable, session: SessionState) -> None:
    """42704 for a name that is none."""
    if statement.name not in ("all", PLAN_CACHE):
        session.variable(statement.name)


def show_variable(statement: st.ShowVariable, session: SessionState) -> list[tuple]:
    """42704 for a name that is none."""
    if statement.name == "all":
        return [(name, value, "") for name, value in session.show_all()]
    return [(session.variable(statement.name),)]


def show_objects(statement: st.ShowObjects, image: ImageLike, names: Names) -> list[tuple]:
    """The rows of SHOW TABLES and its kin, by name.  3F000, 42P01 for what it names."""
    return (
        [
            row
            for row in sorted(_rows(statement, image, names), key=lambda r: str(r[0]))
            if _like(row[0], statement.like)
        ]
        if statement.what != "columns"
        else list(_rows(statement, image, names))
    )


def _rows(statement: st.ShowObjects, image: ImageLike, names: Names) -> list[tuple]:
    what = statement.what
    if what == "databases":
        return [(value.name,) for _, value in image.all(model.DATABASES)]
    if what == "schemas":
        return [(schema.name,) for schema in image.schemas_in(image.database_by_name(names.database).id)]
    if what == "clusters":
        found = []
        for _, cluster in image.all(model.CLUSTERS):
            node = image.get(model.NODES, f"compute/{cluster.id}")
            found.append((cluster.name, node.address if node else None))
        return found
    if what == "columns":
        item = relation(image, names, statement.on)
        if isinstance(item, SystemRelation):
            raise wrong_kind(str(statement.on), "relation of this catalog", "ask information_schema.columns")
        return [
            (c.name, c.nullable, type_display(parse_type(c.type)))
            for c in item.columns
            if _like(c.name, statement.like)
        ]
    on = relation(image, names, statement.on) if statement.on is not None else None
    schema = (
        schema_named(image, names, statement.schema.last)
        if statement.schema is not None
        else target_schema(image, names, st.Name(("",)))
    )
    return [
        _row(item, what, image)
        for item in image.items_in(schema.id)
        if item.kind in _KINDS[what] and (on is None or item.depends_on == (on.id,))
    ]


def _row(item: Item, what: str, image: ImageLike) -> tuple:
    if what == "objects":
        return (item.name, KIND_WORDS[item.kind])
    return (item.name, *KIND_ROWS[item.kind].listed(item, image))


def _like(name: str, pattern: str | None) -> bool:
    if pattern is None:
        return True
    regex = "".join(".*" if c == "%" else "." if c == "_" else re.escape(c) for c in pattern)
    return re.fullmatch(regex, name, re.DOTALL) is not None


def show_create(statement: st.ShowCreate, image: ImageLike, names: Names) -> list[tuple]:
    """``(qualified name, statement that makes it)``.  42P01, 42809."""
    found = find(image, names, statement.name)
    if found is None:
        raise no_relation(str(statement.name), candidates(image, names, statement.name), statement.name.start + 1)
    if isinstance(found, SystemRelation) or found.word != KIND_WORDS[statement.kind]:
        raise wrong_kind(statement.name.last, KIND_WORDS[statement.kind])
    schema = image.get(model.SCHEMAS, found.schema_id)
    name = ".".join(map(quoted, (names.database, schema.name, found.name)))
    return [(name, KIND_ROWS[found.kind].created(found, name, image))]


ROWS: dict[type[st.Statement], Callable[..., list[tuple]]] = {st.ShowObjects: show_objects, st.ShowCreate: show_create}
"""What shows something of the catalog: its rows, of the statement, an image and a session's names."""
