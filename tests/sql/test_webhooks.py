"""CREATE SOURCE … FROM WEBHOOK: what is kept of it, what is refused, and what is shown."""

from __future__ import annotations

import pytest

from adapter.execute.show import ROWS as SHOWN
from catalog_log.object_records import from_record, to_record
from catalog_log.objects import Index, PostCheck, Secret, Webhook, WebhookSource
from catalog_log.records import POSTED_MANY_FROM, WEBHOOKS_FROM
from journal.errors import InvalidUsage
from sql.statements.ddl import plan_ddl
from sql.statements.insert import table_named
from sql.syntax import statements as st
from sql.syntax.parse import parse
from tests.sql.doubles import apply, ddl, empty_image, names

SECRET = "SECRET ENV 'TIDEMARK_SECRET_HOOK' AS s"


def made(said: str):
    image = apply(empty_image(), plan_ddl(parse(f"create source h {said}"), empty_image(), names()).updates)
    source = image.item_by_name("s1", "h")
    assert isinstance(source, WebhookSource)
    return source, image


def refusal(said: str, image=None) -> InvalidUsage:
    with pytest.raises(InvalidUsage) as error:
        plan_ddl(parse(said), image or empty_image(), names())
    return error.value


@pytest.mark.parametrize(("word", "kind"), [("json", "jsonb"), ("text", "text"), ("bytes", "bytea")])
def test_a_body_is_a_column_and_the_id_of_its_request_is_unique(word, kind) -> None:
    source, image = made(f"from webhook body format {word}")
    told = [(c.name, c.type, c.nullable, c.id) for c in source.columns]
    assert told == [("body", kind, False, 1), ("request_id", "text", True, 2)]
    [index] = image.dependents(source.id)
    assert isinstance(index, Index) and index.constraint == "unique" and index.key == ("request_id",)
    assert source.webhook == Webhook(word, "idempotency-key")


@pytest.mark.parametrize("word", ["json array", "ndjson"])
def test_a_body_of_many_rows_has_them_numbered(word) -> None:
    source, image = made(f"from webhook body format {word} include header 'a' as a")
    told = [(c.name, c.type, c.nullable) for c in source.columns]
    assert told[:2] == [("body", "jsonb", False), ("request_id", "text", True)]
    assert told[2:] == [("ordinality", "int8", False), ("a", "text", True)]
    [index] = image.dependents(source.id)
    assert index.constraint == "unique" and index.key == ("request_id", "ordinality")
    assert source.webhook == Webhook(word, "idempotency-key", ("a",))


def test_headers_are_columns_and_names_of_headers_have_no_case() -> None:
    source, _ = made("from webhook body format text include header 'X-Kind' as kind include headers (not 'Cookie') "
                     "with (request id header = 'X-Request-Id')")  # fmt: skip
    assert [(c.name, c.type) for c in source.columns][2:] == [("kind", "text"), ("headers", "jsonb")]
    assert source.webhook == Webhook("text", "x-request-id", ("x-kind",), True, ("cookie",))


@pytest.mark.parametrize(
    ("test", "wanted"),
    [
        ("constant_time_eq(headers->'X-Key', s)", ("x-key",)),
        ("constant_time_eq(s, headers->'x-key')", ("x-key",)),
        ("constant_time_eq(headers->'sig', 'sha256=' || encode(hmac(body, s, 'sha256'), 'hex'))",
         ("sig", "sha256", "hex", "sha256=")),
        ("constant_time_eq(decode(headers->'sig', 'base64'), hmac(body, s, 'sha512'))", ("sig", "sha512", "base64")),
    ],
)  # fmt: skip
def test_a_check_is_a_secret_or_an_hmac_of_the_body(test, wanted) -> None:
    source, _ = made(f"from webhook body format json check (with (headers, body, {SECRET}) {test})")
    header, *rest = wanted
    assert source.webhook.check == PostCheck(header, Secret("env", "TIDEMARK_SECRET_HOOK"), *rest)


