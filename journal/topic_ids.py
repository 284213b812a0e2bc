"""Kafka's ids of topics: what tells a topic from another one that was made later under its name.

Promises: an id that was asked for *after* records were fetched, and is the id that was pinned, proves that they are of
that topic: ids are never given twice, so it was there all the time before.  (Fetching tells no id, and the offsets of a
topic that was made anew may have come to any place by then.)
"""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Iterable
from typing import Any

from confluent_kafka import KafkaError, KafkaException, TopicCollection

from journal import clients
from journal.lasting import Lasting, lasting_of

ASK_TIMEOUT_S = 5.0
"""For the answer of any broker, the ones that are silent included: two of them at ``SOCKET_TIMEOUT_MS``."""

Answers = Callable[[], dict[str, str | None]]


class TopicIds:
    """Of the cluster that ``admin`` asks; from any thread.  Ours has :func:`ids_of`."""

    def __init__(self, admin: Lasting) -> None:
        self._admin = admin

    def ask(self, topics: Iterable[str]) -> Answers:
        """Ask now (some 1 ms, on Kafka's threads); what is returned waits for the answer.

        It gives each topic's id, ``None`` for one that stays unknown for longer than to a broker that just started,
        and raises ``Unavailable``.
        """
        names = sorted(set(topics))
        if not names:
            return dict
        first = self._admin.client
        asked = [_send(first, names, clients.CONTROLLER_TRY_S)]

        def look(client: Any, timeout_s: float) -> dict[str, str | None]:
            sent = asked.pop() if asked and client is first else _send(client, names, timeout_s)
            return {name: _id_in(sent[name]) for name in names}

        def answers() -> dict[str, str | None]:
            unknown_until = time.monotonic() + clients.UNKNOWN_S
            while True:
                found: dict[str, str | None] = self._admin.ask_controller(names[0], look, ASK_TIMEOUT_S)
                if None not in found.values() or time.monotonic() > unknown_until:
                    return found
                time.sleep(clients.TRY_AGAIN_S)

        return answers


def _send(client: Any, names: list[str], timeout_s: float) -> dict[str, Any]:
    return client.describe_topics(TopicCollection(names), request_timeout=timeout_s)


def _id_in(answer) -> str | None:
    try:
        return str(answer.result().topic_id)
    except KafkaException as error:
        if error.args[0].code() == KafkaError.UNKNOWN_TOPIC_OR_PART:
            return None
        raise


@functools.cache  # a process knows one cluster, tests a few
def ids_of(bootstrap: str) -> TopicIds:
    """This process's :class:`TopicIds` of the cluster at ``bootstrap``."""
    return TopicIds(lasting_of(bootstrap))
