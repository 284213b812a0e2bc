"""RETAIN HISTORY: what is kept in the catalog, where it is said, and what is refused."""

from __future__ import annotations

import pytest

from catalog_log import model
from catalog_log.model import Setting
from catalog_log.records import HISTORY_FROM
from catalog_log.settings import history_key, kept_history
from journal.errors import InvalidUsage
from sql.statements.ddl import plan_ddl
from sql.syntax.parse import parse
from tests.sql.doubles import apply, ddl, empty_image, names

HOUR = 3_600_000
TABLE = "create table t (a int)"
KEPT = "create table t (a int) with (retain history = for '1h')"


def after(*statements: str):
    return ddl(empty_image(), *statements)


@pytest.mark.parametrize(("statements", "kept"), [
    ((TABLE,), {}),
    ((KEPT,), {"u1": HOUR}),
    (("create table t (a serial) with (RETAIN HISTORY FOR '1 day 30 s')",), {"u1": 24 * HOUR + 30_000}),
    (("create source t (a int) from kafka topic 'x' format json with (retain history = for '5 min')",),
     {"u1": HOUR // 12}),
    ((TABLE, "alter table t set (retain history = for '1 mon')"), {"u1": 30 * 24 * HOUR}),
    ((TABLE, "alter table if exists t set (retain history for '01:00')"), {"u1": HOUR}),
    ((KEPT, "alter table t set (retain history = for '2h')"), {"u1": 2 * HOUR}),
    ((KEPT, "alter table t reset (retain history)"), {}),
    ((KEPT, "drop table t"), {}),
    ((KEPT, "alter table t rename to u", "alter table u add column b int"), {"u1": HOUR}),
    (("create source t (a int) from kafka topic 'x' format json", "alter source t set (retain history for '1h')",
      "alter source t reset"), {"u3": HOUR}),
    (("create source t (a int) from kafka topic 'x' format json", "alter table t set (retain history for '1h')",
      "alter source t reset (retain history)"), {}),
    ((TABLE, "alter table if exists u set (retain history for '1h')"), {}),
    (("create schema s", "create table s.t (a int) with (retain history for '1h')", "drop schema s cascade"), {}),
])  # fmt: skip
def test_what_is_kept(statements, kept) -> None:
    assert kept_history(after(*statements)) == kept


def test_what_is_so_already_changes_nothing() -> None:
    image = after(KEPT)
    assert image.get(model.SETTINGS, history_key("u1")) == Setting(str(HOUR))
    for text in ("alter table t set (retain history = for '60 min')", "create table if not exists t (a int)"):
        assert plan_ddl(parse(text), image, names()).updates == ()
    assert plan_ddl(parse("alter table t reset (retain history)"), after(TABLE), names()).updates == ()


@pytest.mark.parametrize(("text", "sqlstate", "position"), [
    ("alter table t set (retain history = '1h')", "42601", 37),
    ("alter table t set (retain history = for 1)", "42601", 41),
    ("alter table t set (retain history = for '1 parsec')", "22007", 41),
    ("alter table t set (retain history = for '-1h')", "22023", 41),
    ("alter table t set (retain history = for '0')", "22023", 41),
    ("alter table t set (retain history = for '2 years')", "22023", 41),
    ("alter table t set (retain history for '1h', fillfactor = 10)", "42601", 43),
    ("alter table t set (fillfactor = 10)", "0A000", None),
    ("alter table t reset (retain)", "42601", 28),
    ("create table u (a int) with (retain history for '1h'", "42601", 53),
    ("create table u (a int) with (fillfactor = 10)", "0A000", None),
    ("alter table nowhere set (retain history for '1h')", "42P01", 13),
    ("alter source t set (retain history for '1h')", "42809", None),
    ("alter table v set (retain history for '1h')", "42809", None),
    ("alter table pg_class set (retain history for '1h')", "42501", None),
    ("alter materialized view m set (retain history for '1h')", "0A000", None),
    ("alter view v set (retain history for '1h')", "0A000", None),
])  # fmt: skip
def test_what_is_refused(text, sqlstate, position) -> None:
    image = after(TABLE, "create view v as table t", "create materialized view m as table t")
    with pytest.raises(InvalidUsage) as caught:
        plan_ddl(parse(text), image, names())
    assert (caught.value.sqlstate, position or caught.value.position) == (sqlstate, caught.value.position)


@pytest.mark.parametrize("text", [KEPT, "alter table there set (retain history for '1h')"])
def test_older_code_beside_us_would_not_keep_it(text) -> None:
    image = empty_image(HISTORY_FROM - 1)
    image = apply(image, plan_ddl(parse("create table there (a int)"), image, names()).updates)
    with pytest.raises(InvalidUsage) as caught:
        plan_ddl(parse(text), image, names())
    assert caught.value.sqlstate == "0A000" and f"format {HISTORY_FROM}" in caught.value.hint
    assert plan_ddl(parse("alter table there reset (retain history)"), image, names()).updates == ()
