"""Which topics there should be: the pure part of keeping topics.

Promises: a topic is created only for a live object that has rows of its own, and deleted only if its object is known,
from the catalog, to have been dropped: its id was given out, and nothing has it.  Anything else is foreign and left
alone: a user's topic, another environment's, a topic whose id we never heard of.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

from catalog_log.objects import ERRORS, MATERIALIZED_VIEW, TABLE, WEBHOOK, Item, Source
from journal.names import TopicNames

WRITTEN = frozenset({TABLE, ERRORS, MATERIALIZED_VIEW, WEBHOOK})
"""Kinds whose rows Tidemark writes, so that there may be a topic for them.  A source's topic is the user's; of one that
is copied there is another, which whoever copies it has made."""

_ID = re.compile(r"u([0-9]+)")


class TopicPlan(NamedTuple):
    """Collection ids whose topics to create and to delete, each in id order."""

    create: tuple[str, ...]
    delete: tuple[str, ...]


def reconcile(
    objects: Mapping[str, Item],
    in_catalog: Callable[[str], bool],
    next_id: int,
    existing: Iterable[str],
    names: TopicNames,
    wanted_early: bool,
) -> TopicPlan:
    """What to do so that topics match ``objects`` and what else is ``in_catalog`` by its id; ids are below ``next_id``.
    ``existing`` are all topics, listed before the catalog was looked at.

    ``wanted_early``: code that waits for topics may write to them, so all are made before anybody does; else who writes
    first has them made.
    """
    there = set(existing)
    create = (i.id for i in objects.values() if i.kind in WRITTEN and names.data(i.id) not in there)
    prefix = names.data("")
    ids = (name[len(prefix) :] for name in there if name.startswith(prefix))
    gone = (i for i in ids if is_below(i, next_id))
    return TopicPlan(
        tuple(sorted(create)) if wanted_early else (),
        tuple(sorted(i for i in gone if i not in objects and not in_catalog(i))),
    )


def may_be_written(item: Item) -> bool:
    """Whether there may be a topic of ours for it."""
    return item.kind in WRITTEN or isinstance(item, Source) and not item.in_place


def is_below(object_id: str, next_id: int) -> bool:
    """Whether ``object_id`` was given out by a catalog that gives out ``next_id`` next: if nothing has it, it was
    dropped, and if it is none of ours at all, it was not."""
    number = _ID.fullmatch(object_id)
    return number is not None and int(number[1]) < next_id
