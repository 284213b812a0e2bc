"""Commands as bytes, and the topic that carries them to one controller.

Promises: the same command gives the same bytes (I6); bytes that are no command are skipped, counted and logged, as in
every other log of ours.  Each Kafka record holds one command.

A topic does not keep all that ever happened.  Its controller, once it has acted on everything, says its own state anew
as a new controller would be told it (``restate``), and cuts what is before that (``Compaction``): whoever begins there
comes to the same state, and hears of no object that is gone.  A command that came between two of the restated ones is
lost to who begins there, for it continues a state that he does not have yet: so it is said once more after them, as
often as others come between.  It is cut only where all was seen to be well; else it is left as it is for a while.
"""

from __future__ import annotations

import logging
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future

from catalog_log.model import ITEMS, SETTINGS
from catalog_log.records import decode_value, encode_value
from controllers.commands import Command, Kind, in_dependency_order, numbered
from controllers.protocol import ControllerState, Effect
from journal.api import Entry, Subscription, Transport
from journal.errors import Indeterminate
from journal.reading import read_range
from journal.timestamps import CatalogTs
from schemas import codec
from schemas.codec import Undecodable

log = logging.getLogger(__name__)

IN_FLIGHT_MAX = 1000
"""Commands sent ahead of their acknowledgements, as a subscriber does."""

ANSWER_TIMEOUT_S = 30.0
"""For one of them: the transport answers within its watchdog (2 s)."""


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
            "item": _encoded(command),
            "frontier": command.frontier,
        },
    )


def _encoded(command: Command) -> bytes | None:
    """The record that a command carries: an item, or a setting."""
    if command.setting is not None:
        return encode_value(SETTINGS, command.setting)
    return None if command.item is None else encode_value(ITEMS, command.item)


def decode(value: bytes) -> Command:
    """The command in ``value``.  Raises ``schemas.codec.Undecodable``, also where the fields make no command."""
    record = codec.decode("command", value)
    try:
        kind = Kind(record["kind"])
    except ValueError as error:
        raise Undecodable(f"unknown kind of command {record['kind']!r}") from error
    said = record["item"]
    setting = decode_value(SETTINGS, said) if said is not None and kind == Kind.SET else None
    item = decode_value(ITEMS, said) if said is not None and kind != Kind.SET else None
    command = Command(CatalogTs(record["catalog_ts"]), record["ordinal"], kind, record["object_id"], item,
                      record["frontier"], CatalogTs(record["lower"]), setting)  # fmt: skip
    if command.ordinal < 0 or not _complete(command):
        raise Undecodable(f"a command of kind {kind} without what it needs")
    return command


def _complete(command: Command) -> bool:
    if command.kind == Kind.CREATE:
        return command.item is not None and command.item.id == command.object_id
    if command.kind in (Kind.DROP, Kind.SET):
        return command.object_id is not None
    return command.frontier is not None


COMPACT_EVERY = 10_000
"""Records beyond those that say what there is, before they are cut: folded in a third of a second by whoever starts."""


CUT_AFTER_S = 30.0
"""Between restating and cutting, for readers that are behind: as long as one survives an absent broker.  One that is
later ends, and begins where the topic begins."""

AGAIN_MAX = 100
"""Commands that came between and are said once more, beside as many as there are objects: more would hardly end."""

PAUSE_MAX_S = 16 * CUT_AFTER_S
"""Between two tries to restate that come to nothing: by then a topic that is told a thousand objects each time has
grown by a hundredth of what a day of DDL adds."""


def compaction_due(records: int, state: ControllerState) -> bool:
    """Whether a topic of ``records`` says much more than ``state`` needs."""
    return records > COMPACT_EVERY + 2 * len(state.objects)


def restate(state: ControllerState) -> list[Command]:
    """The commands that a controller which knows nothing needs to be at ``state``: what a new one would be sent."""
    if not state.frontier:
        return []
    ts = CatalogTs(state.frontier - 1)
    items = in_dependency_order(dict(state.objects))
    told = [Command(ts, 0, Kind.CREATE, item.id, item) for item in items]
    told += [Command(ts, 0, Kind.SET, key, setting=state.settings[key]) for key in sorted(state.settings)]
    told.append(Command(ts, 0, Kind.ADVANCE_CATALOG_FRONTIER, frontier=state.frontier))
    return numbered(told)


