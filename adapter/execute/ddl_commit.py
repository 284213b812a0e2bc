"""DDL of one adapter, group-committed: append, apply, then answer (DESIGN §3, §4).

Promises: a statement that is answered with success is in the catalog and in force for everybody (its catalog
timestamp is applied on the oracle) before the answer; one that is answered with an error derived from the catalog
(42P07, 42P01…) or as a no-op (IF NOT EXISTS) was judged on an image that holds everything acknowledged before the
statement arrived.  After a conflict everything is planned again on the new image, never resent.

Statements that arrive while a proposal is under way share the next one, and so do those that come at once: each is
planned on the image as those before it in the same proposal leave it.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Coroutine
from dataclasses import dataclass

from adapter.execute.planning import LONG_CHARS, ON_LOOP_CHARS_MAX, Planner
from catalog_log import model, records
from catalog_log.fold import last_puts, tried
from catalog_log.image import Image
from catalog_log.log import CatalogLog
from catalog_log.model import Request, Statement, Update, statement_key
from catalog_log.records import PROPOSAL_BYTES_MAX, Proposal
from journal.aio import Bridge
from journal.errors import Conflict, Indeterminate, InvalidUsage, Rejected, TidemarkError, Unavailable
from journal.timestamps import CatalogTs
from oracle.client import Oracle
from sql.objects.names import Names
from sql.objects.watched import Answers, TooLongHere, Watched, same_answers
from sql.statements.ddl import plan_ddl
from sql.statements.plans import DdlPlan
from sql.syntax.statements import AlterColumns, CreateView

log = logging.getLogger(__name__)

QUEUE_LEN_MAX = 10_000
"""Statements waiting in one adapter: at the measured hundreds of proposals a second (FACTS), far more than a client's
patience; beyond it 53300."""

GROUP_LEN_MAX = 256
"""Statements in one proposal: planning them holds the event loop for about 50 ms at 0.2 ms each."""

GATHERING_TURNS = 3
"""Turns of the loop without another statement after which a group is complete: a session's bytes are a statement in the
queue three turns later.  Those who were answered together come again together, and whoever is first of them would else
go alone, with the others behind it.  Alone it costs some 30 µs."""

GROUP_BYTES_MAX = PROPOSAL_BYTES_MAX // 2
"""Updates in one shared proposal; a single statement may fill a whole one."""

TRIES_MAX = 200
"""Proposals that one group may lose: eight processes at full speed need 5 (FACTS)."""

CATALOG_WAIT_S = 15.0
"""How long a known upper may take to be folded here: as long as settling an append may (catalog_log)."""

CLOSE_TIMEOUT_S = 0.5
"""How long closing waits for a judgement that is under way: a barrier takes milliseconds unless a broker is away."""

REQUESTS_MAX = 10_000
REQUESTS_CUT = 1_000
"""Answers to DDL requests kept in the catalog, and how many of the oldest go at once.  A request is only looked up
again if the adapter died between its execution and its answer, so the newest few would do."""


@dataclass(frozen=True)
class DdlOutcome:
    """What became of a statement.  ``already`` is the recorded answer of a request that was executed before."""

    tag: str
    notices: tuple
    catalog_ts: CatalogTs
    already: Request | None = None


AUDIT_MAX = 10_000
AUDIT_CUT = 1_000
"""Statements kept in the catalog's image for ``tm_catalog.ddl_audit``, and how many of the oldest leave it at once: an
image is in every process's memory, at some 500 bytes a statement.  The log keeps all for ever (``tidemark log``)."""


AUDIT_CHARS_MAX = 65_536
"""Of a statement's text in the audit, so that 10,000 of them are bounded; what is longer ends in an ellipsis there, and
is whole in the object that it made."""


@dataclass(frozen=True)
class Asked:
    """Where a statement came from, for the audit: its text, and the role of its session (``None``: nobody said)."""

    text: str
    role: str | None = None


@dataclass(frozen=True)
class Ready:
    """A plan, and the answers of the catalog that it holds by where they were written down."""

    plan: DdlPlan
    answers: Answers | None = None


@dataclass(eq=False)
class _Pending:
    statement: object
    names: Names
    done: asyncio.Future[DdlOutcome]
    asked: Asked
    request_id: str | None = None
    plan: DdlPlan | None = None
    ready: Ready | None = None
    """What a long statement was planned to before it came here, and what the catalog said meanwhile."""
    judged: TidemarkError | DdlOutcome | None = None
    judged_upper: int = 0
    sent: bool = False
    """A proposal with it is under way, or was admitted: it may have happened."""


