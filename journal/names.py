"""Topic names of one environment, in one place.

An environment is a prefix: two environments may share one Kafka cluster without seeing each other.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from journal.errors import InvalidUsage

KEPT = frozenset({"catalog", "oracle", "views", "segments", "ddl", "commands", "data", "work"})
"""What the topics that Tidemark itself writes are called, behind the environment's name."""

TOPIC_CHARS_MAX = 249
"""Kafka's own bound (``Topic.MAX_NAME_LENGTH``)."""

_TOPIC_PATTERN = re.compile(r"[A-Za-z0-9._-]+")

_ENV_PATTERN = re.compile(r"^[a-z0-9][a-z0-9_-]{0,62}$")


def check_topic_name(name: str) -> None:
    """Raise 22023 for what Kafka calls no topic, however long."""
    if not _TOPIC_PATTERN.fullmatch(name) or name in (".", ".."):
        hint = "letters, digits, '.', '_' and '-'"
        raise InvalidUsage(f'"{name}" cannot be the name of a topic', sqlstate="22023", hint=hint)


@dataclass(frozen=True)
class TopicNames:
    """The names of an environment's topics.  ``env`` is 1 to 63 of ``a-z 0-9 _ -``."""

    env: str

    def __post_init__(self) -> None:
        if not _ENV_PATTERN.match(self.env):
            raise InvalidUsage(f"invalid environment name {self.env!r}", hint="use 1 to 63 of a-z, 0-9, _ and -")

    @property
    def catalog(self) -> str:
        return f"{self.env}.catalog"

    @property
    def oracle(self) -> str:
        return f"{self.env}.oracle"

    @property
    def views(self) -> str:
        return f"{self.env}.views"

    @property
    def segments(self) -> str:
        return f"{self.env}.segments"

    @property
    def ddl(self) -> str:
        return f"{self.env}.ddl"

    def checkpoints(self, journal_topic: str) -> str:
        """Where the images of a journal (``oracle``, ``views``, ``segments``) are kept."""
        return f"{journal_topic}.checkpoints"

    def commands(self, controller: str) -> str:
        """The command topic of a controller: ``storage`` or ``compute-<cluster>``."""
        return f"{self.env}.commands.{controller}"

    def work(self, controller: str) -> str:
        """Where a controller notes what it is at (``controllers/at_work.py``)."""
        return f"{self.env}.work.{controller}"

    @property
    def replies(self) -> str:
        """Where answers to requests of the ``ddl`` topic may go within the environment, as may ``<replies>.<any>``."""
        return f"{self.env}.replies"

    def reserved(self, topic: str) -> bool:
        """Whether ``topic`` is the environment's own, today or in a later release: no user may name it in a statement.

        All of ``<env>.``: a list of what there is today would grow, and then take names that somebody uses.
        """
        return topic.startswith(f"{self.env}.")

    def kept(self, topic: str) -> bool:
        """Whether Tidemark itself writes ``topic``: to read it as a user's would feed what is written on it."""
        head = topic.removeprefix(f"{self.env}.").partition(".")[0]
        return self.reserved(topic) and head in KEPT

    def takes_replies(self, topic: str) -> bool:
        """Whether a request may ask for its answer on ``topic``."""
        return not self.reserved(topic) or topic == self.replies or topic.startswith(f"{self.replies}.")

    def data(self, collection_id: str) -> str:
        """The topic that holds the rows of a collection that Tidemark itself writes."""
        return f"{self.env}.data.{collection_id}"
