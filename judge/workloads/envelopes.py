"""Sources of ``ENVELOPE UPSERT`` and ``DEBEZIUM``: what each key was told last, at every timestamp, whoever dies.

Several clients write puts, changes and removals of few keys to all partitions of two topics, each key always to one
partition, and now and then a message that is none.  They read a source's rows and its errors through all adapters: as
of now, beside a view that sums them up, and as of timestamps, some of which others have read as of before.
At the end what the topics really hold is read as well: the checker (``judge/checkers/envelopes.py``) holds all reads
against it.
"""

from __future__ import annotations

import json
import random
import time
from collections import deque
from collections.abc import Iterator, Sequence
from itertools import count

from judge.checkers.envelopes import BAD, GONE, PUT, group_of
from judge.workloads.api import Failed, Invocation, World
from judge.workloads.log_client import create_topic
from judge.workloads.sql_client import SqlClient, prepare_world
from judge.workloads.topics import NAME, Sent, Taken, Writer, read_all

UPSERT, DEBEZIUM = "upsert", "debezium"
SOURCES = (UPSERT, DEBEZIUM)

PARTITIONS = 2
KEYS = 6
"""Of each partition: few, so that most messages change what is there."""

PRODUCE_SHARE = 0.8
MESSAGES_LEN_MAX = 4
GONE_SHARE, BAD_SHARE = 0.3, 0.03

NEWEST, AGAIN = "newest", "again"
"""As of when a read is: the source's last change, or what somebody in this process has read as of already."""

AT_SHARE, AGAIN_SHARE = 0.6, 0.5
"""Of the reads: as of a timestamp; of these: one that was read before."""

RECENT_MAX = 20

SETTLED_S = 10.0
"""How long the last read waits: longer than the checker's ``LAG_NS``, and than a restart of the storage controller that
was healed just before."""


def topic_of(world: World, source: str) -> str:
    return f"{world.env}-judge-{source}"


def message_of(source: str, said: dict) -> Sent:
    """The message of a ``produce``'s ``{"p", "key", "name", "what", "n"}``."""
    row = {"id": said["name"], "g": group_of(said["key"]), "n": said["n"]}
    value: bytes | None
    if said["what"] == BAD:
        value = b"{" + said["name"].encode()
    elif source == UPSERT:
        value = json.dumps(row).encode() if said["what"] == PUT else None
    elif said["what"] == PUT:
        # What it says of before is missing or wrong, as a database's log may have it: nobody is to look at it.
        value = json.dumps({"before": None, "after": row, "op": "u"}).encode()
    else:
        value = json.dumps({"before": row, "after": None, "op": "d"}).encode() if said["n"] % 2 else None
    return Sent(said["p"], said["key"].encode(), value, said["name"])


def as_logged(taken: Taken) -> list:
    """``[offset, key, name, what, n]`` of a message, by what it is and not by who says to have written it."""
    name = (taken.headers.get(NAME) or b"").decode()
    key = (taken.key or b"").decode()
    if taken.value is None:
        return [taken.offset, key, name, GONE, 0]
    try:
        value = json.loads(taken.value)
    except ValueError:
        return [taken.offset, key, name, BAD, 0]
    row = value["after"] if "op" in value else value
    return [taken.offset, key, name, GONE, 0] if row is None else [taken.offset, key, row["id"], PUT, row["n"]]


def rows_sql(source: str) -> str:
    return f"SELECT 'row' AS tag, key AS a, id AS b, n FROM envelopes_{source}"


def past_sql(source: str) -> str:
    """The rows, and where the messages that are none were."""
    bad = f'SELECT \'bad\', e."partition"::text, e."offset"::text, 0 FROM envelopes_{source}_errors AS e'
    return f"{rows_sql(source)} UNION ALL {bad}"


def now_sql(source: str) -> str:
    sums = f"SELECT 'sum', g::text, n::text, total FROM envelopes_sums WHERE source = '{source}'"
    return f"{past_sql(source)} UNION ALL {sums}"


