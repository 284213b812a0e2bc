"""Plans that were made before: a repeated statement pays neither parsing nor planning.

Promises: :meth:`PlanCache.plan` gives what planning afresh would give on that image for those names, its ``catalog_ts``
included; what planning raises it raises, and keeps nothing of it.  At most ``plans_max`` plans and ``chars_max``
characters of statement text are kept, the least recently used leave first.

A plan is a function of the statement (its text and declared parameter types), of the session's names (database, search
path, cluster, time zone) and of what the catalog image answered while it was made (:mod:`sql.objects.watched`).  The
first two are the key.  The third is asked again on a newer image: a handful of look-ups, after which the plan is good
for that image too; so steady DDL on other objects empties nothing.  DateStyle and its kind are no part of the key
because no plan depends on them: they change how parameters are read and answers are written, which happens outside of
plans.  The zone is one for every plan: sessions are in one or two, and whether a plan depends on it would be asked each
time.

A query whose text has values in it is planned by its skeleton where that means the same
(:mod:`sql.statements.skeletons`): then the skeleton's plan is kept, and texts that differ in their values share it.

Lives on one event loop.  Shared by all sessions of a process.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Generic, TypeVar
from weakref import WeakValueDictionary

from journal.timestamps import CatalogTs
from sql.objects.names import ImageLike, Names
from sql.objects.watched import Answers, Watched, same_answers
from sql.statements.plans import ChangePlan, InsertPlan, SelectPlan
from sql.statements.skeletons import Skeleton, skeleton_of
from sql.statements.writing import PlannedPart, WritingPlan, plan_statement
from sql.syntax import statements as st
from sql.syntax.parse import parse
from values.types import SqlType

PLANS_MAX = 2_000
"""Plans kept.  The plan of an everyday statement takes 10 to 65 KiB (measured with tracemalloc), so these are some
80 MB; and a driver's, a dashboard's and an application's statements are hundreds, not thousands."""

CHARS_MAX = 200_000
"""Characters of the texts of kept statements, all together: a plan takes 200 to 800 times its text (measured), so these
are 160 MB at most, and a few long statements count for many short ones."""

TEXT_CHARS_MAX = CHARS_MAX // 20
"""A longer text is never kept, so that no one statement can throw out a large part of all others."""

P = TypeVar("P", SelectPlan, InsertPlan, ChangePlan, WritingPlan)


@dataclass(eq=False)
class Statement:
    """A parsed statement.  ``parsed`` is a value of :mod:`sql.syntax.statements`, never changed by planning."""

    text: str
    param_oids: tuple[int, ...]
    parsed: st.Statement
    declared: Mapping[int, SqlType]
    latest: tuple[Key, Planned] | None = None
    """Of a text that is not for the cache: its last plan, so that preparing and running it plan it once."""
    skeleton: Skeleton | None = None
    """Of a text with values that may be taken out: then ``parsed`` is that of ``of``, the statement of its skeleton."""
    of: Statement | None = None
    once: bool = False
    """Whether nobody will say it again: then its plan takes nobody's place."""
    over: Callable[[ImageLike], ImageLike] | None = None
    """Of a part of a statement: the image that it is planned on, with what other parts give."""

    @property
    def planned(self) -> bool:
        """Whether it is planned here: queries and what writes rows are, everything else is not worth keeping."""
        return self.parsed.sort in st.PLANNED


@dataclass(eq=False)
class Planned(Generic[P]):
    """A plan and the image that it holds on.

    ``answers`` is what the catalog said while it was made: where that is nothing, the plan holds on every image.
    ``answer`` and ``announced`` are for whoever runs it: the result of a plan that can only ever have one, and what it
    tells of the plan's columns.
    """

    plan: P
    image: ImageLike
    answers: Answers
    answer: object = None
    announced: object = None
    large: bool = False
    """Whether whoever made it found it too large for the event loop: then so is whatever walks its tree."""
    param_oids: tuple[int, ...] | None = None
    """Likewise, what it tells of the plan's parameters."""
    serves: bool = False
    """Of a skeleton's: whether it is known to serve for the texts of that skeleton."""

    @property
    def timeless(self) -> bool:
        """Whether no catalog change can ever make another plan of it."""
        return not self.answers


@dataclass
class Statistics:
    """Since the process began.

    ``hits``: the plan was there and its image too.  ``carried``: the image was newer and gave the same answers.
    ``misses``: there was none.  ``stale``: the catalog answered otherwise, so it was made again.  ``evicted``: the
    least recently used, for want of room.
    """

    hits: int = 0
    carried: int = 0
    misses: int = 0
    stale: int = 0
    evicted: int = 0


