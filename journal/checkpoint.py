"""Folded states beside their journal, so that a start costs a bounded tail and the journal can be cut.

Promises: :meth:`load` gives the newest state that was saved completely and undamaged, never a part of one; a saved
state was read back from the topic and compared before :meth:`save` returns, so that cutting the journal below it is
safe.  Any number of processes may save and load at once.

It does not cut the journal itself: its owner knows how much history must stay.

A state is sent as numbered pieces that each carry the whole's length and CRC.  A writer that dies half way leaves an
incomplete one, which no reader takes, and which the next save removes.
"""

from __future__ import annotations

import logging
import uuid
import zlib
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass

from journal.api import Transport
from journal.errors import FatalLog, InvalidUsage
from journal.kafka import KafkaTransport
from journal.reading import read_range
from schemas import codec

log = logging.getLogger(__name__)

PIECE_BYTES = 1024 * 1024
"""An eighth of what a record may have."""

IN_FLIGHT_MAX = 16
"""Pieces sent ahead of their acknowledgements: a quarter of the producer's queue."""

LOAD_TRIES_MAX = 5
"""Each further try means that another process saved, and removed what we were reading."""


@dataclass(frozen=True)
class _Found:
    journal_offset: int
    state: bytes
    first_offset: int
    """Where its first piece is in the checkpoint topic."""
    checkpoint_id: str


class _Pieces:
    """The pieces of one checkpoint as they come."""

    def __init__(self, head: dict, first_offset: int) -> None:
        self._head = head
        self._first_offset = first_offset
        self._payloads: dict[int, bytes] = {}

    def add(self, piece: dict) -> _Found | None:
        """The whole, if ``piece`` completes it and it is undamaged."""
        self._payloads[piece["index"]] = piece["payload"]
        if len(self._payloads) < self._head["count"]:
            return None
        state = b"".join(self._payloads[index] for index in sorted(self._payloads))
        if len(state) != self._head["total_len"] or zlib.crc32(state) != self._head["crc32"]:
            log.warning("damaged checkpoint", extra={"checkpoint": self._head["checkpoint_id"]})
            return None
        return _Found(self._head["journal_offset"], state, self._first_offset, self._head["checkpoint_id"])


class StoreOver:
    """Checkpoints on the topic that ``connect`` connects to; each operation connects anew, for they are rare."""

    def __init__(self, connect: Callable[[], Transport]) -> None:
        self._connect = connect

    def save(self, journal_offset: int, state: bytes) -> None:
        """Save ``state``, which holds every record of the journal below ``journal_offset``, and read it back.

        Older checkpoints but one are removed.  Raises ``Rejected``, ``Indeterminate``, ``Unavailable`` (nothing is
        lost: save again) or ``FatalLog`` (it reads back differently).
        """
        if journal_offset < 0:
            raise InvalidUsage(f"no journal offset: {journal_offset}")
        checkpoint_id = uuid.uuid4().hex
        transport = self._connect()
        try:
            self._send(transport, checkpoint_id, journal_offset, state)
            complete = self._complete(transport)
            ours = [found for found in complete if found.checkpoint_id == checkpoint_id]
            if not ours or ours[0].state != state or ours[0].journal_offset != journal_offset:
                # Somebody may have saved a newer one twice over meanwhile, and removed ours as old.
                if not ours and any(found.journal_offset >= journal_offset for found in complete):
                    return
                raise FatalLog(f"the checkpoint at offset {journal_offset} does not read back as it was saved")
            keep = sorted(complete, key=lambda found: found.journal_offset)[-2:]
            transport.cut(min(found.first_offset for found in keep))
        finally:
            transport.close()

    def load(self) -> tuple[int, bytes] | None:
        """``(journal offset, state)`` of the newest complete checkpoint; ``None`` if there is none.

        Raises ``Unavailable``, ``FatalLog``.
        """
        transport = self._connect()
        try:
            complete = self._complete(transport)
        finally:
            transport.close()
        if not complete:
            return None
        newest = max(complete, key=lambda found: found.journal_offset)
        return newest.journal_offset, newest.state

    def _send(self, transport: Transport, checkpoint_id: str, journal_offset: int, state: bytes) -> None:
        count = max(1, -(-len(state) // PIECE_BYTES))
        head = {
            "checkpoint_id": checkpoint_id,
            "journal_offset": journal_offset,
            "count": count,
            "total_len": len(state),
            "crc32": zlib.crc32(state),
        }
        in_flight: deque[Future[int]] = deque()
        for index in range(count):
            payload = state[index * PIECE_BYTES : (index + 1) * PIECE_BYTES]
            piece = codec.encode("checkpoint_chunk", head | {"index": index, "payload": payload})
            in_flight.append(transport.append(piece))
            if len(in_flight) >= IN_FLIGHT_MAX:
                in_flight.popleft().result()
        for sent in in_flight:
            sent.result()

    def _complete(self, transport: Transport) -> list[_Found]:
        for attempt in range(1, LOAD_TRIES_MAX + 1):
            start, end = transport.bounds()
            try:
                return self._scan(transport, start, end)
            except FatalLog:
                if attempt == LOAD_TRIES_MAX or transport.bounds()[0] <= start:
                    raise
        raise AssertionError("unreachable: the last try returns or raises")

    def _scan(self, transport: Transport, start: int, end: int) -> list[_Found]:
        under_way: dict[str, _Pieces] = {}
        complete: list[_Found] = []
        for batch in read_range(transport, start, end):
            for entry in batch:
                try:
                    piece = codec.decode("checkpoint_chunk", entry.value)
                except codec.Undecodable as error:
                    log.warning("not a checkpoint", extra={"offset": entry.offset, "reason": str(error)})
                    continue
                pieces = under_way.setdefault(piece["checkpoint_id"], _Pieces(piece, entry.offset))
                found = pieces.add(piece)
                if found is not None:
                    del under_way[piece["checkpoint_id"]]
                    # The two newest are all that anybody needs; more would only fill memory.
                    complete = sorted([*complete, found], key=lambda f: f.journal_offset)[-2:]
        return complete


class CheckpointStore(StoreOver):
    """Checkpoints on the Kafka topic ``topic``, which must exist."""

    def __init__(self, bootstrap: str, topic: str) -> None:
        super().__init__(lambda: KafkaTransport(bootstrap, topic))
