"""By which query the contents of each view were worked out, from one life of the controller to the next.

A view is kept as its user meant it, and lowered by whatever code runs (:mod:`sql.views.kept_views`).  What a life finds
of a view's contents was worked out by the code of an earlier one.  Where both lower it alike, it goes on from there;
where not, a change alone would take away rows that were never put there: the whole query is compared with what the view
holds, once, at its next tick.  So what newer code mends is mended for views that exist, and their contents at
timestamps that were complete before stay what they were (I5).  So is what was wrong with contents themselves
(:data:`MENDED`).

Which query it was is a note of the controller's (:mod:`controllers.at_work`): forgotten before anything is worked out
otherwise, noted again when that is committed.  Where the note is lost, the comparison is made for nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from hashlib import blake2b

from catalog_log.objects import Item, MaterializedView, SparkText
from controllers.at_work import AtWork
from controllers.compute.operators.lowered import Lowered
from sql.objects.called import Objects
from sql.views.kept_views import planned_query, spark_query

PLANS_MAX = 100_000
"""Views of which it is noted: a life says all of them again when it begins, in one record, of 2 MiB then.  Further
views are compared with what they hold at each start."""


class ViewPlans:
    """Any thread; of one view only one at a time."""

    def __init__(self, at_work: AtWork) -> None:
        self._at_work = at_work
        self._unnoted: dict[str, int] = {}
        """Views whose contents are worked out by another query than is noted, with its fingerprint."""

    def query(self, view: MaterializedView, there: Mapping[str, Item]) -> Lowered:
        """As each engine is told it, by what is ``there`` at one catalog timestamp: one that moves on meanwhile would
        give a plan of two of them, which others find later where plans are remembered.

        Raises ``InvalidUsage`` where it cannot be lowered any more.
        """
        objects = Objects(there.get)
        return Lowered(planned_query(view, objects), spark_query(view, objects))

    def begins(self, view: MaterializedView, query: Lowered, anew: bool) -> bool:
        """``view`` is worked out by ``query`` from now on; whether what it holds was too.

        ``anew``: it holds nothing yet.  Raises ``Unavailable`` where no note can be made.
        """
        if isinstance(view.query, SparkText):
            return True  # it is the query that is kept
        noted, now = self._at_work.notes.plans.get(view.id), fingerprint(query.spark_sql)
        if noted == now:
            self._unnoted.pop(view.id, None)
            return True
        if noted is not None:
            self._at_work.planned({}, forgotten=(view.id,))
        self._unnoted[view.id] = now
        return anew

    def committed(self, view_ids: Iterable[str]) -> None:
        """What these views hold is worked out by the queries that they began with."""
        if self._unnoted:
            found = {v: self._unnoted.pop(v) for v in view_ids if v in self._unnoted}
            if found and len(self._at_work.notes.plans) + len(found) <= PLANS_MAX:
                self._at_work.planned(found)


MENDED = b"1"
"""Another one when contents may be wrong though their query was right: then every view is compared once.  1: a view
that was kept by a plan of a table as it was before it got columns took one of these for the diff."""


def fingerprint(query: str) -> int:
    """64 bits: of two queries of one view they differ."""
    return int.from_bytes(blake2b(query.encode(), digest_size=8, person=MENDED).digest(), signed=True)