@pytest.mark.parametrize(
    ("said", "sqlstate"),
    [
        ("create source h from webhook body format avro", "0A000"),
        ("create source h from webhook body format text array", "42601"),
        ("create source h from webhook body format ndjson array", "42601"),
        ("create source h from webhook body format json array include header 'a' as ordinality", "42701"),
        ("create source h from webhook", "42601"),
        ("create source h from webhook body format json include headers ('x')", "0A000"),
        ("create source h from webhook body format json include header 'a b' as c", "22023"),
        ("create source h from webhook body format json include header 'a' as body", "42701"),
        ("create source h from webhook body format json check (true)", "0A000"),
        (f"create source h from webhook body format json check (with (headers, {SECRET}) headers->'a' = s)", "0A000"),
        (f"create source h from webhook body format json check (with (headers, body, {SECRET}) "
         "constant_time_eq(headers->'a', hmac(body, s, 'sha256')))", "0A000"),
        (f"create source h from webhook body format json check (with (headers, body, {SECRET}) "
         "constant_time_eq(headers->'a', encode(hmac(body, s, 'md5'), 'hex')))", "0A000"),
        (f"create source h from webhook body format json check (with (headers, {SECRET}) "
         "constant_time_eq(headers->'a', other))", "42703"),
        ("create source h from webhook body format json check (with (headers, secret env 'HOME' as s) "
         "constant_time_eq(headers->'a', s))", "22023"),
        ("create source h from webhook body format json with (validate = true)", "0A000"),
        ("create source h in cluster other from webhook body format json", "42704"),
        ("create source h in cluster default from kafka topic 't' format text", "0A000"),
    ],
)  # fmt: skip
def test_what_is_refused_says_so(said, sqlstate) -> None:
    assert refusal(said).sqlstate == sqlstate


def test_catalogs_that_older_code_reads_have_none() -> None:
    found = refusal("create source h from webhook body format json", empty_image(WEBHOOKS_FROM - 1))
    assert found.sqlstate == "0A000" and f"format {WEBHOOKS_FROM}" in found.hint
    for word in ("json array", "ndjson"):
        found = refusal(f"create source h from webhook body format {word}", empty_image(POSTED_MANY_FROM - 1))
        assert found.sqlstate == "0A000" and f"format {POSTED_MANY_FROM}" in found.hint


EVERYTHING = (
    "from webhook body format bytes include header 'x' as \"X y\" include headers (not 'a', not 'b') "
    f"check (with (headers, body, {SECRET}) constant_time_eq(headers->'sig', 'v=' || "
    "encode(hmac(body, s, 'sha1'), 'base64'))) with (request id header 'id')"
)


MANY = "from webhook body format json array include header 'x' as y include headers"


@pytest.mark.parametrize("said", ["from webhook body format json", EVERYTHING, MANY])
def test_what_is_shown_makes_the_same_again(said) -> None:
    source, image = made(said)
    [(_, shown)] = SHOWN[st.ShowCreate](parse("show create source h"), image, names())
    again, _ = made(shown.partition('"h"')[2] or shown.partition("h\n")[2] or shown.partition(".h ")[2])
    assert (again.columns, again.webhook) == (source.columns, source.webhook), shown
    assert SHOWN[st.ShowObjects](parse("show sources"), image, names()) == [("h", None, f"webhook {source.format}")]
    assert SHOWN[st.ShowObjects](parse("show tables"), image, names()) == []


def test_its_record_is_it_again() -> None:
    source, _ = made(EVERYTHING)
    assert from_record(to_record(source)) == source


def test_statements_call_it_a_source_and_write_no_rows_of_it() -> None:
    _, image = made("from webhook body format json")
    for text in ("insert into h values ('1')", "update h set body = '1'", "delete from h"):
        said = parse(text)
        with pytest.raises(InvalidUsage) as error:
            table_named(said.table, image, names())
        assert error.value.sqlstate == "42809" and "HTTP" in error.value.hint
    for text in ("alter table h add column a int", "alter table h drop column body", "drop table h",
                 "alter table h alter column body drop not null", "alter table h add unique (body)"):  # fmt: skip
        assert refusal(text, image).sqlstate == "42809", text
    for text in ("alter source h reset", "alter table h rename column body to b"):
        assert refusal(text, image).sqlstate == "0A000", text
    renamed = ddl(image, "alter source h rename to g", "comment on source g is 'x'",
                  "alter source g set (retain history = for '1 day')")  # fmt: skip
    source = renamed.item_by_name("s1", "g")
    assert isinstance(source, WebhookSource)
    gone = ddl(renamed, "drop source g")
    assert gone.item_by_name("s1", "g") is None and not gone.dependents(source.id), "its index goes with it"
