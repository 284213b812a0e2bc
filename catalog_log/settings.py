"""What the catalog keeps among its settings: which ids are given out, and what a person decides about a cluster or
about how a relation's rows are stored.  Pure.

A cluster's setting has the key ``<name>/<cluster id>``, a relation's ``<name>/<item id>``; one that is not there has
its default.  Every format of the catalog has settings, so that there is nothing to upgrade.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any, Protocol

from catalog_log.image import Image
from catalog_log.model import SETTINGS, Setting

NEXT_ITEM_ID = "next_item_id"
"""The setting that allocates item ids: the number of the next one."""

GEAR = "gear"
"""Who evaluates the changes of a cluster's views."""

AUTO, PROCESS, SPARK = "auto", "process", "spark"
"""Gears.  ``auto``: DuckDB in the cluster's own process while all is small, otherwise Spark.  ``process``: likewise,
and also where floats may differ in their last digits from engine to engine.  ``spark``: Spark alone."""

CLUSTER_SETTINGS: Mapping[str, tuple[str, ...]] = {GEAR: (AUTO, PROCESS, SPARK)}
"""What each may be; the first is its default."""


RETAIN_HISTORY = "retain_history"
"""For how many milliseconds the history of a relation is kept, where that is not as long as of all others."""

CLUSTER_BY = "cluster_by"
"""By which columns the files of a relation are kept apart, as JSON: a list of what engines know them by."""


class Settings(Protocol):
    """Of an image, what is asked here."""

    def get(self, collection: str, key: str) -> Any: ...
    def all(self, collection: str) -> Iterable[tuple[str, Any]]: ...


def next_item_id(image: Settings) -> int:
    """Ids of items with this number or a greater one were never given out."""
    setting = image.get(SETTINGS, NEXT_ITEM_ID)
    return 1 if setting is None else int(setting.value)


def key_of(name: str, cluster_id: str) -> str:
    """Where the setting ``name`` of a cluster is."""
    return f"{name}/{cluster_id}"


def history_key(item_id: str) -> str:
    """Where it is kept for how long the history of a relation is."""
    return f"{RETAIN_HISTORY}/{item_id}"


def kept_history(image: Settings) -> dict[str, int]:
    """The milliseconds of history that relations keep which say so, by their ids."""
    prefix = history_key("")
    found = {key.removeprefix(prefix): each.value for key, each in image.all(SETTINGS) if key.startswith(prefix)}
    return {item_id: int(value) for item_id, value in found.items() if value.isdigit()}


def clustering_key(item_id: str) -> str:
    """Where it is kept by which columns the files of a relation are kept apart."""
    return f"{CLUSTER_BY}/{item_id}"


def clustered_by(image: Settings, item_id: str) -> tuple[str, ...]:
    """The columns by which the files of a relation are to be kept apart, by what engines know them by.

    One that was dropped since may be among them.  Nothing where nobody has said so, or what was said is of a later
    release.
    """
    kept = image.get(SETTINGS, clustering_key(item_id))
    try:
        found = json.loads(kept.value) if kept is not None else []
    except ValueError:
        return ()
    is_list = isinstance(found, list) and all(isinstance(each, str) for each in found)
    return tuple(found) if is_list else ()


def clustering(columns: Iterable[str]) -> Setting:
    """What is kept of it (:func:`clustered_by`)."""
    return Setting(json.dumps(list(columns)))


def keys_of_relation(item_id: str) -> tuple[str, ...]:
    """Of all settings that a relation may have."""
    return (history_key(item_id), clustering_key(item_id))


def cluster_of_key(key: str) -> str | None:
    """Whose setting has this key; ``None`` where it is no cluster's."""
    name, slash, cluster_id = key.partition("/")
    return cluster_id if slash and name in CLUSTER_SETTINGS else None


def cluster_setting(image: Image, name: str, cluster_id: str) -> str:
    """What the setting ``name`` of a cluster is by ``image``."""
    return setting_of(name, image.get(SETTINGS, key_of(name, cluster_id)))


def setting_of(name: str, kept: Setting | None) -> str:
    """What ``name`` is where the catalog has ``kept`` of it.  A value of a later release is the default."""
    known = CLUSTER_SETTINGS[name]
    return kept.value if kept is not None and kept.value in known else known[0]
