"""Which topics are Tidemark's own, and which a user may name."""

from __future__ import annotations

import pytest

from journal.names import TopicNames

NAMES = TopicNames("shop")


@pytest.mark.parametrize(
    "topic",
    [NAMES.catalog, NAMES.oracle, NAMES.views, NAMES.ddl, NAMES.checkpoints(NAMES.oracle), NAMES.commands("storage"),
     NAMES.work("storage"), NAMES.data("u1")],
)  # fmt: skip
def test_what_we_write_is_nobodys(topic):
    assert NAMES.kept(topic) and NAMES.reserved(topic) and not NAMES.takes_replies(topic)


def test_the_prefix_is_ours_but_for_answers():
    assert NAMES.reserved("shop.orders") and not NAMES.takes_replies("shop.orders")
    assert not NAMES.kept("shop.orders"), "a source of an older release may be over it"
    for topic in ("shop.replies", "shop.replies.billing"):
        assert NAMES.reserved(topic) and NAMES.takes_replies(topic) and not NAMES.kept(topic)
    assert not NAMES.takes_replies("shop.repliesx")
    for topic in ("shop", "shop-orders", "shopping.orders", "orders", "other.catalog"):
        assert not NAMES.reserved(topic) and not NAMES.kept(topic) and NAMES.takes_replies(topic)
