"""What changed between two images.  Pure.

A subscriber needs no event stream beside the catalog: it compares the image it has acted on with the next one, and a
new subscriber compares with nothing (:func:`from_empty`); so catching up and tailing are one code path (I6).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from catalog_log.image import EMPTY, Cell, Image, Key
from catalog_log.index import id_order
from catalog_log.model import COLLECTIONS
from catalog_log.records import CatalogValue
from journal.errors import InvalidUsage


@dataclass(frozen=True, slots=True)
class Change:
    """One key that differs.  Values are decoded when looked at; ``None`` where there is none."""

    collection: str
    key: str
    before_cell: Cell | None
    after_cell: Cell | None

    @property
    def before(self) -> CatalogValue | None:
        return None if self.before_cell is None else self.before_cell.value

    @property
    def after(self) -> CatalogValue | None:
        return None if self.after_cell is None else self.after_cell.value


@dataclass(frozen=True, slots=True)
class Delta:
    """What happened in ``[from_ts, to_ts)``: from one image's upper to the next one's.

    ``changes`` come in one order for everybody: by collection as ``COLLECTIONS`` has them, then by key, ids as people
    count them.
    """

    from_ts: int
    to_ts: int
    changes: tuple[Change, ...]

    @property
    def catalog_ts(self) -> int:
        """When the later image's last change took effect: ``to_ts - 1``."""
        return self.to_ts - 1


def between(before: Image, after: Image) -> Delta:
    """What leads from ``before`` to ``after``, two images of one log.

    Cheap if ``after`` was folded from ``before`` by one admitted proposal; otherwise both are compared whole.  Raises
    ``InvalidUsage`` if ``after`` is the older one.
    """
    if after.upper < before.upper:
        raise InvalidUsage(f"no delta from upper {before.upper} back to {after.upper}")
    if after.upper == before.upper:
        keys: Iterable[Key] = ()
    elif after.previous_upper == before.upper:
        keys = after.changed
    else:
        keys = {(c, k) for image in (before, after) for c, cells in image.cells.items() for k in cells}
    changes = []
    for collection, key in keys:
        old, new = _cell(before, collection, key), _cell(after, collection, key)
        if old is not new and old != new:
            changes.append(Change(collection, key, old, new))
    changes.sort(key=lambda c: (_RANK[c.collection], id_order(c.key)))
    return Delta(before.upper, after.upper, tuple(changes))


def from_empty(image: Image) -> Delta:
    """Everything in ``image``, as if it had just happened."""
    return between(EMPTY, image)


_RANK = {collection: rank for rank, collection in enumerate(COLLECTIONS)}


def _cell(image: Image, collection: str, key: str) -> Cell | None:
    cells = image.cells.get(collection)
    return None if cells is None else cells.get(key)
