"""Logs that were written in formats 1 to 5 and 7 to 10 are read by today's code, object for object, and go on.

``kept/format_<n>.json``: the records as they were written then, and what the code of then read in them.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from catalog_log import objects
from catalog_log.delta import from_empty
from catalog_log.fold import VerdictKind, admit, admit_all, fold
from catalog_log.image import EMPTY
from catalog_log.objects import MaterializedView, SparkText, View, cluster_of, own_columns, view_inputs
from catalog_log.records import DEFINITIONS_FROM, SINKS_FROM, Proposal, encode_proposal
from controllers.commands import STORAGE, compute
from controllers.commands_log import decode, encode
from journal.api import Entry
from lower.spark.lowering import spark_sql
from schemas import codec
from sql.binding.bind import bind_query
from sql.objects.called import Objects
from sql.statements.ddl import plan_ddl
from sql.statements.select import plan_select
from sql.syntax.parse import parse
from sql.views.kept_views import inline_views, spark_query
from subscribers.translate import translate
from tests.sql.doubles import names

KEPT = [json.loads(path.read_text()) for path in sorted((Path(__file__).parent / "kept").glob("*.json"))]


@pytest.fixture(params=KEPT, ids=[f"format {each['format']}" for each in KEPT])
def kept(request):
    """``(what was kept, the image of it)``."""
    entries = [Entry(n, bytes.fromhex(value)) for n, value in enumerate(request.param["records"])]
    image = fold(EMPTY, entries)
    assert image == admit_all(EMPTY, entries)[0]
    return request.param, image


def test_every_object_is_what_it_was(kept) -> None:
    log, image = kept
    assert image.stats == (len(log["records"]), 0, 0) and image.genesis.format_version == log["format"]
    assert image.broken() == []
    found = {}
    for item in image.objects():
        query = item.query if isinstance(item, (View, MaterializedView)) else None
        source = isinstance(item, objects.Source)
        found[item.id] = {
            "name": item.name, "kind": item.kind,
            "query_sql": query.sql if isinstance(query, SparkText) else None, "inputs": list(view_inputs(item)),
            "depends_on": list(item.depends_on), "cluster_id": cluster_of(item),
            "columns": [[c.name, c.type, c.nullable, c.default] for c in own_columns(item)],
            "topic": item.topic if source else None,
            "options": {name: getattr(item, name) for name in ("format", "envelope", "errors_id")} if source else {},
            "index_columns": list(item.key) if isinstance(item, objects.Index) else [],
        }  # fmt: skip
    own = ("lowered", "column_ids")
    assert found == {i: {k: v for k, v in each.items() if k not in own} for i, each in log["objects"].items()}
    ids = {item.id: [column.id for column in own_columns(item)] for item in image.objects()}
    assert ids == {i: each.get("column_ids", [0] * len(each["columns"])) for i, each in log["objects"].items()}


def test_views_are_read_and_maintained_by_the_text_that_they_were_kept_as(kept) -> None:
    log, image = kept
    for item in image.objects():
        if isinstance(item, (View, MaterializedView)):
            text = spark_query(item, Objects.of(image))
            if log["format"] < DEFINITIONS_FROM:  # later ones are lowered by the code of now
                assert text == log["objects"][item.id]["query_sql"]
    query = parse("select * from of_views o join both_ b on b.id = o.n").ast
    plan = plan_select(query, image, names())
    assert len(plan.columns) == 5
    if log["format"] < DEFINITIONS_FROM:  # and their words are not taken for those of a query of now
        bound = bind_query(query, image, names())
        assert plan.spark_sql([]) == spark_sql(inline_views(bound.tree, bound.relations, Objects.of(image)))


def test_it_goes_on_as_code_of_then_can_read_it(kept) -> None:
    """Another process may still run older code: what is written is of the version that it knows."""
    log, image = kept
    for text in ("create view later as select * from over_cheap, app.items", "create table more (a int)",
                 "create materialized view last as select n, count(*) from later group by n"):  # fmt: skip
        plan = plan_ddl(parse(text), image, names())
        known = range(1, {3: 2, 4: 3, 5: 3, 7: 3, 8: 3, 9: 3, 10: 3}.get(log["format"], 1) + 1)
        assert {codec.frame_version(u.value) for u in plan.updates if u.value is not None} <= set(known)
        proposal = Proposal("p", "w", image.upper, image.upper + 1, tuple(plan.updates), None, log["format"])
        image, verdict = admit(image, Entry(99, encode_proposal(proposal)))
        assert verdict.kind is VerdictKind.ACCEPTED
    last = next(item for item in image.objects() if item.name == "last")
    assert isinstance(last.query, SparkText) == (log["format"] < DEFINITIONS_FROM)
    assert "`u" in spark_query(last, Objects.of(image))


def test_controllers_are_told_what_they_were_told(kept) -> None:
    """Subscribers of two releases may run side by side: of one delta they must send the same."""
    log, image = kept
    views = {"view"} if log["format"] >= DEFINITIONS_FROM else set()
    sinks = {"sink"} if log["format"] >= SINKS_FROM else set()
    for controller, kinds in (
        (STORAGE, {"table", "source", "errors", "materialized_view"} | sinks),
        (compute("default"), {"table", "source", "errors", "materialized_view", "index"} | views),
    ):
        commands = translate(from_empty(image), controller)
        assert {c.item.kind for c in commands if c.item is not None} == kinds
        assert [decode(encode(c)) for c in commands] == [[c] for c in commands]