_READS_VIEWS = (CreateView, AlterColumns)
"""Statements that take as long as the views that they have to read: those that one is made of, those that may read a
column that goes."""


class DdlQueue:
    """The DDL of one adapter.  Lives on one event loop; :meth:`start` once, :meth:`close` in the end."""

    def __init__(
        self, catalog: CatalogLog, oracle: Oracle, bridge: Bridge, now_ms: Callable[[], int], planner: Planner
    ) -> None:
        self._planner = planner
        self._catalog = catalog
        self._oracle = oracle
        self._bridge = bridge
        self._now_ms = now_ms
        self._waiting: deque[_Pending] = deque()
        self._arrived = asyncio.Event()
        self._task: asyncio.Task | None = None
        self._answers: set[asyncio.Task] = set()

    def start(self) -> None:
        self._task = asyncio.get_running_loop().create_task(self._work(), name="ddl-queue")

    async def close(self) -> None:
        """Stop; what waits fails with ``Unavailable``, what was sent with ``Indeterminate``."""
        if self._task is not None:
            self._task.cancel()
            _, late = await asyncio.wait({self._task, *self._answers}, timeout=CLOSE_TIMEOUT_S)
            for task in late:
                task.cancel()
            if late:
                await asyncio.wait(late)
        for each in self._waiting:
            _fail(each, Unavailable("the adapter is shutting down"))
        self._waiting.clear()

    async def submit(self, statement: object, names: Names, asked: Asked, request_id: str | None = None) -> DdlOutcome:
        """Execute one DDL statement.  Raises what :func:`sql.statements.ddl.plan_ddl` raises, ``Rejected`` 54000 and
        53300, ``Unavailable`` or ``Indeterminate``.

        With a ``request_id`` the statement is executed at most once: the id is recorded in the same proposal.  So is
        the statement itself, with whose it was (``asked``).
        Cancelling the caller does not stop a statement that is under way.
        """
        if len(self._waiting) >= QUEUE_LEN_MAX:
            raise Rejected(
                "too many DDL statements are waiting",
                sqlstate="53300",
                detail=f"{len(self._waiting)} wait in this adapter",
            )
        ready = await self._long(statement, names, asked)
        pending = _Pending(statement, names, asyncio.get_running_loop().create_future(), asked, request_id, ready=ready)
        self._waiting.append(pending)
        self._arrived.set()
        return await asyncio.shield(pending.done)

    async def _long(self, statement: object, names: Names, asked: Asked) -> Ready | None:
        """A long statement planned before it stands in the queue; what is wrong with it is told by the queue."""
        if len(asked.text) <= ON_LOOP_CHARS_MAX and not isinstance(statement, _READS_VIEWS):
            return None
        try:
            ready = await self._ready(statement, names, asked, self._catalog.image)
        except TidemarkError as error:
            if error.sqlstate in ("53300", "54000", "54001"):
                raise
            return None
        return ready if ready.answers is not None else None

    async def _work(self) -> None:
        while True:
            await self._arrived.wait()
            await self._gather()
            group = self._take(GROUP_LEN_MAX)
            try:
                await self._commit(group)
            except asyncio.CancelledError:
                for each in group:
                    _fail(each, _shut_down(each))
                raise
            except Exception as error:
                if not isinstance(error, TidemarkError):
                    log.exception("a group of DDL statements failed")
                for each in group:
                    _fail(each, error)

    async def _gather(self) -> None:
        """Let everybody in whose statement is here already, a group at most."""
        turns, waiting = 0, len(self._waiting)
        while turns < GATHERING_TURNS and waiting < GROUP_LEN_MAX:
            await asyncio.sleep(0)
            turns = turns + 1 if len(self._waiting) == waiting else 0
            waiting = len(self._waiting)

    def _take(self, at_most: int) -> list[_Pending]:
        taken = [self._waiting.popleft() for _ in range(min(len(self._waiting), at_most))]
        if not self._waiting:
            self._arrived.clear()
        return taken

    async def _commit(self, group: list[_Pending]) -> None:
        """Decide about ``group``, to which those are added that came while a proposal of it was overtaken."""
        open_ = list(group)
        for tries in range(TRIES_MAX):
            image = self._catalog.image
            ts = max(self._now_ms(), image.upper)
            accepted, judged, later, updates = await self._plan(open_, image, ts)
            self._judge(judged)
            if accepted:
                for each in accepted:
                    each.sent = True
                try:
                    admitted = await self._bridge.wait(self._catalog.compare_and_append(image.upper, ts + 1, updates))
                except Conflict as conflict:
                    actual = getattr(conflict, "actual_upper", image.upper + 1)
                    await self._bridge.wait(self._catalog.when_upper(actual, CATALOG_WAIT_S))
                    for each in accepted:
                        each.sent = False  # it lost, for certain
                    open_ = [*accepted, *later]
                    if tries < TRIES_MAX // 2:  # whoever joins has as many tries left as were used
                        joined = self._take(max(0, GROUP_LEN_MAX - len(open_)))
                        group += joined
                        open_ += joined
                    continue
                except TidemarkError as error:
                    for each in accepted:
                        _fail(each, error)
                else:
                    # Beside the queue: the next proposal needs this one's image, and not that it is in force.
                    self._beside(self._answer(accepted, admitted))
            if not later:
                return
            open_ = later
        raise Conflict(
            "the catalog changes faster than this statement can be planned",
            detail=f"{TRIES_MAX} proposals were overtaken",
            hint="try again",
        )

    async def _plan(self, group: list[_Pending], image: Image, ts: int) -> tuple[list, list, list, list[Update]]:
        """``(in the proposal, judged on the image, left for the next proposal, updates)``."""
        shadow, updates, size = image, [], 0
        accepted, judged = [], []
        for position, each in enumerate(group):
            done_before = _recorded(shadow, each)
            if done_before is not None:
                each.judged = DdlOutcome("", (), CatalogTs(done_before.catalog_ts), done_before)
                each.judged_upper = image.upper
                judged.append(each)
                continue
            try:
                each.plan = (await self._ready(each.statement, each.names, each.asked, shadow, each.ready)).plan
            except TidemarkError as error:
                each.judged, each.judged_upper = error, image.upper
                judged.append(each)
                continue
            if not each.plan.updates:
                each.judged = DdlOutcome(each.plan.tag, each.plan.notices, CatalogTs(image.upper - 1))
                each.judged_upper = image.upper
                judged.append(each)
                continue
            new = [*each.plan.updates, *_request_updates(shadow, each, ts)]
            new += _audit_updates(shadow, each, ts, len(accepted))
            weight = sum(len(u.value or b"") + len(u.key) + 32 for u in new)
            if accepted and size + weight > GROUP_BYTES_MAX:
                return accepted, judged, group[position:], last_puts(updates)
            size += weight
            updates.extend(new)
            shadow = after(shadow, new)
            accepted.append(each)
        return accepted, judged, [], last_puts(updates)

    async def _ready(
        self, statement: object, names: Names, asked: Asked, image: Image, before: Ready | None = None
    ) -> Ready:
        """The plan of one statement on ``image``, made beside the event loop where that takes long.

        ``before`` is good where ``image`` would have answered alike: so a long statement is planned before it stands in
        the queue, where it can be given up, and keeps nobody behind it waiting.
        """
        chars = len(asked.text)
        if chars <= ON_LOOP_CHARS_MAX:
            if not isinstance(statement, _READS_VIEWS):
                return Ready(plan_ddl(statement, image, names))
            try:
                return Ready(plan_ddl(statement, Watched(image, ON_LOOP_CHARS_MAX), names))
            except TooLongHere:
                chars = LONG_CHARS
        if before is not None and before.answers is not None and same_answers(before.answers, image):
            return before
        return await self._planner.run(chars, _plan_watched, statement, image, names)

    def _judge(self, judged: list[_Pending]) -> None:
        """Errors and no-ops come from an image that may be old: a barrier and a fresh plan decide, beside the queue."""
        for each in judged:
            self._beside(self._confirm(each))

    def _beside(self, work: Coroutine[None, None, None]) -> None:
        """Do ``work``, which answers somebody, while the queue goes on.  As many at once as statements wait."""
        task = asyncio.get_running_loop().create_task(work)
        self._answers.add(task)
        task.add_done_callback(self._answers.discard)

    async def _confirm(self, each: _Pending) -> None:
        try:
            if isinstance(each.judged, DdlOutcome) and each.judged.already is not None:
                image = self._catalog.image
                recorded = _recorded(image, each)
                if recorded is None:
                    # Another copy is in the same group: its proposal is only an opinion yet, and may be planned again
                    # at another timestamp or come to nothing.  Behind it in the queue the outcome is known.
                    self._waiting.append(each)
                    self._arrived.set()
                    return
                await self._oracle.apply_catalog_async(CatalogTs(image.upper))
                _give(each, DdlOutcome("", (), CatalogTs(recorded.catalog_ts), recorded))
                return
            state = await self._oracle.barrier_async()
            image = await image_in_force(self._catalog, self._bridge, state.catalog_upper)
            plan = (await self._ready(each.statement, each.names, each.asked, image, each.ready)).plan
            if plan.updates:  # the world has changed in our favour
                self._waiting.append(each)
                self._arrived.set()
                return
            _give(each, DdlOutcome(plan.tag, plan.notices, CatalogTs(image.upper - 1)))
        except asyncio.CancelledError:
            _fail(each, Unavailable("the adapter is shutting down"))
            raise
        except Exception as error:
            if not isinstance(error, TidemarkError):
                log.exception("a DDL statement failed")
            _fail(each, error)

    async def _answer(self, accepted: list[_Pending], admitted) -> None:
        try:
            await self._oracle.apply_catalog_async(CatalogTs(admitted.upper))
        except asyncio.CancelledError:
            for each in accepted:
                _fail(each, _shut_down(each))
            raise
        except TidemarkError as error:
            # It is in the catalog for good, only nobody said so: whatever family the error is of, this is "don't know".
            unknown = Indeterminate(
                "the statement was appended, but nobody confirmed that it is in force",
                detail=error.message,
                hint="it will take effect with the next statement that reaches the oracle: look before trying again",
            )
            for each in accepted:
                _fail(each, unknown)
            return
        for each in accepted:
            _give(each, DdlOutcome(each.plan.tag, each.plan.notices, CatalogTs(admitted.catalog_ts)))


