"""Commands as bytes, and the topic that carries them to one controller.

Promises: the same command gives the same bytes (I6); bytes that are no command are skipped, counted and logged, as in
every other log of ours.  Each Kafka record holds one command.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence

from catalog_log.model import ITEMS
from catalog_log.records import decode_value, encode_value
from controllers.commands import Command, Kind
from controllers.protocol import ControllerState, Effect
from journal.api import Entry, Subscription, Transport
from journal.timestamps import CatalogTs
from schemas import codec
from schemas.codec import Undecodable

log = logging.getLogger(__name__)


def encode(command: Command) -> bytes:
    """The record's value."""
    return codec.encode(
        "command",
        {
            "catalog_ts": command.catalog_ts,
            "ordinal": command.ordinal,
            "lower": command.lower,
            "kind": str(command.kind),
            "object_id": command.object_id,
            "item": None if command.item is None else encode_value(ITEMS, command.item),
            "frontier": command.frontier,
        },
    )


def decode(value: bytes) -> Command:
    """The command in ``value``.  Raises ``schemas.codec.Undecodable``, also where the fields make no command."""
    record = codec.decode("command", value)
    try:
        kind = Kind(record["kind"])
    except ValueError as error:
        raise Undecodable(f"unknown kind of command {record['kind']!r}") from error
    item = None if record["item"] is None else decode_value(ITEMS, record["item"])
    command = Command(CatalogTs(record["catalog_ts"]), record["ordinal"], kind, record["object_id"], item,
                      record["frontier"], CatalogTs(record["lower"]))  # fmt: skip
    if command.ordinal < 0 or not _complete(command):
        raise Undecodable(f"a command of kind {kind} without what it needs")
    return command


def _complete(command: Command) -> bool:
    if command.kind == Kind.CREATE:
        return command.item is not None and command.item.id == command.object_id
    if command.kind == Kind.DROP:
        return command.object_id is not None
    return command.frontier is not None


class CommandFold:
    """The fold of a command topic with a count of what was unreadable.  Pure but for the log line."""

    def __init__(self) -> None:
        self.state = ControllerState()
        self.undecodable = 0

    def take(self, entry: Entry) -> tuple[Effect, ...]:
        """Fold one record; what there is to do now."""
        try:
            command = decode(entry.value)
        except Undecodable as error:
            self.undecodable += 1
            log.warning("skipped a record that is no command", extra={"offset": entry.offset, "reason": str(error)})
            return ()
        self.state, effects = self.state.apply(command)
        return effects


def follow(
    transport: Transport,
    on_effects: Callable[[ControllerState, Sequence[Effect], int], None],
    on_error: Callable[[Exception], None],
) -> Subscription:
    """Fold the command topic from its start, for ever: ``on_effects(state, effects, next_offset)`` after each batch.

    It is called on the reader's thread.  A controller keeps nothing between its lives: it always begins here.
    """
    fold = CommandFold()

    def on_entries(entries: Sequence[Entry]) -> None:
        effects: list[Effect] = []
        for entry in entries:
            effects.extend(fold.take(entry))
        on_effects(fold.state, effects, entries[-1].offset + 1)

    return transport.subscribe(0, on_entries, on_error)
