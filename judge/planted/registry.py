"""The planted bugs by name: what somebody would have thought, and who must notice.

The product has no switch for any of them.  A bug is a patch that ``python -m judge.planted`` applies in a process
before that process becomes the product's; ``docs/planted-bugs.md`` says what was found, how, and how soon.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from judge.planted import patches
from judge.planted.patching import Applied

ADAPTER, SUBSCRIBER, COMPUTE, STORAGE = "adapter", "subscriber", "compute", "storage"
CLIENTS = "clients"
"""Processes of the harness that open a ``CatalogLog`` or an ``Oracle`` of their own: the log API is the product too."""
BROKER = "broker settings"
"""Whoever makes the environment's topics and starts brokers: the process that runs the stack."""

_KIND_OF_MODULE = {
    "adapter": ADAPTER, "subscribers": SUBSCRIBER, "controllers.compute": COMPUTE, "controllers.storage": STORAGE,
}  # fmt: skip


def kind_of(module: str) -> str:
    """Which kind of process ``python -m module`` is."""
    return _KIND_OF_MODULE.get(module, CLIENTS)


@dataclass(frozen=True)
class Planted:
    """A bug.  ``apply`` it in a process of one of its kinds, before that process opens anything."""

    name: str
    text: str
    """The thought that leads to it, and what is wrong with the thought."""
    processes: frozenset[str]
    invariant: str
    """Of the design, §2."""
    workload: str
    """Whose histories show it soonest."""
    checker: str
    """Who says so."""
    faults: tuple[str, ...]
    """Kinds of fault without which it stays hidden (or rare); none where contention is enough."""
    patch: Callable[[Applied], None]
    brokers: int = 1
    """How many it takes."""
    broker_settings: Mapping[str, str] = field(default_factory=dict)
    """What every broker's properties need besides."""
    simulated: bool = True
    """Whether the simulation has it too; its clients write tables without keys, and draw from no sequence."""

    def apply(self) -> Applied:
        """Plant it in this process; undo with what is returned, or use that as a context manager."""
        applied = Applied()
        try:
            self.patch(applied)
        except BaseException:
            applied.undo()
            raise
        return applied


def _bug(name: str, text: str, processes: set[str], invariant: str, workload: str, checker: str,
         *faults: str, **more) -> Planted:  # fmt: skip
    return Planted(name, " ".join(text.split()), frozenset(processes), invariant, workload, checker, faults,
                   getattr(patches, name), **more)  # fmt: skip


