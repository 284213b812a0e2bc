"""What a controller makes of its command topic: which commands count, and what they ask it to do.

Promises: the state is a pure fold of the topic, the same for every reader; commands take effect together, when their
catalog timestamp is closed; a command sent twice, late, or without its predecessors has no effect at all (I6).

Does *not* promise that a command was right: it came from the catalog's fold, which decided that.

The rule is the catalog's own compare-and-append, once more: a command that opens a catalog timestamp (ordinal 0) is
taken iff its ``lower`` is our frontier; one that goes on is taken iff it is the next ordinal of the timestamp being
collected; the closing advance makes the whole timestamp count and moves the frontier.  Two subscribers may cut the
same history differently (one follows step by step, another starts anew and sends one delta): whoever closes first
moves the frontier, and what the other still sends does not continue it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from immutables import Map

from catalog_log.objects import Item
from controllers.commands import Command, Kind
from journal.timestamps import CatalogTs


class Created(NamedTuple):
    """``item`` exists from ``catalog_ts`` on."""

    catalog_ts: CatalogTs
    item: Item


class Altered(NamedTuple):
    """The object is still the same one, but no longer described by ``before``."""

    catalog_ts: CatalogTs
    before: Item
    item: Item


class Dropped(NamedTuple):
    """``item`` was last true before ``catalog_ts``."""

    catalog_ts: CatalogTs
    item: Item


class FrontierAdvanced(NamedTuple):
    """Everything below ``frontier`` is known: a peek with a smaller catalog_ts may run (I7)."""

    frontier: CatalogTs


Effect = Created | Altered | Dropped | FrontierAdvanced


@dataclass(frozen=True)
class ControllerState:
    """A controller's view of the catalog."""

    frontier: CatalogTs = CatalogTs(0)
    objects: Map = field(default_factory=Map)
    """Live objects by id: ``Map[str, Item]``."""
    settings: Map = field(default_factory=Map)
    """What its cluster's settings are where they are not their defaults: ``Map[str, Setting]`` by key."""
    collecting: Map = field(default_factory=Map)
    """Commands of the timestamp that is not closed yet by their ordinals 0, 1, 2…: ``Map[int, Command]``.  As many as
    there are objects where a controller begins, so that one more must not cost as much as those before it."""
    ignored: int = 0
    """Commands that had no effect (seen before, late, out of place), for the status."""
    told: int = 0
    """Commands that were folded, whatever came of them."""

    def apply(self, command: Command) -> tuple[ControllerState, tuple[Effect, ...]]:
        """The state after ``command`` and what there is to do now: nothing until a timestamp is closed."""
        told = self.told + 1
        if not self._continues(command):
            return replace(self, ignored=self.ignored + 1, told=told), ()
        before = self.collecting if command.ordinal else Map()
        if command.kind == Kind.ADVANCE_CATALOG_FRONTIER:
            return self._close([before[ordinal] for ordinal in range(len(before))], command)
        return replace(self, collecting=before.set(command.ordinal, command), told=told), ()

    def next_id(self) -> tuple[CatalogTs, CatalogTs | None, int]:
        """What the log holds so far, for a subscriber that goes on: (frontier, open catalog_ts, next ordinal)."""
        opened = self.collecting[0].catalog_ts if self.collecting else None
        return self.frontier, opened, len(self.collecting)

    def has(self, command: Command) -> bool:
        """Whether ``command``, of the history that this state is of, was taken already, whoever sent it: they count in
        the order of their ids."""
        frontier, opened, ordinal = self.next_id()
        return command.catalog_ts < frontier or (command.catalog_ts == opened and command.ordinal < ordinal)

    def _continues(self, command: Command) -> bool:
        if command.lower != self.frontier or command.catalog_ts < self.frontier:
            return False
        if command.kind == Kind.ADVANCE_CATALOG_FRONTIER and command.frontier != command.catalog_ts + 1:
            return False
        opened = self.collecting[0].catalog_ts if self.collecting else None
        if command.catalog_ts == opened:
            return command.ordinal == len(self.collecting)
        return command.ordinal == 0

    def _close(self, commands: Sequence[Command], advance: Command) -> tuple[ControllerState, tuple[Effect, ...]]:
        effects: list[Effect] = []
        objects, settings = self.objects, self.settings
        for command in commands:
            before = objects.get(command.object_id) if command.object_id else None
            if command.kind == Kind.CREATE:
                item = command.item
                assert item is not None, f"create without an item: {command}"
                objects = objects.set(item.id, item)
                if before is None:
                    effects.append(Created(command.catalog_ts, item))
                elif before != item:
                    effects.append(Altered(command.catalog_ts, before, item))
            elif command.kind == Kind.DROP and before is not None:
                objects = objects.delete(command.object_id)
                effects.append(Dropped(command.catalog_ts, before))
            elif command.kind == Kind.SET:
                key = command.object_id
                if command.setting is not None:
                    settings = settings.set(key, command.setting)
                elif key in settings:
                    settings = settings.delete(key)
        frontier = advance.frontier
        assert frontier is not None, f"advance without a frontier: {advance}"
        effects.append(FrontierAdvanced(frontier))
        now = replace(self, frontier=frontier, objects=objects, settings=settings, collecting=Map(), told=self.told + 1)
        return now, tuple(effects)
