"""ALTER SOURCE … RESET: everything over the source is what it was, under ids that nobody has seen."""

from __future__ import annotations

from catalog_log import model
from catalog_log.objects import view_inputs
from sql.objects.called import Objects
from sql.statements.ddl import plan_ddl
from sql.statements.select import plan_select
from sql.syntax.parse import parse
from sql.views.kept_views import spark_query
from tests.sql.doubles import apply, ddl, empty_image, names

SCRIPT = (
    "create table t (id int, a int)",
    "create source s (id int, \"u2\" text) from kafka topic 'user' format json",
    "create index on s (id)",
    "create view pv as with c as (select 1 as x) select s.id, 'FROM `u2`' as w from s, c where \"u2\" <> '`u2`'",
    "create materialized view m as select pv.id, count(*) as n from pv join t on pv.id = t.id group by pv.id",
    "create materialized view m2 as select * from m where n in (select id from s)",
    "create index on m2 (n)",
    "create materialized view beside as select a from t",
    "comment on table s is 'a source'",
    "comment on column s.id is 'its id'",
    "comment on materialized view m2 is 'a view'",
)


NAMES_IDS = {"id", "query", "source_id", "errors_id", "relation_id"}
"""Fields that change with the ids that they name."""


def by_name(image) -> dict:
    return {item.name: item for item in image.objects()}


def test_all_that_stands_on_a_source_is_as_it_was_under_new_ids():
    image = ddl(empty_image(), *SCRIPT)
    plan = plan_ddl(parse("alter source s reset cascade"), image, names())
    after = apply(image, plan.updates)
    assert plan.tag == "ALTER SOURCE"
    before, now = by_name(image), by_name(after)
    assert before.keys() == now.keys()
    anew = {before[name].id: now[name].id for name in before if before[name] != now[name]}
    assert set(anew) == {before[n].id for n in before} - {before["t"].id, before["beside"].id}
    assert not set(anew.values()) & {item.id for item in image.objects()}, "no id is used twice"
    for name, item in before.items():
        if item.id not in anew:
            continue
        made = now[name]
        assert type(made) is type(item)
        same = {name: value for name, value in vars(item).items() if name not in NAMES_IDS}
        assert same == {name: value for name, value in vars(made).items() if name not in NAMES_IDS}
        assert made.depends_on == tuple(anew.get(i, i) for i in item.depends_on)
        assert view_inputs(made) == tuple(anew.get(i, i) for i in view_inputs(item))
        assert getattr(made, "errors_id", None) == anew.get(getattr(item, "errors_id", None))
    # What planning the same statements on the new ids gives, word for word.
    dropped = apply(image, plan_ddl(parse("drop source s cascade"), image, names()).updates)
    from_scratch = ddl(dropped, *SCRIPT[1:7])
    scratch = by_name(from_scratch)
    shift = {item.id: now[name].id for name, item in scratch.items() if name in now and item.id not in anew}
    for name in ("pv", "m", "m2"):
        expected = spark_query(scratch[name], Objects.of(from_scratch))
        for old, new in sorted(shift.items(), key=lambda pair: -len(pair[0])):
            for word in ("FROM", "JOIN"):
                expected = expected.replace(f"{word} `{old}` AS", f"{word} `{new}` AS")
        assert spark_query(now[name], Objects.of(after)) == expected
    told = {key: comment.text for key, comment in after.all(model.COMMENTS)}
    assert told == {now["s"].id: "a source", now["s"].id + "/1": "its id", now["m2"].id: "a view"}
    assert plan_select(parse("select * from m2").ast, after, names()).inputs == (now["m2"].id,)
    later = ddl(after, "create table newer (a int)")
    assert by_name(later)["newer"].id not in {*anew, *anew.values()}
