"""An image that writes down what planning asked of it: what a plan depends on, exactly.

Planning is a function of the statement, the session's names and the answers that a catalog image gave.  So a plan made
on one image is the plan for every image that gives the same answers, however many other objects came and went between
the two, and it stops being so for one that answers otherwise: also where a name that was missing then (in a schema
earlier in the search path) is there now, because "there is none" is an answer like any other.

Turned down: a plan that names the ids it depends on, valid while those are unchanged.  It forgets what was *not* found,
and whoever teaches the binder a new question must remember to extend it.  Here forgetting is not possible: an image
can only be asked through its methods.

``upper`` is not written down.  A plan carries it as the catalog timestamp at which it holds, and whoever keeps the
plan moves that along.  Nor is ``genesis``, which is the same for ever.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from catalog_log.model import Cluster, Database, Genesis, Schema
from catalog_log.objects import Item
from sql.objects.names import ImageLike

Question = tuple[str, tuple[str, ...]]
"""A method of an image and its arguments."""

Answers = Mapping[Question, object]


class TooLongHere(Exception):
    """The catalog was asked for more text than its asker may plan with where he is."""


_MANY = frozenset({"all", "items_in", "dependents", "objects", "schemas_in"})
"""Questions that are answered by any number of values."""


class Watched:
    """``image``, with :attr:`answers` to everything it was asked through this object."""

    __slots__ = ("_chars_left", "_image", "answers")

    def __init__(self, image: ImageLike, chars_max: int | None = None) -> None:
        """``chars_max``: of the texts of plain views that planning may be given, ``TooLongHere`` beyond."""
        self._image = image
        self._chars_left = chars_max
        self.answers: dict[Question, Any] = {}

    @property
    def upper(self) -> int:
        return self._image.upper

    @property
    def genesis(self) -> Genesis | None:
        return self._image.genesis

    def get(self, collection: str, key: str) -> Any:
        return self._ask("get", collection, key)

    def all(self, collection: str) -> Iterator[tuple[str, Any]]:
        return iter(self._ask("all", collection))

    def item(self, item_id: str) -> Item | None:
        return self._ask("item", item_id)

    def item_by_name(self, schema_id: str, name: str) -> Item | None:
        return self._ask("item_by_name", schema_id, name)

    def items_in(self, schema_id: str) -> Iterator[Item]:
        return iter(self._ask("items_in", schema_id))

    def dependents(self, item_id: str) -> tuple[Item, ...]:
        return self._ask("dependents", item_id)

    def objects(self) -> Iterator[Item]:
        return iter(self._ask("objects"))

    def database_by_name(self, name: str) -> Database | None:
        return self._ask("database_by_name", name)

    def schema_by_name(self, database_id: str, name: str) -> Schema | None:
        return self._ask("schema_by_name", database_id, name)

    def schemas_in(self, database_id: str) -> Iterator[Schema]:
        return iter(self._ask("schemas_in", database_id))

    def cluster_by_name(self, name: str) -> Cluster | None:
        return self._ask("cluster_by_name", name)

    def spend(self, chars: int) -> None:
        """So many characters of plain views are about to be read."""
        if self._chars_left is not None:
            self._chars_left -= chars
            if self._chars_left < 0:
                raise TooLongHere

    def _ask(self, method: str, *args: str) -> Any:
        question = (method, args)
        if question not in self.answers:
            self.answers[question] = _answer(self._image, question)
        return self.answers[question]


def same_answers(answers: Answers, image: ImageLike) -> bool:
    """Whether ``image`` would answer every question as it was answered then."""
    for question, then in answers.items():
        now = _answer(image, question)
        if now is not then and now != then:  # an unchanged value is the same object in every later image
            return False
    return True


def _answer(image: ImageLike, question: Question) -> Any:
    method, args = question
    found = getattr(image, method)(*args)
    return tuple(found) if method in _MANY else found