class Envelopes:
    name = "envelopes"
    clients = 3
    clients_quick = 2
    rate = 1.2
    rate_quick = 2.0

    def setup(self, world: World) -> None:
        for source in SOURCES:
            create_topic(world, topic_of(world, source), PARTITIONS)
        parts = " UNION ALL ".join(f"SELECT '{source}' AS source, g, n FROM envelopes_{source}" for source in SOURCES)
        prepare_world(world, [
            *(f"CREATE SOURCE envelopes_{source} (id text NOT NULL, g int NOT NULL, n bigint NOT NULL) FROM KAFKA "
              f"(TOPIC '{topic_of(world, source)}') KEY FORMAT TEXT VALUE FORMAT JSON ENVELOPE {source.upper()}"
              for source in SOURCES),
            *(f"CREATE INDEX envelopes_{source}_key ON envelopes_{source} (key)" for source in SOURCES),
            "CREATE MATERIALIZED VIEW envelopes_sums AS SELECT source, g, count(*) AS n, sum(n)::bigint AS total "
            f"FROM ({parts}) AS x GROUP BY source, g",
            *map(now_sql, SOURCES),
        ])  # fmt: skip

    def invocations(self, rng: random.Random, worker: int, workers: int) -> Iterator[Invocation]:
        names = count()
        while True:
            source = rng.choice(SOURCES)
            if rng.random() < PRODUCE_SHARE:
                said = [told(rng, f"{worker}-{next(names)}") for _ in range(rng.randint(1, MESSAGES_LEN_MAX))]
                yield Invocation("produce", {"source": source, "messages": said})
            elif rng.random() < AT_SHARE:
                at = AGAIN if rng.random() < AGAIN_SHARE else NEWEST
                yield Invocation("read", {"source": source, "at": at})
            else:
                yield Invocation("read", {"source": source, "at": None})

    def final(self, worker: int, workers: int) -> Sequence[Invocation]:
        if worker:
            return []
        last = [Invocation("read", {"source": source, "at": None, "last": True}) for source in SOURCES]
        return [*last, *(Invocation("log", {"source": source}) for source in SOURCES)]

    def settling(self, unknown: Invocation | None) -> Sequence[Invocation]:
        """The row of the key of its first message: an index answers."""
        if unknown is None:
            return [Invocation("key", {"source": UPSERT, "key": "0-0"})]
        if unknown.f != "produce":
            return []
        return [Invocation("key", {"source": unknown.value["source"], "key": unknown.value["messages"][0]["key"]})]

    def open(self, world: World, worker: int, life: int) -> EnvelopesClient:
        return EnvelopesClient(world, self.name, worker, life)


def told(rng: random.Random, name: str) -> dict:
    """What one message says, of a key that is drawn."""
    partition, drawn = rng.randrange(PARTITIONS), rng.random()
    what = BAD if drawn < BAD_SHARE else GONE if drawn < BAD_SHARE + GONE_SHARE else PUT
    return {"p": partition, "key": f"{partition}-{rng.randrange(KEYS)}", "name": name, "what": what,
            "n": rng.randrange(100)}  # fmt: skip


_RECENT: dict[tuple[str, str], deque[int]] = {}
"""By environment and source: timestamps that clients of this process have read as of."""


class EnvelopesClient(SqlClient):
    def __init__(self, world: World, name: str, worker: int, life: int) -> None:
        super().__init__(world, name, worker, life)
        self.handlers = {"produce": self._produce, "read": self._read, "key": self._key, "log": self._log}
        self._writer = Writer(world.kafka)
        self._produced_at = 0.0

    def prepare(self, invocation: Invocation) -> Invocation:
        """A read is given its timestamp; the last one waits until its source may be held to what was produced."""
        super().prepare(invocation)
        if invocation.f != "read":
            return invocation
        value = invocation.value
        if value.get("last"):
            time.sleep(max(0.0, self._produced_at + SETTLED_S - time.monotonic()))
        if value["at"] is None:
            return invocation
        recent = _RECENT.setdefault((self.world.env, value["source"]), deque(maxlen=RECENT_MAX))
        if value["at"] == AGAIN and recent:
            at = recent[len(recent) // 2]
        else:
            try:
                at = self._last_change(value["source"])
            except Exception:  # it stays as it is, and fails
                return invocation
            recent.append(at)
        return Invocation("read", {**value, "at": at})

    def _last_change(self, source: str) -> int:
        """The timestamp of it."""
        sql = "SELECT max(last_change) FROM tm_internal.frontiers WHERE object_name = %s"
        ((at,),) = self.sql.run(sql, (f"envelopes_{source}",), write=False)
        if at is None:
            raise Failed("NoTimestamp", "nothing of it is bound yet")
        return int(at)

    def _produce(self, value: dict) -> dict[str, list[list[int]]]:
        source = value["source"]
        try:
            messages = [message_of(source, said) for said in value["messages"]]
            return {"offsets": self._writer.send(topic_of(self.world, source), messages)}
        finally:
            self._produced_at = time.monotonic()

    def _read(self, value: dict) -> dict[str, list]:
        source, at = value["source"], value["at"]
        if isinstance(at, str):
            raise Failed("NoTimestamp", "nobody said as of when")
        sql = now_sql(source) if at is None else f"{past_sql(source)} AS OF {at}"
        rows, bad, sums = [], [], []
        for tag, a, b, n in self.sql.run(sql, write=False):
            if tag == "row":
                rows.append([a, b, int(n)])
            elif tag == "bad":
                bad.append([int(a), int(b)])
            else:
                sums.append([int(a), int(b), int(n)])
        return {"rows": sorted(rows), "bad": sorted(bad), **({} if at is not None else {"sums": sorted(sums)})}

    def _key(self, value: dict) -> dict[str, list]:
        sql = f"{rows_sql(value['source'])} WHERE key = %s"
        return {"rows": sorted([a, b, int(n)] for _, a, b, n in self.sql.run(sql, (value["key"],), write=False))}

    def _log(self, value: dict) -> dict[str, dict[str, list]]:
        """All that its topic holds."""
        found = read_all(self.world.kafka, topic_of(self.world, value["source"]))
        return {"partitions": {str(p): [as_logged(each) for each in taken] for p, taken in found.items()}}

    def close(self) -> None:
        super().close()
        self._writer.close()