def _plan_watched(statement: object, image: Image, names: Names) -> Ready:
    watched = Watched(image)
    return Ready(plan_ddl(statement, watched, names), watched.answers)


def after(image: Image, updates: list[Update]) -> Image:
    """``image`` with ``updates``, as the fold would make it: what the next statement of a proposal is planned on."""
    written_for = image.genesis.format_version
    proposal = Proposal("shadow", "shadow", image.upper, image.upper + 1, tuple(updates), format_version=written_for)
    try:
        made = tried(image, proposal)
    except ValueError as flaw:
        raise InvalidUsage("the statement makes no sense on the catalog", sqlstate="XX000", detail=str(flaw)) from None
    made.upper = image.upper  # type: ignore[misc]  # the whole group is planned at one upper
    return made


async def image_in_force(catalog: CatalogLog, bridge: Bridge, upper: int) -> Image:
    """The catalog at exactly ``upper``, waiting until it is folded here."""
    image = catalog.image
    if image.upper < upper:
        image = await bridge.wait(catalog.when_upper(upper, CATALOG_WAIT_S))
    # A later append may be folded already; kept images make going back instant, and the log is read again otherwise.
    return image if image.upper == upper else await asyncio.to_thread(catalog.snapshot_at, upper - 1)


def _shut_down(pending: _Pending) -> TidemarkError:
    if pending.sent:
        return Indeterminate("the adapter is shutting down and the statement was sent already",
                             hint="look at the catalog before trying again")  # fmt: skip
    return Unavailable("the adapter is shutting down")


