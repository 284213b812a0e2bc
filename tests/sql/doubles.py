"""Catalog images for planning tests, made as the log makes them: by folding proposals."""

from __future__ import annotations

import itertools

from catalog_log import model, records
from catalog_log.fold import VerdictKind, admit
from catalog_log.image import EMPTY, Image
from catalog_log.model import Cluster, Database, Genesis, Schema, Setting
from catalog_log.objects import TABLE, Column
from catalog_log.records import Proposal
from journal.api import Entry
from sql.objects.names import Names
from sql.statements.ddl import plan_ddl
from sql.syntax.parse import parse
from tests.objects import made

SYSTEM = {
    "pg_catalog": {"pg_class": {"oid": "oid", "relname": "name"}, "pg_type": {"oid": "oid"}},
    "information_schema": {"tables": {}},
    "tm_catalog": {"objects": {}},
}

_ids = itertools.count()


def apply(image: Image, updates, genesis: Genesis | None = None) -> Image:
    begun = genesis or image.genesis
    proposal = Proposal(
        f"p{next(_ids)}", "test", image.upper, image.upper + 1, tuple(updates), genesis, begun.format_version
    )
    image, verdict = admit(image, Entry(0, records.encode_proposal(proposal)))
    assert verdict.kind is VerdictKind.ACCEPTED, verdict
    return image


def empty_image(format_version: int = records.FORMAT_VERSION) -> Image:
    """What a new environment holds."""
    return apply(
        EMPTY,
        (
            records.put(model.DATABASES, "d1", Database("d1", "tidemark")),
            records.put(model.SCHEMAS, "s1", Schema("s1", "d1", "public")),
            records.put(model.CLUSTERS, "default", Cluster("default", "default")),
            records.put(model.SETTINGS, "next_item_id", Setting("1")),
        ),
        Genesis(format_version, "env", "topic"),
    )


def names(**more) -> Names:
    return Names(system=SYSTEM, **more)


def ddl(image: Image, *statements: str) -> Image:
    """``image`` after DDL statements."""
    for text in statements:
        image = apply(image, plan_ddl(parse(text), image, names()).updates)
    return image


def table(image: Image, key: str, called: str, kind: str = TABLE, /, **columns: str) -> Image:
    its_columns = tuple(Column(n, ty) for n, ty in columns.items())
    item = made(kind, key, called, columns=its_columns, create_sql=f"create {called}")
    return apply(image, [records.put(model.ITEMS, key, item)])


def shop() -> Image:
    """Two tables, the image of most tests."""
    return ddl(
        empty_image(),
        "create table items (id int, name text, price numeric(10,2), stock bigint, sold timestamptz, ok bool)",
        "create table orders (id int, item_id int, day date, at timestamp, weight float8, note text)",
    )