Key = tuple[str, tuple[int, ...], str, tuple[str, ...], str, str]


@dataclass
class PlanCache:
    """See the module.  ``plans_max`` 0 keeps nothing: every plan is made afresh."""

    plans_max: int = PLANS_MAX
    chars_max: int = CHARS_MAX
    statistics: Statistics = field(default_factory=Statistics)

    def __post_init__(self) -> None:
        self._plans: OrderedDict[Key, tuple[Statement, Planned]] = OrderedDict()
        self._unfit: OrderedDict[Key, int | None] = OrderedDict()
        self._met: OrderedDict[int, None] = OrderedDict()
        """Skeletons of which a text was planned as it is written, by their hashes: of two that share one the second is
        planned by its skeleton one text too soon, and that is all."""
        self._chars = 0
        # A parsed statement lives as long as a plan here or somebody's prepared statement holds it.
        self._parsed: WeakValueDictionary[tuple[str, tuple[int, ...]], Statement] = WeakValueDictionary()

    def __len__(self) -> int:
        return len(self._plans)

    @property
    def chars(self) -> int:
        """Characters of statement text kept now, once for each plan."""
        return self._chars

    def status(self) -> str:
        """How full it is and what it did, for people."""
        counts = " ".join(f"{name} {count}" for name, count in asdict(self.statistics).items())
        return f"plans {len(self)} of {self.plans_max}, characters {self.chars} of {self.chars_max}; {counts}"

    def statement(
        self, text: str, param_oids: Sequence[int], declared: Callable[[], Mapping[int, SqlType]]
    ) -> Statement:
        """``text`` parsed, or as it was parsed before.  ``declared`` gives the types that ``param_oids`` stand for.

        Raises what :func:`sql.syntax.parse.parse` raises.
        """
        found = self.parsed(text, param_oids)
        return found if found is not None else self.keep_parsed(text, param_oids, parse(text), declared())

    def skeleton_of(self, text: str) -> Skeleton | None:
        """The skeleton of ``text``, where it has one and plans are kept at all."""
        return skeleton_of(text) if self.plans_max else None

    def meets(self, skeleton: Skeleton) -> bool:
        """Whether another text of ``skeleton`` was there before; from now on there was."""
        key = hash((skeleton.text, skeleton.param_oids))
        known = key in self._met
        self._met[key] = None
        self._met.move_to_end(key)
        while len(self._met) > self.plans_max:
            self._met.popitem(last=False)
        return known

    def may_serve(self, statement: Statement, names: Names, image: ImageLike) -> bool:
        """Whether nothing is known against planning ``statement``, which has a skeleton, by that."""
        refused_on = self._unfit.get(_key(statement.of, names), -1)
        return refused_on is not None and refused_on != image.upper

    def serves_not(self, statement: Statement, names: Names, image: ImageLike | None) -> None:
        """The skeleton's plan does not fit; or, on ``image``, there is none: on another one there may be."""
        self._unfit[_key(statement.of, names)] = None if image is None else image.upper
        while len(self._unfit) > self.plans_max:
            self._unfit.popitem(last=False)

    def parsed(self, text: str, param_oids: Sequence[int]) -> Statement | None:
        """``text`` as it was parsed before, if it was."""
        return self._parsed.get((text, tuple(param_oids)))

    def keep_parsed(
        self, text: str, param_oids: Sequence[int], parsed: object, declared: Mapping[int, SqlType]
    ) -> Statement:
        """``text`` with what :func:`sql.syntax.parse.parse` made of it."""
        found = Statement(text, tuple(param_oids), parsed, declared)
        if found.planned:
            self._parsed[found.text, found.param_oids] = found
        return found

    def plan(self, statement: Statement, image: ImageLike, names: Names) -> Planned:
        """The plan of ``statement`` on ``image``.  Raises what planning raises.

        What it gives stays what it is: another image, or other names, get another value.
        """
        found = self.held(statement, image, names)
        return found if found is not None else self.keep(statement, names, plan_afresh(statement, image, names))

    def held(self, statement: Statement, image: ImageLike, names: Names) -> Planned | None:
        """The plan of ``statement`` on ``image`` if it was made before, on that image or one that answered alike."""
        key = _key(statement, names)
        kept = self._kept(key, statement)
        if kept is None:
            self.statistics.misses += 1
            return None
        found = self._carried(kept, image)
        if found is kept:
            if key in self._plans:
                self._plans.move_to_end(key)
        elif found is not None:
            self._keep(key, statement, found)
        return found

    def at_hand(self, statement: Statement, image: ImageLike, names: Names) -> Planned | None:
        """:meth:`held`, where it is of this very image.  Whoever is told ``None`` asks that, and is counted then."""
        key = _key(statement, names)
        found = self._plans.get(key)
        if found is None or found[1].image.upper != image.upper:
            return None
        self.statistics.hits += 1
        self._plans.move_to_end(key)
        return found[1]

    def keep(self, statement: Statement, names: Names, made: Planned) -> Planned:
        """``made``, which :func:`plan_afresh` gave for ``statement`` and ``names``, for whoever asks next."""
        self._keep(_key(statement, names), statement, made)
        return made

    def kept(self, statement: Statement, names: Names) -> Planned | None:
        """What is kept for ``statement``, on whatever image it was made: of use where it is ``timeless``."""
        return self._kept(_key(statement, names), statement)

    def _kept(self, key: Key, statement: Statement) -> Planned | None:
        found = self._plans.get(key)
        if found is not None:
            return found[1]
        return statement.latest[1] if statement.latest is not None and statement.latest[0] == key else None

    def _carried(self, kept: Planned, image: ImageLike) -> Planned | None:
        """``kept`` for ``image``: itself, a copy that says so, or ``None`` where it does not hold there."""
        if kept.image.upper == image.upper:
            self.statistics.hits += 1
            return kept
        if not same_answers(kept.answers, image):
            self.statistics.stale += 1
            return None
        self.statistics.carried += 1
        return replace(kept, plan=_moved(kept.plan, CatalogTs(image.upper - 1)), image=image)

    def _keep(self, key: Key, statement: Statement, planned: Planned) -> None:
        size = len(statement.text)
        if self._plans.pop(key, None) is not None:
            self._chars -= size
        if not self.plans_max:
            return
        if size > TEXT_CHARS_MAX or statement.once:
            statement.latest = key, planned
            return
        self._plans[key] = statement, planned
        self._chars += size
        while len(self._plans) > self.plans_max or self._chars > self.chars_max:
            _, (gone, _) = self._plans.popitem(last=False)
            self._chars -= len(gone.text)
            self.statistics.evicted += 1