def _recorded(image: Image, pending: _Pending) -> Request | None:
    return image.get(model.REQUESTS, pending.request_id) if pending.request_id is not None else None


def _request_updates(image: Image, pending: _Pending, ts: int) -> list[Update]:
    if pending.request_id is None:
        return []
    found = [records.put(model.REQUESTS, pending.request_id, Request(ts, "ok", pending.plan.tag))]
    if image.count(model.REQUESTS) >= REQUESTS_MAX:
        oldest = sorted(image.all(model.REQUESTS), key=lambda pair: pair[1].catalog_ts)[:REQUESTS_CUT]
        found.extend(records.remove(model.REQUESTS, key) for key, _ in oldest)
    return found


def _audit_updates(image: Image, pending: _Pending, ts: int, ordinal: int) -> list[Update]:
    """The statement beside what it changes, in one proposal: neither is ever in the catalog without the other."""
    if image.genesis.format_version < 2:
        return []
    asked, plan = pending.asked, pending.plan
    text = asked.text if len(asked.text) <= AUDIT_CHARS_MAX else asked.text[: AUDIT_CHARS_MAX - 1] + "…"
    said = Statement(text, plan.tag, pending.names.database, plan.touched, asked.role, pending.request_id)
    found = [records.put(model.AUDIT, statement_key(ts, ordinal), said)]
    if image.count(model.AUDIT) >= AUDIT_MAX:
        found.extend(records.remove(model.AUDIT, key) for key in sorted(image.cells[model.AUDIT])[:AUDIT_CUT])
    return found


def _give(pending: _Pending, outcome: DdlOutcome) -> None:
    if not pending.done.done():
        pending.done.set_result(outcome)


def _fail(pending: _Pending, error: Exception) -> None:
    if not pending.done.done():
        pending.done.set_exception(error)
        pending.done.exception()  # the caller may have gone: nobody else needs to hear of it
