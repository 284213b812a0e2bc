"""Rows over HTTP: what lets a request in, what it is answered, and that one id is one row, whatever went wrong."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import json
from dataclasses import replace

import aiohttp
import pytest

from adapter.webhooks.answers import NOTHING, UNKNOWN, done, refused
from adapter.webhooks.listener import Limits, Webhooks
from adapter.webhooks.posting import Posting
from adapter.webhooks.requests import Unproved, check, posted
from catalog_log.objects import Column, PostCheck, Secret, Webhook, WebhookSource
from journal.errors import Conflict, Indeterminate, InvalidUsage, Rejected, Unavailable
from tests.adapter.stories import before_commit
from tests.adapter.test_uniques import run

AT = "tidemark", "public"
PLACE = Secret("env", "TIDEMARK_SECRET_HOOK")
COLUMNS = tuple(Column(name, "text", id=n) for n, name in enumerate(("body", "request_id", "a", "headers"), 1))


def source(**said) -> WebhookSource:
    return WebhookSource("u1", "s1", "h", "", COLUMNS, webhook=Webhook(**{"format": "text", "id_header": "id"} | said))


# --- pure


def test_a_request_is_a_row_of_its_body_its_id_and_its_headers() -> None:
    item = source(included=("a",), all_headers=True, left_out=("c",), check=PostCheck("key", PLACE))
    found = posted(item, [("id", " r1 "), ("a", "1"), ("c", "3"), ("a", "2"), ("key", "sesame")], b"x")
    assert found.request_id == "r1" and found.values[:3] == (b"x", b"r1", b"1, 2")
    assert json.loads(found.values[3]) == {"id": " r1 ", "a": "1, 2"}, "no secret is a row's"
    assert posted(source(included=("a",)), [], b"x").values == (b"x", None, None)


@pytest.mark.parametrize(
    ("headers", "body", "sqlstate"),
    [
        ([("id", "")], b"", "22023"),
        ([("id", "a"), ("id", "a")], b"", "22023"),
        ([("id", "x" * 256)], b"", "22023"),
        ([("id", "é")], b"", "22023"),
        ([("a", b"\xff".decode(errors="surrogateescape"))], b"", "22021"),
        ([], b"\xff", "22021"),
        ([], b"a\0b", "22021"),
    ],
)
def test_what_is_no_row_is_told(headers, body, sqlstate) -> None:
    with pytest.raises(InvalidUsage) as error:
        posted(source(included=("a",)), headers, body)
    assert error.value.sqlstate == sqlstate and refused(error.value, False).status == 400


def test_bytes_may_be_any() -> None:
    assert posted(source(format="bytes"), [], b"\xff\0").values[0] == b"\xff\0"


@pytest.mark.parametrize(
    ("proof", "value", "fine"),
    [
        (PostCheck("k", PLACE), "sesame", True),
        (PostCheck("k", PLACE), "sesam", False),
        (PostCheck("k", PLACE, "sha256", "hex", "v="),
         "v=" + hmac.new(b"sesame", b"body", hashlib.sha256).hexdigest(), True),
        (PostCheck("k", PLACE, "sha256", "hex", "v="), hmac.new(b"sesame", b"body", hashlib.sha256).hexdigest(), False),
        (PostCheck("k", PLACE, "sha256", "hex", "v="), "v=zz", False),
        (PostCheck("k", PLACE, "sha256", "hex"), hmac.new(b"sesame", b"other", hashlib.sha256).hexdigest(), False),
        (PostCheck("k", PLACE, "sha256", "base64"), "????", False),
    ],
)  # fmt: skip
def test_a_check_lets_in_who_knows_the_secret(proof, value, fine) -> None:
    if fine:
        return check(proof, "sesame", [("k", value)], b"body")
    with pytest.raises(Unproved) as error:
        check(proof, "sesame", [("k", value)], b"body")
    assert refused(error.value, True).status == 401


def test_a_proof_that_is_missing_or_there_twice_is_none() -> None:
    for headers in ([], [("k", "sesame"), ("k", "sesame")]):
        with pytest.raises(Unproved):
            check(PostCheck("k", PLACE), "sesame", headers, b"")


@pytest.mark.parametrize(
    ("error", "status", "written"),
    [
        (InvalidUsage("x"), 400, NOTHING),
        (InvalidUsage("x", sqlstate="42P01"), 404, NOTHING),
        (InvalidUsage("x", sqlstate="42809"), 404, NOTHING),
        (InvalidUsage("x", sqlstate="55000"), 503, NOTHING),
        (Rejected("x", sqlstate="54000"), 413, NOTHING),
        (Conflict("x"), 409, NOTHING),
        (Rejected("x"), 503, NOTHING),
        (Unavailable("x"), 503, NOTHING),
        (Indeterminate("x"), 504, UNKNOWN),
    ],
)
def test_an_answer_says_which_family_it_is(error, status, written) -> None:
    found = refused(error, True)
    assert (found.status, found.body["written"]) == (status, written)


def test_who_had_no_id_is_told_what_sending_again_means() -> None:
    assert "twice" in refused(Indeterminate("x"), False).body["retry"]
    assert "once" in refused(Indeterminate("x"), True).body["retry"]
    assert done(True).body != done(False).body and done(False).status == 200


# --- over adapters, in memory


async def post(poster: Posting, body: bytes, request_id: str | None = None, name: str = "h") -> bool:
    added = await post_many(poster, body, request_id, name)
    assert added in (0, 1)
    return added == 1


async def post_many(poster: Posting, body: bytes, request_id: str | None = None, name: str = "h", more=()) -> int:
    item = await poster.source(*AT, name)
    headers = [] if request_id is None else [("idempotency-key", request_id)]
    return await poster.post(*AT, item, [*headers, *more], body)


MADE = "create source h from webhook body format json"


def test_one_id_is_one_row_over_any_adapter() -> None:
    async def story(world):
        async with world.adapter("a") as a, world.adapter("b") as b:
            await a.sql(MADE)
            one, other = Posting(a.executor), Posting(b.executor)
            assert await post(one, b'{"n": 1}', "r1") is True
            assert await post(other, b'{"n": 1}', "r1") is False
            assert await post(one, b'{"n": 2}', "r1") is False, "the first one stays"
            assert await post(other, b'{"n": 2}', "r2") is True
            assert await post(one, b"3") is True and await post(one, b"3") is True, "without an id each is one"
            told = await b.sql("select body::text, request_id from h order by 1, 2")
            assert told == [("3", None), ("3", None), ('{"n": 1}', "r1"), ('{"n": 2}', "r2")]

    run(story)


def test_who_is_second_at_the_commit_adds_nothing() -> None:
    async def story(world):
        async with world.adapter("a") as a, world.adapter("b") as b:
            await a.sql(MADE)
            one, other = Posting(a.executor), Posting(b.executor)
            await post(other, b"0", "r0")
            refused_before = a.oracle.state.stats.parts_refused
            before_commit(a, lambda: post(other, b"1", "r1"))
            assert await post(one, b"1", "r1") is False
            assert a.oracle.state.stats.parts_refused == refused_before + 1, "both had looked, and found it free"
            assert await a.sql("select count(*) from h") == [(2,)]

    run(story)


def test_many_at_once_with_the_same_ids_are_each_once() -> None:
    async def story(world):
        async with world.adapter("a") as a, world.adapter("b") as b:
            await a.sql(MADE)
            posters = Posting(a.executor), Posting(b.executor)
            each = [post(poster, str(n).encode(), f"r{n}") for n in range(12) for poster in posters for _ in range(2)]
            added = await asyncio.gather(*each)
            assert sum(added) == 12
            assert await a.sql("select count(*), count(distinct request_id) from h") == [(12, 12)]

    run(story)


def test_a_source_that_was_replaced_takes_nothing_that_was_let_in_by_the_one_before() -> None:
    async def story(world):
        async with world.adapter("a") as a:
            await a.sql(MADE)
            poster = Posting(a.executor)
            item = await poster.source(*AT, "h")
            await poster.post(*AT, item, [("idempotency-key", "r")], b"1")
            await a.sql("drop source h")
            await a.sql(MADE)
            with pytest.raises(Conflict):
                await poster.post(*AT, item, [("idempotency-key", "r")], b"1")
            assert await a.sql("select count(*) from h") == [(0,)]

    run(story)


def test_a_body_of_many_rows_is_there_as_a_whole_or_not_at_all() -> None:
    async def story(world):
        async with world.adapter("a") as a, world.adapter("b") as b:
            await a.sql("create source h from webhook body format json array include header 'x' as x include headers")
            await a.sql("create source l from webhook body format ndjson")
            one, other = Posting(a.executor), Posting(b.executor)
            assert await post_many(one, b'[{"n": 1}, null, [2.50]]', "r1", more=[("x", "y")]) == 3
            assert await post_many(other, b'[{"n": 1}, null, [2.50]]', "r1") == 0
            assert await post_many(other, b"[1, 2, 3, 4, 5]", "r1") == 0, "the first one stays, whatever comes later"
            assert await post_many(one, b"[]", "r2") == 0, "of which nothing says that it was here"
            assert await post_many(other, b"[7]", "r2") == 1
            assert await post_many(one, b"[8, 8]") == 2 and await post_many(one, b"[8, 8]") == 2, "without an id"
            told = await b.sql("select body::text, request_id, ordinality, x from h order by 2, 3 limit 4")
            assert told == [('{"n": 1}', "r1", 1, "y"), ("null", "r1", 2, "y"), ("[2.50]", "r1", 3, "y"),
                            ("7", "r2", 1, None)]  # fmt: skip
            assert await a.sql("select count(*), count(headers) from h") == [(8, 8)]
            assert await post_many(one, b'{"a": 1}\r\n\n"\xe2\x80\xa8"\n 3 ', "r", "l") == 3
            assert await post_many(other, b"4", "r", "l") == 0
            told = await a.sql("select body::text, ordinality from l order by 2")
            assert told == [('{"a": 1}', 1), ('"\u2028"', 2), ("3", 3)]
            lists = (b'{"a": 1}', b"[1, 2", b"1", b'["\\u0000"]', b'["\\ud800"]', b"[1e999999]", b"[NaN]", b"",
                     b"[" * 200 + b"]" * 200)  # fmt: skip
            lines = (b"1\n2,3", b"1],[2", b"1\n{", b"1 2", b"[\n]", b"1\n2\0")
            for name, body in (*(("h", each) for each in lists), *(("l", each) for each in lines)):
                with pytest.raises(InvalidUsage) as error:
                    await post_many(one, body, "bad", name)
                assert refused(error.value, True).status == 400, body
            assert await a.sql("select count(*) from h union all select count(*) from l") == [(8,), (3,)]

    run(story)


def test_of_many_rows_who_is_second_at_the_commit_adds_nothing() -> None:
    async def story(world):
        async with world.adapter("a") as a, world.adapter("b") as b:
            await a.sql("create source h from webhook body format json array")
            one, other = Posting(a.executor), Posting(b.executor)
            before_commit(a, lambda: post_many(other, b"[1, 2]", "r1"))
            assert await post_many(one, b"[1, 2, 3, 4]", "r1") == 0
            assert await a.sql("select body::text from h order by ordinality") == [("1",), ("2",)]
            each = [post_many(poster, b"[1, 2, 3]", f"s{n}") for n in range(4) for poster in (one, other) for _ in "ab"]
            assert sum(await asyncio.gather(*each)) == 12
            assert await a.sql("select count(*), count(distinct request_id) from h") == [(14, 5)]

    run(story)


def test_rows_of_a_body_are_counted_before_they_are_many_times_as_large() -> None:
    many = source(format="json array", all_headers=True)
    assert posted(many, [("id", "r")], b"[1, [2, 3]]").rows == 2
    for body, headers in ((b"[" + b"1," * 10_000 + b"1]", []), (b"[" + b"1," * 999 + b"1]", [("x", "y" * 5000)])):
        with pytest.raises(InvalidUsage) as error:
            posted(many, headers, body)
        assert error.value.sqlstate == "54000" and refused(error.value, False).status == 413


def test_what_is_no_json_and_what_is_no_source_changes_nothing() -> None:
    async def story(world):
        async with world.adapter("a") as a:
            await a.sql(MADE)
            await a.sql("create table t (a int)")
            poster = Posting(a.executor)
            for name, body, status in (("h", b"{", 400), ("t", b"1", 404), ("none", b"1", 404)):
                with pytest.raises(InvalidUsage) as error:
                    await post(poster, body, "r", name)
                assert refused(error.value, True).status == status, name
            with pytest.raises(InvalidUsage) as error:
                await poster.source("nowhere", "public", "h")
            assert refused(error.value, True).status == 404
            with pytest.raises(InvalidUsage):
                await a.sql("insert into h values ('1', 'r')")
            assert await a.sql("select count(*) from h") == [(0,)]

    run(story)


# --- over HTTP


def test_a_request_is_answered_over_http_within_its_limits(monkeypatch) -> None:
    async def story(world):
        monkeypatch.delenv("TIDEMARK_SECRET_HOOK", raising=False)
        async with world.adapter("a") as a:
            await a.sql(MADE)
            await a.sql("create source k from webhook body format text include header 'x' as x check (with (headers, "
                        "secret env 'TIDEMARK_SECRET_HOOK' as s) constant_time_eq(headers->'key', s))")  # fmt: skip
            limits = replace(Limits(), body_bytes_max=1000, connections_max=2)
            served = Webhooks(Posting(a.executor), everybody=False, limits=limits)
            host, port = await served.start("127.0.0.1", 0)
            try:
                async with aiohttp.ClientSession(f"http://{host}:{port}") as http:

                    async def said(path, body, **headers):
                        async with http.post(f"/webhook/tidemark/public/{path}", data=body, headers=headers) as answer:
                            return answer.status, await answer.json()

                    assert await said("h", b'{"a": 1}', **{"Idempotency-Key": "r"}) == (200, {"added": 1})
                    assert await said("h", b'{"a": 1}', **{"Idempotency-Key": "r"}) == (200, {"added": 0})
                    await a.sql("create source m from webhook body format ndjson")
                    assert await said("m", b"1\n2\n", **{"Idempotency-Key": "r"}) == (200, {"added": 2})
                    assert await said("m", b"1\n2\n", **{"Idempotency-Key": "r"}) == (200, {"added": 0})
                    status, told = await said("m", b"1\n\n{")
                    assert (status, told["sqlstate"]) == (400, "22P02") and "line 3 of the body" in told["error"]
                    assert (await said("h", b"{"))[0] == 400
                    assert (await said("h", b"1" * 1001))[0] == 413
                    assert (await said("h", b"1", **{"Content-Encoding": "gzip"}))[0] == 415
                    assert (await said("none", b"1"))[0] == 404
                    assert (await said("k", b"1", key="sesame"))[0] == 503, "the secret is not in its place"
                    monkeypatch.setenv("TIDEMARK_SECRET_HOOK", "sesame")
                    assert (await said("k", b"1"))[0] == 401
                    assert await said("k", b"1", key="sesame", x="é") == (200, {"added": 1})
                    served._everybody = True
                    assert (await said("h", b"1"))[0] == 403, "others reach it, and nothing is proved"
                    assert (await said("k", b"2", key="sesame"))[0] == 200
                assert await a.sql("select body, x from k order by body") == [("1", "é"), ("2", None)]
                assert await a.sql("select count(*) from h") == [(1,)]
            finally:
                await served.stop()

    run(story)
