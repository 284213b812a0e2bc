"""Anything may arrive on the DDL topic: requests are understood, garbage is answered."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as some

from adapter.ddl_topic.messages import (
    DdlRequest,
    Garbage,
    decode_request,
    error_reply,
    ok_reply,
    parse_ddl,
    reply_headers,
    reply_topic,
)
from journal.errors import InvalidUsage
from schemas import codec


def test_json_and_avro_say_the_same():
    record = {"request_id": "r1", "sql": "create table t (a int)", "database": None, "schema": "s"}
    wanted = DdlRequest("r1", "create table t (a int)", None, "s")
    assert decode_request(json.dumps(record).encode()) == wanted
    assert decode_request(codec.encode("ddl_request", record)) == wanted


def test_the_key_stands_in_for_a_missing_id():
    assert decode_request(b'{"sql": "drop table t"}', b"k").request_id == "k"


@pytest.mark.parametrize(
    "value",
    [
        None,
        b"",
        b"hello",
        b"[]",
        b"1",
        b'{"sql": "x"}',
        b'{"request_id": 5, "sql": "x"}',
        b'{"request_id": "r"}',
        b'{"request_id": "r", "sql": ""}',
        b'{"request_id": "r", "sql": "x", "schema": 1}',
        b"T\x01\x02",
        b"T\xff",
        json.dumps({"request_id": "r" * 300, "sql": "x"}).encode(),
        b"[" * 100_000,
    ],
)
def test_garbage_has_a_reason(value):
    found = decode_request(value)
    assert isinstance(found, Garbage) and found.reason


@given(some.binary(max_size=60))
def test_no_bytes_raise(value):
    decode_request(value)
    decode_request(b"T\x01" + value)


def test_only_ddl_is_accepted():
    parse_ddl("drop table t")
    for text in ("select 1", "insert into t values (1)", "set x = 1"):
        with pytest.raises(InvalidUsage) as caught:
            parse_ddl(text)
        assert caught.value.sqlstate == "0A000"


def test_replies_and_headers():
    assert json.loads(ok_reply("r", 5, "CREATE TABLE")) == {
        "request_id": "r",
        "status": "ok",
        "catalog_ts": 5,
        "sqlstate": None,
        "message": "CREATE TABLE",
    }
    found = json.loads(error_reply("r", InvalidUsage("no", sqlstate="42P01", hint="look")))
    assert (found["status"], found["sqlstate"], found["hint"]) == ("error", "42P01", "look")
    headers = [("reply-to", b"answers"), ("correlation-id", b"7"), ("other", b"x")]
    assert reply_topic(headers) == "answers" and reply_topic([]) is None and reply_topic(None) is None
    assert reply_headers(headers) == [("correlation-id", b"7")]
