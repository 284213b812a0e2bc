"""The figures of writes are measured, small: that they can be, and that each checks what it has written.

Every day TPC-C's terminals run on logs in memory (``tests/adapter/test_tpcc.py``); this takes a minute and a half."""

from __future__ import annotations

import pytest

from bench import contention, topics
from bench.tpcc import figures as tpcc
from bench.tpcc.data import Scale
from embedded.stack import Stack

pytestmark = [pytest.mark.integration, pytest.mark.spark, pytest.mark.long]


def test_transactions_of_tpcc_leave_what_its_conditions_ask(stack: Stack) -> None:
    dsns = [stack.dsn(number) for number in range(2)]
    found = tpcc.figures(dsns, scale=Scale(warehouses=2, customers=10, items=50), seconds=2.0)
    assert [each.name for each in found] == list(tpcc.NAMES)
    assert found[0].ours > 0


def test_sessions_that_change_rows_at_once_lose_none(stack: Stack) -> None:
    def wanted(name: str) -> bool:
        return name != contention.ONE_ROW_SET  # an etcd is compiled for it, which takes minutes the first time

    found = contention.figures(stack, wanted, seconds=1)
    assert {each.name for each in found} == {name for name in contention.NAMES if wanted(name)}
    assert all(each.ours > 0 for each in found)


def test_messages_become_rows_and_rows_messages(stack: Stack) -> None:
    found = topics.figures(stack, count=2_000)
    assert [each.name for each in found] == list(topics.NAMES)
    assert all(each.ours > 0 for each in found)
