"""Which topics are made and removed: live objects' and dropped objects', nobody else's."""

from __future__ import annotations

from catalog_log.objects import ERRORS, MATERIALIZED_VIEW, SOURCE, TABLE, Item
from controllers.storage.reconcile import TopicPlan, reconcile
from journal.names import TopicNames
from tests.objects import made

NAMES = TopicNames("env")


def item(object_id: str, kind: str = TABLE) -> Item:
    return made(kind, object_id, on=() if kind in (TABLE, SOURCE) else ("u0",))


def plan(live: list[Item], dropped: list[Item], existing: list[str]) -> TopicPlan:
    return reconcile({i.id: i for i in live}, dropped, existing, NAMES)


def test_live_collections_that_we_write_get_topics_and_dropped_ones_lose_them() -> None:
    live = [item("u1"), item("u2", SOURCE), item("u3", ERRORS), item("u4", MATERIALIZED_VIEW)]
    dropped = [item("u5"), item("u6", SOURCE), item("u7", MATERIALIZED_VIEW), item("u8")]
    existing = ["env.data.u1", "env.data.u5", "env.data.u7"]
    assert plan(live, dropped, existing) == TopicPlan(("u3", "u4"), ("u5", "u7"))


def test_foreign_topics_are_never_touched() -> None:
    existing = ["env.data.u99", "other.data.u5", "clicks", "env.catalog", "env.data.", "u5"]
    assert plan([], [item("u5")], existing) == TopicPlan((), ())


def test_a_dropped_source_leaves_the_users_topic_alone() -> None:
    source = made(SOURCE, "u5", topic="clicks")
    assert plan([], [source], ["clicks", "env.data.u5"]) == TopicPlan((), ())


def test_an_id_that_lives_is_never_deleted() -> None:
    assert plan([item("u1")], [item("u1")], ["env.data.u1"]) == TopicPlan((), ())
