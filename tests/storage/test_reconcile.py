"""Which topics are made and removed: live objects' and dropped objects', nobody else's."""

from __future__ import annotations

from catalog_log.objects import ERRORS, MATERIALIZED_VIEW, SOURCE, TABLE, Item
from controllers.storage.reconcile import TopicPlan, reconcile
from journal.names import TopicNames
from tests.objects import made

NAMES = TopicNames("env")


def item(object_id: str, kind: str = TABLE) -> Item:
    return made(kind, object_id, on=() if kind in (TABLE, SOURCE) else ("u0",))


def plan(live: list[Item], existing: list[str], *, next_id: int = 20, more: tuple[str, ...] = (), early: bool = False):
    known = {i.id for i in live} | set(more)
    return reconcile({i.id: i for i in live}, known.__contains__, next_id, existing, NAMES, early)


LIVE = [item("u1"), item("u2", SOURCE), item("u3", ERRORS), item("u4", MATERIALIZED_VIEW)]


def test_topics_of_what_was_dropped_go() -> None:
    existing = ["env.data.u1", "env.data.u5", "env.data.u7"]
    assert plan(LIVE, existing) == TopicPlan((), ("u5", "u7"))


def test_where_somebody_may_wait_for_them_topics_are_made_early() -> None:
    assert plan(LIVE, ["env.data.u1"], early=True) == TopicPlan(("u3", "u4"), ())


def test_foreign_topics_are_never_touched() -> None:
    existing = ["env.data.u99", "other.data.u5", "clicks", "env.catalog", "env.data.", "u5", "env.data.x5"]
    assert plan([], [*existing, "env.data.u5.b"]) == TopicPlan((), ())


def test_an_id_that_lives_is_never_deleted() -> None:
    assert plan([item("u1")], ["env.data.u1"]) == TopicPlan((), ())


def test_what_the_commands_do_not_know_yet_and_the_catalog_does_is_alive() -> None:
    assert plan([], ["env.data.u7"], more=("u7",)) == TopicPlan((), ())
    assert plan([], ["env.data.u7"], next_id=7) == TopicPlan((), ()), "made after the catalog was looked at"