class Compaction:
    """Of the topic of the controller that calls it, from one thread at a time."""

    def __init__(self, transport: Transport, clock: Callable[[], float] = time.monotonic) -> None:
        self._transport = transport
        self._clock = clock
        self._start = transport.bounds()[0]
        self._restated: tuple[int, float] | None = None
        """Where the topic may be cut, and when."""
        self._pause_s = CUT_AFTER_S
        self._not_before = float("-inf")

    def due(self, through: int, state: ControllerState) -> bool:
        """Whether :meth:`run` has something to do, now that everything below ``through`` was acted on."""
        if self._restated is not None:
            return self._clock() >= self._restated[1]
        return compaction_due(through - self._start, state) and self._clock() >= self._not_before

    def run(self, through: int) -> int | None:
        """Restate, or cut what was restated before; where it was cut.  Blocks, and raises as :func:`restated`.

        Where it comes to nothing the topic is the longer for it, and reading it took a while: the next try is after
        ``CUT_AFTER_S``, the one after that after twice as long, up to ``PAUSE_MAX_S``.
        """
        self._not_before = self._clock() + self._pause_s
        self._pause_s = min(2 * self._pause_s, PAUSE_MAX_S)
        if self._restated is None:
            try:
                first = restated(self._transport, through)
            except Indeterminate:
                self._transport.renew()  # it may hang on a leader that was deposed, and nobody else writes through it
                raise
            if first is None:
                log.info("the commands are not cut: others wrote meanwhile", extra={"through": through})
            else:
                self._restated = first, self._clock() + CUT_AFTER_S
            return None
        (first, _), self._restated = self._restated, None
        self._transport.cut(first)
        self._start = first
        self._pause_s, self._not_before = CUT_AFTER_S, float("-inf")
        return first


def restated(transport: Transport, through: int) -> int | None:
    """Restate what the topic says below ``through``; the offset at which it may be cut now, ``None`` if others wrote
    meanwhile, all the time.

    Blocks, and reads the topic.  What came between is said once more, which is less each time, for it takes as long as
    it is much.  Raises ``Unavailable``, ``Indeterminate``, ``Rejected``.
    """
    start, _ = transport.bounds()
    fold, anew = CommandFold(), CommandFold()
    for entry in _entries(transport, start, through):
        fold.take(entry)
    # What whoever begins there must have taken: what is restated, what is said of a timestamp that is open, what comes.
    opened = fold.state.collecting
    told = [*restate(fold.state), *(opened[ordinal] for ordinal in range(len(opened)))]
    first: int | None = None
    untold, left = told, 2 * len(told) + AGAIN_MAX
    while untold and len(untold) <= left:  # else it would never end
        left -= len(untold)
        offset = _append_all(transport, untold)
        first = offset if first is None else first
        end = transport.bounds()[1]
        for entry in _entries(transport, through, end):
            command = fold.taken(entry)
            if command is not None:
                told.append(command)
            if entry.offset >= first:
                anew.take(entry)
        through = end
        if _known(anew.state) == _known(fold.state):
            return first
        untold = [command for command in told if not anew.state.has(command)]
    return None


def _append_all(transport: Transport, commands: Sequence[Command]) -> int:
    """The offset of the first, once all are there."""
    first = transport.append(encode(commands[0])).result(ANSWER_TIMEOUT_S)
    sent: deque[Future[int]] = deque()
    for command in commands[1:]:
        sent.append(transport.append(encode(command)))
        if len(sent) >= IN_FLIGHT_MAX:
            sent.popleft().result(ANSWER_TIMEOUT_S)
    for each in sent:
        each.result(ANSWER_TIMEOUT_S)
    return first


def _entries(transport: Transport, start: int, end: int) -> Iterator[Entry]:
    for batch in read_range(transport, start, end):
        yield from batch


def _known(state: ControllerState) -> tuple[object, ...]:
    """All that the commands to come depend on."""
    return state.frontier, state.objects, state.settings, state.collecting


class CommandFold:
    """The fold of a command topic with a count of what was unreadable.  Pure but for the log line."""

    def __init__(self) -> None:
        self.state = ControllerState()
        self.undecodable = 0

    def take(self, entry: Entry, said: Command | None = None) -> tuple[Effect, ...]:
        """Fold one record; what there is to do now.  ``said`` is its command, where that is known without reading."""
        return self._fold(entry, said)[1]

    def taken(self, entry: Entry) -> Command | None:
        """Fold one record; its command, if that had an effect or will have."""
        ignored = self.state.ignored
        command, _ = self._fold(entry)
        return command if self.state.ignored == ignored else None

    def _fold(self, entry: Entry, said: Command | None = None) -> tuple[Command | None, tuple[Effect, ...]]:
        try:
            command = decode(entry.value) if said is None else said
        except Undecodable as error:
            self.undecodable += 1
            log.warning("skipped a record that is no command", extra={"offset": entry.offset, "reason": str(error)})
            return None, ()
        self.state, effects = self.state.apply(command)
        return command, effects


def follow(
    transport: Transport,
    on_effects: Callable[[ControllerState, Sequence[Effect], int], None],
    on_error: Callable[[Exception], None],
) -> Subscription:
    """Fold the command topic from where it begins, for ever.

    ``on_effects(state, effects, next_offset)`` is called after each batch, on the reader's thread.  A controller keeps
    nothing between its lives: it always begins here.
    """
    fold = CommandFold()

    def on_entries(entries: Sequence[Entry]) -> None:
        effects: list[Effect] = []
        for entry in entries:
            effects.extend(fold.take(entry))
        on_effects(fold.state, effects, entries[-1].offset + 1)

    return transport.subscribe(transport.bounds()[0], on_entries, on_error)
