"""SQL in the simulation: the product's own parser and planners, remembered; and queries answered by small functions.

Planning is a pure function of the statement and of what it asks the image.  So a plan may be used again on any image
that would give the same answers, with the new image's timestamp: :mod:`sql.objects.watched` records the questions, and
looks them up again.  That is what lets the real executor keep pace with the schedule.

What is *not* the product's here: the text that a peek carries names the user's statement instead of Spark SQL, and
the rows come from the functions in :mod:`judge.simulation.queries`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from functools import cache, lru_cache
from typing import Any
from unittest import mock

import adapter.ddl_topic.messages
import adapter.execute.key_looks
import adapter.execute.planning
import adapter.execute.plans
import catalog_log.fold
import oracle.fold
import sql.statements.plan_cache
import sql.statements.writing
from catalog_log.image import Image
from journal.timestamps import CatalogTs
from sql.objects.watched import Answers, Watched, same_answers
from sql.statements.changes import plan_change
from sql.statements.insert import plan_insert
from sql.statements.plans import ChangePlan, InsertPlan, SelectPlan
from sql.statements.select import plan_query, plan_select
from sql.syntax import statements as st
from sql.syntax.parse import parse

VARIANTS_MAX = 32
"""Plans kept of one statement: in a run a name means one thing at a time."""


@dataclass(frozen=True)
class SimSelect(SelectPlan):
    """A plan whose text names the statement it came from and the objects that its names meant."""

    text: str = ""
    named: tuple[tuple[str, str], ...] = ()

    def plan_text(self, params: Sequence[object | None]) -> str:
        return json.dumps([self.text, list(params), dict(self.named), len(self.columns)])


_TEXTS: dict[int, str] = {}
"""Statement (by identity; :func:`parsed` keeps it alive) -> its text."""


@cache
def parsed(text: str) -> Any:
    """``sql.syntax.parse.parse``, once per text.  Statements are immutable values to everybody who plans them."""
    statement = parse(text)
    _TEXTS[id(statement.ast if isinstance(statement, st.Query) else statement)] = text
    return statement


def _named(plan: SelectPlan, image: Image, text: str) -> SimSelect:
    values = {each.name: getattr(plan, each.name) for each in fields(SelectPlan)}
    return SimSelect(**values, text=text, named=tuple((image.item(i).name, i) for i in plan.inputs))


_PLANS: dict[tuple, list[tuple[Answers, Any]]] = {}


def _remembered(plan: Callable, key: tuple, image: Image, finish: Callable[[Any, Image], Any]) -> Any:
    kept = _PLANS.setdefault(key, [])
    # Of what other worlds left here nothing may show: whoever watches the image hears the questions of the plan alone.
    unwatched = image._image if isinstance(image, Watched) else image
    for at, (answers, found) in enumerate(kept):
        if same_answers(answers, unwatched):
            same_answers(answers, image)
            if at:
                kept.insert(0, kept.pop(at))
            return found
    asked = Watched(image)
    found = finish(plan(asked), image)
    kept.insert(0, (asked.answers, found))
    del kept[VARIANTS_MAX:]
    return found


def remembered_query(query: Any, image: Image, names: Any, declared: Any = None) -> SelectPlan:
    text = _TEXTS[id(query.ast)]
    found = _remembered(
        lambda asked: plan_query(query, asked, names, declared),
        ("select", text, names.search_path),
        image,
        lambda plan, image: _named(plan, image, text) if plan.kind == "peek" else plan,
    )
    return replace(found, catalog_ts=CatalogTs(image.upper - 1))


def remembered_look(ast: Any, image: Image, names: Any, declared: Any = None) -> SelectPlan:
    """Of a question of the adapter's own: which keys there are."""
    text = _TEXTS[id(ast)]
    found = _remembered(
        lambda asked: plan_select(ast, asked, names, declared),
        ("look", text, names.search_path, names.cluster),
        image,
        lambda plan, image: _named(plan, image, text),
    )
    return replace(found, catalog_ts=CatalogTs(image.upper - 1))


def remembered_insert(statement: Any, image: Image, names: Any, declared: Any = None) -> InsertPlan:
    text = _TEXTS[id(statement)]

    def finish(plan: InsertPlan, image: Image) -> InsertPlan:
        if plan.query is None or plan.query.kind != "peek":
            return plan
        return replace(plan, query=_named(plan.query, image, text))

    found = _remembered(
        lambda asked: plan_insert(statement, asked, names, declared), ("insert", text, names.search_path), image, finish
    )
    ts = CatalogTs(image.upper - 1)
    return replace(found, catalog_ts=ts, query=None if found.query is None else replace(found.query, catalog_ts=ts))


def remembered_change(statement: Any, image: Image, names: Any, declared: Any = None) -> ChangePlan:
    text = _TEXTS[id(statement)]

    def with_queries(plan: ChangePlan, made: Callable[[SelectPlan], SelectPlan]) -> ChangePlan:
        return replace(plan, changes=tuple(replace(each, query=made(each.query)) for each in plan.changes))

    found = _remembered(
        lambda asked: plan_change(statement, asked, names, declared),
        ("change", text, names.search_path),
        image,
        lambda plan, image: with_queries(plan, lambda query: _named(query, image, text)),
    )
    ts = CatalogTs(image.upper - 1)
    return replace(with_queries(found, lambda query: replace(query, catalog_ts=ts)), catalog_ts=ts)


def patches() -> list[Any]:
    """For :func:`judge.simulation.clock.virtual`."""
    where, planned = sql.statements.plan_cache, sql.statements.writing
    # Every process decodes the same bytes to equal immutable values: once is enough, folding is still each one's own.
    shared = lru_cache(maxsize=4096)
    return [
        mock.patch.object(oracle.fold, "decode_record", shared(oracle.fold.decode_record)),
        mock.patch.object(catalog_log.fold, "decode_proposal", shared(catalog_log.fold.decode_proposal)),
        mock.patch.object(where, "parse", parsed),
        mock.patch.object(planned, "plan_query", remembered_query),
        mock.patch.object(planned, "plan_insert", remembered_insert),
        mock.patch.object(planned, "plan_change", remembered_change),
        mock.patch.object(adapter.ddl_topic.messages, "parse", parsed),
        mock.patch.object(adapter.execute.plans, "parse", parsed),
        mock.patch.object(adapter.execute.key_looks, "parse", parsed),
        mock.patch.object(adapter.execute.key_looks, "plan_select", remembered_look),
        mock.patch.object(adapter.execute.planning.Planner, "run", _at_once),
    ]


async def _at_once(_planner: Any, _chars: int, call: Callable, *args: Any, **named: Any) -> Any:
    """Long statements too: a schedule that a seed decides has one thread."""
    return call(*args, **named)


__all__ = ["parsed", "patches"]