_ALL = (
    _bug(
        "acks_one",
        """The leader's word is good enough and saves a replication round trip; and idempotence only matters when
        records are repeated.  But a leader that is cut off from its followers goes on saying so until it learns that
        it was deposed, and what it took is thrown away when it comes back.  The journals survive even this, since a
        writer waits until it has read its record back and nothing is read that a majority does not hold; rows do not:
        their delivery report is all that a commit goes by.""",
        {ADAPTER, SUBSCRIBER, COMPUTE, STORAGE, CLIENTS}, "I10", "once", "once", "cut-off-broker", brokers=3,
    ),
    _bug(
        "list_offsets_read",
        """To know everything, ask the broker for the topic's end and fold up to it: no record, no write, half the cost
        of a barrier.  But the end is what the asked broker believes; a deposed leader believes an old one for as long
        as it is cut off, and the read misses what was acknowledged meanwhile.""",
        {ADAPTER, CLIENTS}, "I4", "register", "register", "cut-off-broker", brokers=3,
    ),
    _bug(
        "blind_resend",
        """A proposal lost the race, and its updates are still right: append them again at the new upper and save the
        planning.  But they were worked out on an image that is gone: two tables get the same id, and the second takes
        the place of the first, which was acknowledged.""",
        {ADAPTER}, "I2", "set", "catalog_set",
    ),
    _bug(
        "wall_clock_oracle",
        """Timestamps are milliseconds since the epoch and every machine has a clock, kept by NTP: read it instead of
        asking a log.  But two clocks differ and one of them jumps: a write gets a smaller timestamp than a read that
        ended before it, and a read an hour ago.""",
        {ADAPTER, CLIENTS}, "I3", "oracle", "oracle_laws", "skew", "strobe",
    ),
    _bug(
        "skipped_apply_write",
        """The append was admitted and folded here, so the statement has happened: answer now and save the second round
        trip.  But another adapter may not have read that far, and its barrier, which asks the oracle only, does not
        make it: the table that was just created is missing there.""",
        {ADAPTER, CLIENTS}, "I3", "anomalies", "anomalies", "pause",
    ),
    _bug(
        "early_catalog",
        """The peek's data is complete at its timestamp, so run it; the catalog's frontier moves within milliseconds
        anyway.  But until it has passed, the controller does not know the newest objects and takes them for dropped:
        a SELECT from a table whose CREATE was acknowledged says that it is not there.""",
        {COMPUTE}, "I7", "anomalies", "anomalies", "pause",
    ),
    _bug(
        "lost_commands",
        """A subscriber that starts goes on from the newest upper: what came before must have been sent by the one
        before it.  But that one died in between, so the controller never hears of what was created while nobody was
        there, though its frontier passes it.""",
        {SUBSCRIBER}, "I6", "anomalies", "anomalies", "kill",
    ),
    _bug(
        "double_view_commit",
        """After a crash the last tick may not have been committed, so do it again to be sure.  But it had landed: its
        rows are in the view twice (a grouped view takes back a row that it does not hold).""",
        {COMPUTE}, "I10", "views", "views", "kill",
    ),
    _bug(
        "retention",
        """Topics are kept for a week like all our others; whoever is older than that starts from a checkpoint.  But the
        catalog's history *is* the catalog: what was acknowledged is not there any more.""",
        {ADAPTER, SUBSCRIBER, COMPUTE, STORAGE, CLIENTS, BROKER}, "I5, I10", "register", "register",
        broker_settings=patches.BROKER_SETTINGS,
    ),
    _bug(
        "unknown_version_skipped",
        """A newer release writes a newer version of a record; an older one skips what it does not know, so both can
        run side by side.  But a fold that skips what another admits is another catalog: the two go apart for ever,
        which is why nobody may admit a version that the catalog's own format does not name.""",
        {ADAPTER}, "I1", "set", "catalog_set",
    ),
    _bug(
        "history_for_ever",
        """A view is brought back as of where it was, since a view that is kept is never far behind.  But one whose
        inputs do not change stays where it was while ``since`` moves on, and a day later nothing can be read as of
        then: at the next start, and at every one after it, the view cannot be brought back.""",
        {COMPUTE}, "I5, I9", "idle", "idle", "day",
    ),
    _bug(
        "restarted_into",
        """A process that ends is started again, and what it was at is done again: most deaths are nobody's fault.  But
        a view that ends its controller each time it is evaluated takes all others with it for ever.""",
        {COMPUTE, STORAGE}, "§6", "poison", "poison",
    ),
    _bug(
        "topic_by_name",
        """A source names its topic, so that topic is what it reads, from where it stopped.  But a topic that was
        deleted and made anew has other records at the same offsets: what was skipped is missing, what a view holds is
        of the old one, and what a restarted controller reads again is of the new one.""",
        {COMPUTE, STORAGE}, "I5, I10", "sources", "sources", "kill",
    ),
    _bug(
        "moved_early",
        """Rows that the log carries are written to their topic behind what is bound there, so it is known where they
        will be, and one round trip is saved.  But behind what is bound lies what dead writers left, other adapters
        write there too, and a write may fail: then rows are taken out of the log that are nowhere else.""",
        {STORAGE}, "I5, I10", "once", "once", "kill",
    ),
    _bug(
        "reads_unchecked",
        """Whoever read the rows that it takes back read them milliseconds ago, and its session saw nothing newer: send
        what goes and what comes, and not which tables that was read from.  But another session did the same with the
        same rows: two take back one row, and what one of them added to it is gone.""",
        {ADAPTER}, "I9", "counters", "counters",
    ),
    _bug(
        "range_skipped",
        """A commit says one range of keys of what its block has read, and who reads several mostly reads one after the
        other of the same rows: the first will do.  But the others were read as well, and what was written there
        meanwhile is not held against it.""",
        {ADAPTER}, "I9", "ranges", "list_append",
    ),
    _bug(
        "phantoms_unnamed",
        """What others have read can only be taken from them: a commit names the keys of rows that go, and of those that
        come it names none, since nobody can have read them.  But whoever read a range has read that they are not there,
        and counts, sums and places in a list are made of that.""",
        {ADAPTER}, "I9", "ranges", "list_append",
    ),
    _bug(
        "window_as_free",
        """Writes are remembered for a while; of what is older nothing is known against a transaction, so let it pass:
        most of what is that old was never written again.  But it may have been, and that it is not known is
        no reason to say that it was not: who read before the window is refused, or overwrites what it never saw.""",
        {ADAPTER, SUBSCRIBER, COMPUTE, STORAGE, CLIENTS}, "I9", "counters", "counters", "pause",
    ),
    _bug(
        "unanswered_again",
        """A commit takes milliseconds; one that has no answer after a second was lost, so read again and commit what
        comes of that, as after a conflict.  But it was not lost, it was late: then the statement has happened twice, or
        somebody is told that what happened did not.""",
        {ADAPTER}, "I2", "counters", "counters", "election",
    ),
    _bug(
        "keys_looked_up",
        """The index was asked a moment ago and nobody has the key, so commit the row: an index that is kept is never
        far behind.  But another session was told the same in that moment: both commit, and the key has two rows.""",
        {ADAPTER}, "I8a", "keys", "keys", simulated=False,
    ),
    _bug(
        "upsert_unhinged",
        """A row that ON CONFLICT updates has its key before and after, so there is no key that must stay free, and the
        commit hangs on nothing.  But the row may be another one by now: two sessions take away the same row, and what
        one of them made of it is gone.""",
        {ADAPTER}, "I8a", "upserts", "counters", simulated=False,
    ),
    _bug(
        "reserve_given_back",
        """An adapter that is stopped knows the last value that it gave, so put the sequence back there and leave no
        gap.  But another adapter took its reserve behind ours meanwhile: its values are given a second time.""",
        {ADAPTER}, "I8a", "draws", "draws", "restart", simulated=False,
    ),
    _bug(
        "segment_before_rows",
        """The log says who has what, so say first that a file holds these rows, and then write it: should the writing
        fail, it is done again.  But who wrote it may be gone by then, the topic is cut below what is in files, and the
        file never was: rows that had been acknowledged and read are nowhere.""",
        {STORAGE}, "I5, I10", "settled", "settled", "kill", simulated=False,
    ),
    _bug(
        "compacted_over",
        """All that there is of a collection is written anew, so what there is when that is done has its place taken.
        But what was sealed meanwhile, by whoever is beside this one, was not read: what it takes back comes again (as a
        bitmap would be lost that is of the predecessor of a compacted file), and what it adds is gone.""",
        {STORAGE}, "I5", "settled", "settled", "pause", simulated=False,
    ),
    _bug(
        "merged_twice",
        """What a merge made is right whatever became of the files that it was made of, and to let go of what is gone
        already does nothing.  But of two merges of one file each has all of its rows: they are there twice, and what
        one of them took back comes again by the other.""",
        {STORAGE, COMPUTE}, "I5", "settled", "settled", "pause", simulated=False,
    ),
    _bug(
        "held_file_collected",
        """A file in the store never changes, so who reads it needs no copy and no other name of it: the way to it will
        do.  But files go once the log has let them go, however long they are read: whoever holds one has nothing left
        to read, and is told of nothing that it would look for elsewhere.""",
        {COMPUTE}, "I5", "settled", "settled", simulated=False,
    ),
    _bug(
        "task_counted_twice",
        """What tasks wrote for a view is on its topic from where that ended before to where it ends now, so one look
        at the end is enough, and no task need say where its own rows are.  But a task that was tried again has written
        twice, and so has one that somebody took for dead: their rows are bound twice.""",
        {COMPUTE}, "I10", "views", "views", "kill", simulated=False,
    ),
    _bug(
        "sink_batch_twice",
        """Of the last transaction of a writer that died nobody can say whether it was committed, so write it again:
        rather twice than never, and whoever keeps the newest of each key sees no difference.  But its note is there
        where its messages are, and who counts them, adds them up or takes one row away for another does see it.""",
        {STORAGE}, "I10", "sinks", "sinks", "kill", simulated=False,
    ),
    _bug(
        "upsert_forgets_key",
        """What keys are is remembered in memory, so a controller that starts brings back as many as there is room for;
        a key that is not among them has nothing.  But it has a row: what it is told next comes beside that, and the
        message that takes it away takes nothing.""",
        {STORAGE}, "I5, I10", "envelopes", "envelopes", "kill", simulated=False,
    ),
)  # fmt: skip

BUGS: dict[str, Planted] = {bug.name: bug for bug in _ALL}


def chosen(names: str) -> list[Planted]:
    """The bugs in ``a,b``.  Raises ``ValueError`` for a name that there is not."""
    unknown = [name for name in names.split(",") if name not in BUGS]
    if unknown:
        raise ValueError(f"no planted bug is called {', '.join(unknown)}; there are {', '.join(BUGS)}")
    return [BUGS[name] for name in names.split(",")]
