"""CREATE SOURCE … FROM WEBHOOK: the columns of what is posted, and the key that keeps each request once.  Pure.

A request's id is a column, and unique: so whether it was there is what an index knows, and that it stays once is what
commits already keep (:mod:`adapter.execute.uniques`).  Turned down: ids that are forgotten after a time.  A sender that
retries later than that would add its row again, and nobody would see it; ids go with their rows instead.
"""

from __future__ import annotations

from dataclasses import replace

from catalog_log import records
from catalog_log.objects import UNIQUE, Column, Webhook, WebhookSource
from catalog_log.objects.reading import BYTES, JSON, TEXT
from catalog_log.objects.webhook import JSON_ARRAY, NDJSON
from journal.errors import InvalidUsage
from sql.objects.identifiers import check_columns, check_identifier
from sql.objects.item_ids import ItemIds
from sql.objects.names import ImageLike, Names, target_schema
from sql.statements.ddl_clustering import how_stored
from sql.statements.ddl_connections import check_secret
from sql.statements.ddl_constraints import with_constraints
from sql.statements.ddl_made import created, exists, new_columns, taken
from sql.statements.plans import DdlPlan
from sql.syntax import statements as st
from sql.syntax.column_defs import SYSTEM_COLUMNS
from sql.syntax.constraints import Constraint
from trees.errors import unsupported

_TYPES = {JSON: "jsonb", TEXT: "text", BYTES: "bytea", JSON_ARRAY: "jsonb", NDJSON: "jsonb"}

HEADERS_MAX = 100
"""Headers that are columns: a request has at most 128 (``adapter.webhooks.listener``)."""


def plan_create_webhook(s: st.CreateWebhook, image: ImageLike, names: Names) -> DdlPlan:
    """A new source and the index of its requests' ids.

    Raises 42P07, 3F000, 42501, 42622, 42701, 42704; 22023 for what is no place of a secret, 54011 for too many
    headers, 0A000 in catalogs of formats before 13, and 14 where a body is many rows.
    """
    schema = target_schema(image, names, s.name)
    name = check_identifier(s.name.last)
    webhook = Webhook(
        s.format, s.id_header, tuple([each for each, _ in s.included]), s.all_headers, s.left_out, s.check
    )
    least = records.POSTED_MANY_FROM if webhook.many else records.WEBHOOKS_FROM
    if image.genesis.format_version < least:
        what = f"BODY FORMAT {s.format.upper()}" if webhook.many else "FROM WEBHOOK"
        raise unsupported(
            f"{what} in a catalog of format {image.genesis.format_version}",
            hint=f"such sources are kept by catalogs made with format {least} or later",
        )
    if len(s.included) > HEADERS_MAX:
        raise InvalidUsage(f"{len(s.included)} headers as columns, at most {HEADERS_MAX} are taken", sqlstate="54011")
    if s.check is not None:
        check_secret("secret", s.check.secret)
    columns = [Column("body", _TYPES[s.format], False), Column("request_id", "text")]
    if webhook.many:
        columns.append(Column("ordinality", "int8", False))
    key = tuple([each.name for each in columns[1:]])
    for _, column in s.included:
        if column in SYSTEM_COLUMNS:
            told = f'column name "{column}" conflicts with a system column name'
            raise InvalidUsage(told, sqlstate="42701")
        columns.append(Column(check_identifier(column), "text"))
    if s.all_headers:
        columns.append(Column("headers", "jsonb", False))
    check_columns([each.name for each in columns])
    if taken(image, schema, name):
        return exists("relation", name, s.if_not_exists, s.tag)
    ids = ItemIds(image)
    item = WebhookSource(ids.item(), schema.id, name, s.text, new_columns(image, columns), webhook=webhook)
    where = names if s.cluster is None else replace(names, cluster=s.cluster)
    item, indexes = with_constraints(item, [Constraint(UNIQUE, key)], schema, ids, image, where)
    return created(ids, s.tag, item, *indexes, also=how_stored(item, s.stored, image))


PLANS = {st.CreateWebhook: plan_create_webhook}
