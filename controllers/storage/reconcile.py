"""Which topics there should be: the pure part of keeping topics.

Promises: a topic is created only for a live object that has rows of its own, and deleted only if its object is known,
from the commands, to have been dropped.  Anything else is foreign and left alone: a user's topic, another
environment's, a topic whose id we never heard of.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from catalog_log.objects import ERRORS, MATERIALIZED_VIEW, TABLE, Item
from journal.names import TopicNames

WRITTEN = frozenset({TABLE, ERRORS, MATERIALIZED_VIEW})
"""Kinds whose rows Tidemark writes, so that it keeps a topic for them.  A source's topic is the user's."""


class TopicPlan(NamedTuple):
    """Collection ids whose topics to create and to delete, each in id order."""

    create: tuple[str, ...]
    delete: tuple[str, ...]


def reconcile(
    objects: Mapping[str, Item], dropped: Iterable[Item], existing: Iterable[str], names: TopicNames
) -> TopicPlan:
    """What to do so that topics match ``objects``; ``dropped`` is everything ever dropped, ``existing`` all topics."""
    there = set(existing)
    create = sorted(i.id for i in objects.values() if i.kind in WRITTEN and names.data(i.id) not in there)
    gone = {i.id for i in dropped if i.kind in WRITTEN and i.id not in objects}
    return TopicPlan(tuple(create), tuple(sorted(i for i in gone if names.data(i) in there)))
