"""The README's SQL does what it says: taken from the file and run as it stands."""

from __future__ import annotations

import json
import re
import time
from decimal import Decimal

import psycopg
import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from embedded.layout import ROOT
from embedded.stack import Stack

pytestmark = [pytest.mark.integration, pytest.mark.spark]

ORDERS = [
    {"id": 1, "customer": "ada", "amount": "10.50", "at": "2025-01-01T10:00:00Z"},
    {"id": 2, "customer": "grace", "amount": 3, "at": None},
    {"id": 3, "customer": "ada", "amount": "0.25", "at": "2025-01-02T10:00:00Z"},
    {"id": None, "customer": "nobody"},
]
"""The last one does not fit: it belongs in ``orders_errors``."""


def test_the_statements_work(stack: Stack) -> None:
    admin = AdminClient({"bootstrap.servers": stack.kafka})
    admin.create_topics([NewTopic("orders", 1, 1)])["orders"].result(timeout=30)
    producer = Producer({"bootstrap.servers": stack.kafka, "acks": "all"})
    for order in ORDERS:
        producer.produce("orders", json.dumps(order).encode())
    assert producer.flush(30) == 0
    text = re.search(r"```sql\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)[1]
    statements = [statement.strip() for statement in text.split(";") if statement.strip()]
    with psycopg.connect(stack.dsn(), autocommit=True) as connection:
        try:
            answers = {}
            for statement in statements:
                cursor = connection.execute(statement)
                answers[statement.split()[0]] = cursor.fetchall() if cursor.description else cursor.statusmessage
            assert any("incremental" in str(row) for row in answers["EXPLAIN"])
            deadline = time.monotonic() + 60
            last = "SELECT country, orders, amount FROM by_country ORDER BY country"
            want = [("NL", 1, Decimal("3.00")), ("UK", 2, Decimal("10.75"))]
            while (found := connection.execute(last).fetchall()) != want and time.monotonic() < deadline:
                time.sleep(0.1)
            assert found == want
            assert connection.execute("SELECT count(*) FROM orders_errors").fetchone()[0] == 1
        finally:
            connection.execute("DROP SOURCE IF EXISTS orders CASCADE")
            connection.execute("DROP TABLE IF EXISTS customers CASCADE")
