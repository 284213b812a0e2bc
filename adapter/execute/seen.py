"""What a read has seen, as its commit says it: tables as wholes, and ranges of keys of others."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import NamedTuple

from catalog_log.image import Image
from catalog_log.objects import Index, Table, view_inputs
from collection.ordered_keys import owner_of
from oracle.model import KeyRange
from sql.statements.plans import SelectPlan


class Seen(NamedTuple):
    tables: tuple[str, ...] = ()
    ranges: tuple[KeyRange, ...] = ()


def seen_by(
    image: Image, plan: SelectPlan, params: Sequence[object | None], read_in: Image | None, given: Collection[str] = ()
) -> Seen:
    """What ``plan`` sees with ``params``, without the relations ``given``.

    ``read_in`` is a catalog that was in force where it reads, or before.  Only by constraints that were kept there are
    ranges told: who wrote a table before it had one did not name its keys.  Where that is not known, none are.
    """
    inputs = [each for each in plan.inputs if each not in given]
    narrowed: dict[str, list[KeyRange]] = {}
    values, _ = plan.values(params)
    for each in plan.keys_seen if read_in is not None else ():
        bounds = each.ranges(values, lambda owner: _is_kept(owner, read_in))
        if bounds is not None and each.table_id in inputs:
            narrowed[each.table_id] = [KeyRange(each.table_id, lower, upper) for lower, upper in bounds]
    whole = tables_below(image, [each for each in inputs if each not in narrowed])
    ranges = [each for table, of in narrowed.items() if table not in whole for each in of]
    return Seen(whole, tuple(ranges))


def _is_kept(owner: str, image: Image) -> bool:
    """Whether all rows have kept the constraint ``owner`` since ``image``, and everybody names its keys."""
    index = image.item(owner)
    return isinstance(index, Index) and index.since is None


def still_named(reads: Sequence[KeyRange], image: Image) -> tuple[KeyRange, ...]:
    """``reads`` for a commit that depends on ``image``: all of a table where a constraint by which some of it was named
    is gone, since whoever writes there names its keys no more."""
    gone = {each.collection for each in reads if each.lower is not None and image.item(owner_of(each.lower)) is None}
    if not gone:
        return tuple(reads)
    return (*map(KeyRange, sorted(gone)), *(each for each in reads if each.collection not in gone))


def tables_below(image: Image, inputs: Sequence[str]) -> tuple[str, ...]:
    """The tables that a query reads, also through materialized views: what first-committer-wins looks at.

    Sources are left out: they grow all the time, and nobody's transaction writes them.
    """
    found, queue, seen = set(), list(inputs), set()
    while queue:
        each = queue.pop()
        if each in seen:
            continue
        seen.add(each)
        item = image.item(each)
        if item is not None and isinstance(item, Table):
            found.add(each)
        elif item is not None:
            queue.extend(view_inputs(item))
    return tuple(sorted(found))
