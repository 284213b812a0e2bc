"""ALTER CLUSTER: what a person decides about a cluster, as settings of the catalog.  Pure."""

from __future__ import annotations

from difflib import get_close_matches

from catalog_log import model, records
from catalog_log.model import Setting, Update
from catalog_log.settings import CLUSTER_SETTINGS, key_of
from journal.errors import InvalidUsage
from sql.objects.names import ImageLike, Names, cluster_named
from sql.statements.plans import DdlPlan
from sql.syntax import statements as st


def plan_cluster(s: st.AlterCluster, image: ImageLike, names: Names) -> DdlPlan:
    """The settings as they are to be; a default is kept by nothing.

    Raises 42704 for a cluster that is not there, 22023 for a parameter that is none or a value that it may not have,
    42601 for one that is named twice.
    """
    cluster = cluster_named(image, s.name.last)
    updates: dict[str, Update | None] = {}
    for each in s.settings:
        key = key_of(each.name, cluster.id)
        if key in updates:
            raise InvalidUsage(f'parameter "{each.name}" specified more than once', sqlstate="42601",
                               position=each.at + 1)  # fmt: skip
        value = _checked(each)
        there = image.get(model.SETTINGS, key)
        if value is not None:
            updates[key] = records.put(model.SETTINGS, key, Setting(value)) if there != Setting(value) else None
        else:
            updates[key] = records.remove(model.SETTINGS, key) if there is not None else None
    return DdlPlan(tuple(u for u in updates.values() if u is not None), s.tag, described=(cluster.id,))


def _checked(setting: st.ClusterSetting) -> str | None:
    """The value as it is kept, ``None`` for the default."""
    known = CLUSTER_SETTINGS.get(setting.name)
    if known is None:
        near = get_close_matches(setting.name, CLUSTER_SETTINGS, 1) or list(CLUSTER_SETTINGS)
        raise InvalidUsage(f'unrecognized parameter "{setting.name}"', sqlstate="22023", position=setting.at + 1,
                           hint=f"a cluster has: {', '.join(near)}")  # fmt: skip
    if setting.value is None:
        return None
    value = setting.value.lower()
    if value not in (*known, "default"):
        raise InvalidUsage(f'invalid value for parameter "{setting.name}": "{setting.value}"', sqlstate="22023",
                           position=setting.at + 1, hint=f"available values: {', '.join(known)}")  # fmt: skip
    return None if value in (known[0], "default") else value


PLANS = {st.AlterCluster: plan_cluster}
