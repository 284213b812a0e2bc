"""From what changed in the catalog to what one controller is told.

Promises (I6): the commands are a function of the delta alone; the same delta gives the same commands, wherever it is
computed and however the history before it was cut into batches; every delta ends with the advance that closes it, also
when nothing in it concerns this controller.  A new controller gets the delta from the empty catalog by the same code.

Objects are dropped before others are created, dependents before what they depend on; created in the order of their
dependencies.  An object that only changed (a new name) is created again under its id: the controller's own state says
that it existed.  Settings of the controller's cluster come after the objects, in the order of their keys.
"""

from __future__ import annotations

from catalog_log import model
from catalog_log.delta import Delta
from catalog_log.model import Setting
from catalog_log.objects import Audience, Item, cluster_of
from catalog_log.settings import cluster_of_key
from controllers.commands import STORAGE, Command, Kind, compute, in_dependency_order, numbered
from journal.timestamps import CatalogTs


def concerns(item: Item, controller: str) -> bool:
    """Whether ``controller`` must know of ``item``: every kind of object says for whom it is."""
    match item.audience:
        case Audience.EVERYBODY:
            return True
        case Audience.CLUSTERS:
            return controller != STORAGE
        case Audience.ITS_CLUSTER:
            return controller == compute(cluster_of(item))
        case Audience.STORAGE:
            return controller == STORAGE
        case Audience.NOBODY:
            return False


def translate(delta: Delta, controller: str) -> list[Command]:
    """The commands for ``controller``, all at ``catalog_ts = delta.to_ts - 1``, ordinals 0, 1, 2…, the advance last.

    An empty range (``to_ts == from_ts``) gives no commands.
    """
    if delta.to_ts == delta.from_ts:
        return []
    dropped: dict[str, Item] = {}
    created: dict[str, Item] = {}
    settings: dict[str, Setting | None] = {}
    for change in delta.changes:
        if change.collection == model.SETTINGS and _is_its(change.key, controller):
            settings[change.key] = change.after if isinstance(change.after, Setting) else None
        if change.collection != model.ITEMS:
            continue
        before = _told(change.key, change.before, controller)
        after = _told(change.key, change.after, controller)
        if after is not None and after != before:
            created[after.id] = after
        elif before is not None and after is None:
            dropped[before.id] = before
    ts, lower = CatalogTs(delta.catalog_ts), CatalogTs(delta.from_ts)
    commands = [Command(ts, 0, Kind.DROP, item.id, lower=lower) for item in reversed(in_dependency_order(dropped))]
    commands += [Command(ts, 0, Kind.CREATE, item.id, item, lower=lower) for item in in_dependency_order(created)]
    commands += [Command(ts, 0, Kind.SET, key, lower=lower, setting=value) for key, value in settings.items()]
    commands.append(Command(ts, 0, Kind.ADVANCE_CATALOG_FRONTIER, frontier=CatalogTs(delta.to_ts), lower=lower))
    return numbered(commands)


def _is_its(key: str, controller: str) -> bool:
    """Whether it is a setting of the cluster that ``controller`` controls."""
    cluster_id = cluster_of_key(key)
    return cluster_id is not None and controller == compute(cluster_id)


def _told(key: str, value: object, controller: str) -> Item | None:
    """The item if this controller is to know of it.  One under a key that is not its id is as good as absent."""
    return value if isinstance(value, Item) and value.id == key and concerns(value, controller) else None
