"""Commands as bytes, and the topic that carries them to one controller.

Promises: the same command gives the same bytes (I6); bytes that are no command are skipped, counted and logged, as in
every other log of ours.  A record holds one command or, where the catalog's format allows it, some that come one after
another (:func:`records_of`): a record costs its writer, the broker and two readers more than a command does.

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
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from typing import Any

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
"""Records sent ahead of their acknowledgements, as a subscriber does."""

ANSWER_TIMEOUT_S = 30.0
"""For one of them: the transport answers within its watchdog (2 s)."""


ALONE, TOGETHER = 1, 2
"""Versions of a record: of one command, and of one or many."""

TOGETHER_MAX, TOGETHER_BYTES_MAX = 100, 256 << 10
"""Commands of one record, and their bytes, but for a command that is larger by itself.  Of a hundred a record costs
each a hundredth of what it does; and what is sent again where a record is lost stays small."""


def records_of(commands: Sequence[Command], together: bool) -> Iterator[tuple[Sequence[Command], bytes]]:
    """``commands``, in order, as records, ``together`` as few as may be: what each holds, and its value."""
    if not together:
        yield from (([command], encode(command)) for command in commands)
        return
    values = [encode(command, alone=False) for command in commands]
    begin = 0
    while begin < len(commands):
        end, size = begin + 1, len(values[begin])
        while end < len(commands) and end - begin < TOGETHER_MAX and size + len(values[end]) <= TOGETHER_BYTES_MAX:
            size += len(values[end])
            end += 1
        yield commands[begin:end], _together(values[begin:end])
        begin = end


def _together(values: Sequence[bytes]) -> bytes:
    """One record of several.  What comes behind the first is the last field of a record, and of one that has nothing
    behind it the last byte: so none is written out twice."""
    head, *behind = values
    return head[: -len(_NOTHING_BEHIND)] + codec.array_of_bytes(behind) if behind else head


_NOTHING_BEHIND = codec.array_of_bytes(())


def encode(command: Command, alone: bool = True) -> bytes:
    """The record's value.  ``alone``: as ``ALONE``, which every code reads; else as ``TOGETHER``, for catalogs whose
    format says that there may be such, and others may come behind it in the same record."""
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
            "more": (),
        },
        ALONE if alone else TOGETHER,
    )


def _encoded(command: Command) -> bytes | None:
    """The record that a command carries: an item, or a setting."""
    if command.setting is not None:
        return encode_value(SETTINGS, command.setting)
    return None if command.item is None else encode_value(ITEMS, command.item)


def decode(value: bytes) -> list[Command]:
    """The commands in ``value``.  Raises ``schemas.codec.Undecodable``, also where the fields make no command."""
    record = codec.decode("command", value)
    found = [_command(record)]
    for each in record["more"]:
        behind = codec.decode("command", each)
        if behind["more"]:
            raise Undecodable("a command behind another one with more behind it")
        found.append(_command(behind))
    return found


def _command(record: Mapping[str, Any]) -> Command:
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
"""Commands beyond those that say what there is, before they are cut: folded in a third of a second by who starts."""


CUT_AFTER_S = 30.0
"""Between restating and cutting, for readers that are behind: as long as one survives an absent broker.  One that is
later ends, and begins where the topic begins."""

AGAIN_MAX = 100
"""Commands that came between and are said once more, beside as many as there are objects: more would hardly end."""

PAUSE_MAX_S = 16 * CUT_AFTER_S
"""Between two tries to restate that come to nothing: by then a topic that is told a thousand objects each time has
grown by a hundredth of what a day of DDL adds."""


def compaction_due(told: int, state: ControllerState) -> bool:
    """Whether a topic of ``told`` commands says much more than ``state`` needs."""
    return told > COMPACT_EVERY + 2 * len(state.objects)


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
        self._told_before = 0
        """Of the commands that its controller was told, those that are not on the topic any more."""
        self._restated: tuple[int, float, int] | None = None
        """Where the topic may be cut, when, and how many commands were told of what is said anew there."""
        self._pause_s = CUT_AFTER_S
        self._not_before = float("-inf")

    def due(self, state: ControllerState) -> bool:
        """Whether :meth:`run` has something to do, now that all that made ``state`` was acted on."""
        if self._restated is not None:
            return self._clock() >= self._restated[1]
        return compaction_due(state.told - self._told_before, state) and self._clock() >= self._not_before

    def run(self, through: int, told: int) -> int | None:
        """Restate, or cut what was restated before; where it was cut.  Blocks, and raises as :func:`restated`.
        ``told``: the commands below ``through``, as the state says that was acted on.

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
                self._restated = first, self._clock() + CUT_AFTER_S, told
            return None
        (first, _, told_before), self._restated = self._restated, None
        self._transport.cut(first)
        self._told_before = told_before
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
        offset = _append_all(transport, untold, fold.together)
        first = offset if first is None else first
        end = transport.bounds()[1]
        for entry in _entries(transport, through, end):
            told += fold.taken(entry)
            if entry.offset >= first:
                anew.take(entry)
        through = end
        if _known(anew.state) == _known(fold.state):
            return first
        untold = [command for command in told if not anew.state.has(command)]
    return None


def _append_all(transport: Transport, commands: Sequence[Command], together: bool) -> int:
    """The offset of the first, once all are there; ``together``: as of :func:`records_of`."""
    values = (value for _, value in records_of(commands, together))
    first = transport.append(next(values)).result(ANSWER_TIMEOUT_S)
    sent: deque[Future[int]] = deque()
    for value in values:
        sent.append(transport.append(value))
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
        self.together = False
        """Whether there is a record that may hold many commands: then there may be more of them."""

    def take(self, entry: Entry, said: Sequence[Command] | None = None) -> Sequence[Effect]:
        """Fold one record; what there is to do now.  ``said`` is what it holds, where that is known without reading."""
        effects: list[Effect] = []
        for command in self._read(entry) if said is None else said:
            self.state, done = self.state.apply(command)
            effects += done
        return effects

    def taken(self, entry: Entry) -> list[Command]:
        """Fold one record; those of its commands that had an effect or will have."""
        found = []
        for command in self._read(entry):
            ignored = self.state.ignored
            self.state, _ = self.state.apply(command)
            if self.state.ignored == ignored:
                found.append(command)
        return found

    def _read(self, entry: Entry) -> Sequence[Command]:
        try:
            commands = decode(entry.value)
            self.together = self.together or codec.frame_version(entry.value) >= TOGETHER
            return commands
        except Undecodable as error:
            self.undecodable += 1
            log.warning("skipped a record that is no command", extra={"offset": entry.offset, "reason": str(error)})
            return ()


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