def _key(statement: Statement, names: Names) -> Key:
    # The system relations that names know are part of the program, hence the same for everybody.
    return statement.text, statement.param_oids, names.database, names.search_path, names.cluster, names.zone


def plan_afresh(statement: Statement, image: ImageLike, names: Names, view_chars_max: int | None = None) -> Planned:
    """The plan of ``statement``, made afresh; ``TooLongHere`` where plain views of more text would have to be read.

    Pure, and safe on any thread: an image never changes.
    """
    watched = Watched(image, view_chars_max)
    over = watched if statement.over is None else statement.over(watched)
    plan = plan_statement(statement.parsed, over, names, dict(statement.declared))
    return Planned(plan, image, watched.answers)


def part_of(each: PlannedPart, whole: Statement, planned: Planned[WritingPlan], names: Names) -> Statement:
    """A part of ``whole`` as a statement by itself, which is planned already: of the same parameters."""
    text = f"\0{each.part.lower} {whole.text}"  # which nobody can send
    made = Statement(text, whole.param_oids, each.statement, planned.plan.params, once=True, over=each.over)
    made.latest = _key(made, names), Planned(each.plan, planned.image, planned.answers, large=planned.large)
    return made


def _moved(plan: P, catalog_ts: CatalogTs) -> P:
    if isinstance(plan, ChangePlan):
        changes = tuple([replace(each, query=_moved(each.query, catalog_ts)) for each in plan.changes])
        return replace(plan, catalog_ts=catalog_ts, changes=changes)
    if isinstance(plan, InsertPlan) and plan.query is not None:
        return replace(plan, catalog_ts=catalog_ts, query=_moved(plan.query, catalog_ts))
    if isinstance(plan, SelectPlan) and plan.reads is not None:
        return replace(plan, catalog_ts=catalog_ts, reads=replace(plan.reads, catalog_ts=catalog_ts))
    if isinstance(plan, WritingPlan):
        parts = tuple([replace(each, plan=_moved(each.plan, catalog_ts)) for each in plan.parts])
        keyed = plan.keyed and replace(plan.keyed, keys=_moved(plan.keyed.keys, catalog_ts))
        return replace(plan, catalog_ts=catalog_ts, parts=parts, keyed=keyed)
    return replace(plan, catalog_ts=catalog_ts)
