"""ALTER CLUSTER … SET and RESET: what is kept, and what is refused."""

from __future__ import annotations

import pytest

from catalog_log import model
from catalog_log.model import Setting
from catalog_log.settings import GEAR, cluster_of_key, cluster_setting, setting_of
from journal.errors import InvalidUsage
from sql.statements.ddl import plan_ddl
from sql.syntax.parse import parse
from tests.sql.doubles import apply, empty_image, names


def after(*statements: str):
    image = empty_image()
    for text in statements:
        plan = plan_ddl(parse(text), image, names())
        assert plan.tag == "ALTER CLUSTER" and plan.touched == ("default",)
        image = apply(image, plan.updates) if plan.updates else image
    return image


@pytest.mark.parametrize(("statements", "gear"), [
    ((), "auto"),
    (("alter cluster default set (gear = 'spark')",), "spark"),
    (("ALTER CLUSTER \"default\" SET (GEAR = 'Process')",), "process"),
    (("alter cluster default set (gear spark)",), "spark"),
    (("alter cluster default set (gear = E'\\x73park')",), "spark"),
    (("alter cluster default set (gear = spark)", "alter cluster default reset (gear)"), "auto"),
    (("alter cluster default set (gear = spark)", "alter cluster default set (gear = default)"), "auto"),
    (("alter cluster default set (gear = spark)", "alter cluster default set (gear = 'auto')"), "auto"),
])  # fmt: skip
def test_a_cluster_is_told_its_gear(statements: tuple[str, ...], gear: str) -> None:
    image = after(*statements)
    assert cluster_setting(image, GEAR, "default") == gear
    kept = image.get(model.SETTINGS, "gear/default")
    assert kept == (None if gear == "auto" else Setting(gear)), "a default is kept by nothing"


@pytest.mark.parametrize("again", ["set (gear = spark)", "set (gear = 'SPARK')"])
def test_what_is_so_already_changes_nothing(again: str) -> None:
    image = after("alter cluster default set (gear = spark)")
    assert plan_ddl(parse(f"alter cluster default {again}"), image, names()).updates == ()
    assert plan_ddl(parse("alter cluster default reset (gear)"), empty_image(), names()).updates == ()


@pytest.mark.parametrize(("text", "sqlstate", "position"), [
    ("alter cluster nowhere set (gear = spark)", "42704", None),
    ("alter cluster default set (geer = spark)", "22023", 28),
    ("alter cluster default set (gear = duckdb)", "22023", 28),
    ("alter cluster default set (gear = '')", "22023", 28),
    ("alter cluster default set (gear = spark, gear = auto)", "42601", 42),
    ("alter cluster default reset (size)", "22023", 30),
    ("alter cluster default set ()", "42601", 28),
    ("alter cluster default set (gear)", "42601", 32),
    ("alter cluster default set (gear = )", "42601", 35),
    ("alter cluster default set (gear = 1)", "42601", 35),
    ("alter cluster default set gear = spark", "42601", 27),
    ("alter cluster default set (gear = spark) now", "42601", 42),
    ("alter cluster default", "42601", 22),
    ("alter cluster a.b set (gear = spark)", "42601", 16),
    ("alter cluster default rename to x", "0A000", 23),
    ("alter cluster default owner to x", "0A000", 23),
])  # fmt: skip
def test_what_is_refused(text: str, sqlstate: str, position: int | None) -> None:
    with pytest.raises(InvalidUsage) as refused:
        plan_ddl(parse(text), empty_image(), names())
    assert (refused.value.sqlstate, refused.value.position) == (sqlstate, position), refused.value.message


def test_a_value_of_a_later_release_is_the_default_and_other_settings_are_no_clusters() -> None:
    assert setting_of(GEAR, Setting("warp")) == setting_of(GEAR, None) == "auto"
    assert setting_of(GEAR, Setting("spark")) == "spark"
    assert cluster_of_key("gear/c/2") == "c/2" and cluster_of_key("gear/") == ""
    assert [cluster_of_key(key) for key in ("gear", "next_item_id", "size/default", "")] == [None] * 4
