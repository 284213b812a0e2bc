"""CLUSTER BY: what is kept in the catalog, where it is said, how it is shown, and what is refused."""

from __future__ import annotations

import pytest

from adapter.system.kinds.kind import cluster_by
from adapter.system.kinds.table import ROWS as TABLES
from catalog_log import model, records
from catalog_log.model import Setting
from catalog_log.settings import clustered_by, clustering_key
from journal.errors import InvalidUsage
from sql.statements.ddl import plan_ddl
from sql.syntax.parse import parse
from tests.sql.doubles import apply, ddl, empty_image, names

TABLE = "create table t (a int, b text, f int[], c date, d int, e int)"
KEPT = "create table t (a int, b text) cluster by (b, a)"
SOURCE = "create source t (a int, b text) from kafka topic 'x' format json"


@pytest.mark.parametrize(("statements", "kept"), [
    ((TABLE,), ()),
    ((KEPT,), ("b", "a")),
    (("create table t (a int primary key) cluster by (a) with (retain history = for '1h')",), ("a",)),
    (("create table t (a int) with (retain history = for '1h') cluster by (a)",), ("a",)),
    ((SOURCE + " cluster by (a)",), ("a",)),
    ((SOURCE, "alter source if exists t cluster by (b)"), ("b",)),
    ((SOURCE + " cluster by (a)", "alter source t reset"), ("a",)),
    ((TABLE, "alter table t cluster by (c, a)", "alter table t cluster by (b)"), ("b",)),
    ((KEPT, "alter table t cluster by none"), ()),
    ((KEPT, "alter table t rename column b to \"B\"\"x\""), ('"B""x"', "a")),
    ((KEPT, "alter table t drop column b"), ("a",)),
    ((KEPT, "alter table t drop column b", "alter table t add column b text"), ("a",)),
    ((KEPT, "alter table t rename to u", "alter table u set schema public"), ("b", "a")),
    (("create table s (a int)", "create materialized view t in cluster default cluster by (x) as select a x from s"),
     ("x",)),
    (("create table s (a int)", "create materialized view t as select a x from s",
      "alter materialized view t cluster by (x)"), ("x",)),
    ((TABLE, "alter table if exists u cluster by (a)"), ()),
])  # fmt: skip
def test_what_is_kept_and_shown(statements, kept) -> None:
    image = after(*statements)
    item = next(each for each in image.objects() if each.kind not in ("errors", "index") and each.name in ("t", "u"))
    assert cluster_by(item, image) == (f"CLUSTER BY ({', '.join(kept)})" if kept else "")


def after(*statements: str):
    return ddl(empty_image(), *statements)


def test_what_was_made_can_be_made_again_as_it_is_shown() -> None:
    image = after(KEPT)
    again = ddl(empty_image(), TABLES.created(image.item("u1"), "t", image))
    assert clustered_by(again, "u1") == clustered_by(image, "u1")
    assert clustered_by(again, "u1") == tuple(image.item("u1").columns[n].stored_as for n in (1, 0))


def test_it_goes_with_the_relation() -> None:
    image = apply(after(KEPT), plan_ddl(parse("drop table t"), after(KEPT), names()).updates)
    assert image.get(model.SETTINGS, clustering_key("u1")) is None


def test_what_is_so_already_changes_nothing() -> None:
    for text in ("alter table t cluster by (b, a)", "create table if not exists t (a int) cluster by (zz)"):
        assert plan_ddl(parse(text), after(KEPT), names()).updates == ()
    assert plan_ddl(parse("alter table t cluster by none"), after(TABLE), names()).updates == ()


def test_what_a_later_release_keeps_is_nothing_here() -> None:
    for value in ("", "7", '{"hilbert": ["c1"]}', "[1]"):
        image = after(TABLE)
        image = apply(image, [_put(value)])
        assert clustered_by(image, "u1") == ()


def _put(value: str):
    return records.put(model.SETTINGS, clustering_key("u1"), Setting(value))


@pytest.mark.parametrize(("text", "sqlstate"), [
    ("alter table t cluster by ()", "42601"),
    ("alter table t cluster by a", "42601"),
    ("alter table t cluster by (a,)", "42601"),
    ("alter table t cluster by (a) x", "42601"),
    ("alter table t cluster by auto", "0A000"),
    ("alter table t cluster by (zz)", "42703"),
    ("alter table t cluster by (a, b, a)", "42701"),
    ("alter table t cluster by (a, b, c, d, e)", "54011"),
    ("alter table t cluster by (f)", "0A000"),
    ("alter table nothing cluster by (a)", "42P01"),
    ("alter table v cluster by (a)", "42809"),
    ("alter table i cluster by (a)", "42809"),
    ("alter materialized view t cluster by (a)", "42809"),
    ("alter view v cluster by (a)", "0A000"),
    ("create view w cluster by (a) as select a from t", "42601"),
    ("create table w (a int) cluster by (a) cluster by (a)", "42601"),
    ("create table w (a int) cluster by (b)", "42703"),
    ("create materialized view w cluster by (b) as select a from t", "42703"),
])  # fmt: skip
def test_what_is_refused(text: str, sqlstate: str) -> None:
    image = after(TABLE, "create view v as select a from t", "create index i on t (a)")
    with pytest.raises(InvalidUsage) as caught:
        plan_ddl(parse(text), image, names())
    assert caught.value.sqlstate == sqlstate
