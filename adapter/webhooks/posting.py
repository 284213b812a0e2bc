"""Posted rows into their sources: each is an INSERT that no statement could say.

Promises: once :meth:`Posting.post` returns, the row is durable and visible to everybody, and there is one row of that
source with that request's id, whichever adapters it was posted over and however often.  A row without an id is there
once for each return.  Of a body that is many rows there are all or none, and all of one request.

So it is ``INSERT … ON CONFLICT DO NOTHING`` on the id, whose commit hangs on that id (:mod:`adapter.execute.uniques`).
Rows without an id hang on nothing, and share commits as small INSERTs do (:mod:`adapter.execute.write_groups`).
Many rows are a plain INSERT, on the id with each row's number: another request of that id has a first row, too, and so
fails as a whole, where DO NOTHING would add what it has more.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from dataclasses import replace

from adapter.encode.parameters import decode_params
from adapter.execute.executor import TidemarkExecutor
from adapter.execute.session_names import names_of
from adapter.state.session_state import SessionState
from adapter.webhooks.requests import Headers, check, posted
from catalog_log.image import Image
from catalog_log.objects import WebhookSource
from collection.secrets import secret_in
from journal.errors import InvalidUsage
from sql.objects.identifiers import quoted
from sql.objects.names import SystemRelation, relation
from sql.statements.plan_cache import Statement
from sql.syntax.statement import Name
from trees.errors import wrong_kind

STATEMENTS_MAX = 1_000
"""Statements that are kept, two for each source: a plan takes some 20 KiB (``sql.statements.plan_cache``)."""

USER = "webhook"


class Posting:
    """Lives on the executor's event loop."""

    def __init__(self, executor: TidemarkExecutor) -> None:
        self._executor = executor
        self._statements: OrderedDict[tuple[str, str, str, str, bool], Statement] = OrderedDict()

    async def source(self, database: str, schema: str, name: str) -> WebhookSource:
        """The source of that name.  Raises 3D000, 3F000, 42P01; 42809 for what takes no posts."""
        session = SessionState(0, USER, database)
        await self._executor.open(session)

        async def named(image: Image) -> WebhookSource:
            found = relation(image, names_of(session), Name((schema, name), 0))
            if isinstance(found, SystemRelation) or not isinstance(found, WebhookSource):
                raise wrong_kind(name, "source that is posted to", "CREATE SOURCE … FROM WEBHOOK makes one")
            return found

        return await self._executor.images.certain(session, named)

    async def proved(self, item: WebhookSource, headers: Headers, body: bytes) -> None:
        """Raises ``Unproved`` for a request that the source's CHECK does not let in, 55000 where its secret is not in
        its place."""
        proof = item.webhook.check
        if proof is not None:
            secret = await asyncio.to_thread(secret_in, proof.secret)
            check(proof, secret, headers, body)

    async def post(self, database: str, schema: str, item: WebhookSource, headers: Headers, body: bytes) -> int:
        """How many rows were added; none where one was there by its id.

        Raises ``InvalidUsage`` for what is no row of it, ``Conflict`` where the source was replaced, and what an
        INSERT raises.  Cancelled it answers if the row is under way, else nothing was written.
        """
        row = posted(item, headers, body)
        if not row.rows:
            return 0
        session = SessionState(0, USER, database)
        statement = await self._statement(database, schema, item, row.request_id is not None)
        prepared = await self._executor.prepare_statement(session, statement)
        oids = prepared.param_oids
        params = decode_params(oids, [1 if value is not None and n == 0 and item.format == "bytes" else 0
                                      for n, value in enumerate(row.values)], row.values)  # fmt: skip
        try:
            result = await self._executor.run(session, prepared, params)
        except InvalidUsage as error:
            if item.webhook.many and error.sqlstate == "23505":
                return 0
            raise
        return int(result.tag.rpartition(" ")[2])

    async def _statement(self, database: str, schema: str, item: WebhookSource, once: bool) -> Statement:
        key = database, schema, item.name, item.id, once
        found = self._statements.get(key)
        if found is None:
            text = f"insert into {quoted(schema)}.{quoted(item.name)} {_rows(item, once)}"
            found = await self._executor.plans.once(text, ())
            found.parsed = replace(found.parsed, posted=item.id)
            self._statements[key] = found
            if len(self._statements) > STATEMENTS_MAX:
                self._statements.popitem(last=False)
        self._statements.move_to_end(key)
        return found


def _rows(item: WebhookSource, once: bool) -> str:
    if not item.webhook.many:
        values = ", ".join(f"${n}" for n in range(1, len(item.columns) + 1))
        return f"values ({values})" + (" on conflict do nothing" if once else "")
    headers = [f"${n}::{column.type}" for n, column in enumerate(item.columns[3:], 3)]
    values = ", ".join(["e.value", "$2::text", "e.ordinality", *headers])
    return f"select {values} from jsonb_array_elements($1::jsonb) with ordinality as e (value, ordinality)"
