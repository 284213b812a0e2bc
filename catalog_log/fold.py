"""Which proposals are admitted: the log decides, not the writer (I1, I2).  Pure.

A proposal is admitted iff ``expected_upper`` is the upper at its place in the log and ``new_upper`` is above it.  Same
bytes, same verdict, in every process; so at most one proposal is ever admitted per ``expected_upper``, and two copies
of one proposal can never both be.

A record that makes no sense is *malformed*: refused alike by every reader, counted, and never a reason to stop.  The
only reasons to stop are those after which going on could be wrong: a genesis of a format that this code does not know.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from typing import NamedTuple

import immutables

from catalog_log import model
from catalog_log.image import Cell, Image, Key, Stats
from catalog_log.model import Update
from catalog_log.records import KNOWN_FORMATS, SCHEMA_VERSION_MAX, Proposal, decode_proposal, version_max
from journal.api import Entry
from journal.errors import FatalLog
from schemas import codec

STEP_MS_MAX = 1000 * 365 * 86_400_000
"""A thousand years: no honest step is longer (the genesis comes from 0), and a single hostile ``new_upper`` near the
end of 64 bits would close the catalog for ever."""


_NOTHING: immutables.Map[str, Cell] = immutables.Map()


class VerdictKind(StrEnum):
    ACCEPTED = "accepted"
    STALE = "stale"
    """Another proposal had moved the upper: plan again."""
    MALFORMED = "malformed"
    """It makes no sense, whatever the upper."""


class Verdict(NamedTuple):
    """What the fold says of one record."""

    kind: VerdictKind
    offset: int
    proposal_id: str
    """Empty if the record is no proposal at all."""
    writer: str
    expected_upper: int
    new_upper: int
    actual_upper: int
    """The upper at the record's place in the log, before it."""
    updates: int
    reason: str | None = None

    @property
    def token(self) -> str:
        return self.proposal_id


def admit(image: Image, entry: Entry) -> tuple[Image, Verdict]:
    """The image after ``entry`` and what was said of it.  Raises ``FatalLog`` for a genesis of an unknown format."""
    proposal, verdict = _judge(image.upper, image.genesis, image.cells, entry)
    stats = _count(image.stats, verdict)
    if verdict.kind is not VerdictKind.ACCEPTED:
        return Image(image.upper, image.since, image.genesis, stats, image.cells, image.previous_upper, image.changed,
                     image.lazy_index), verdict  # fmt: skip
    return _made(image, proposal, stats), verdict


def tried(image: Image, proposal: Proposal) -> Image:
    """As :func:`admit` of a record with ``proposal`` at ``image.upper``, for who plans on what was not sent yet.

    Spares writing the record and reading it.  Raises ``ValueError`` where it would be malformed.
    """
    flaw = refusal(image, proposal)
    if flaw is not None:
        raise ValueError(flaw)
    return _made(image, proposal, image.stats)


def last_puts(updates: Sequence[Update]) -> list[Update]:
    """``updates`` without the puts that a later one replaces, which nobody could tell from an image.

    Each statement of a group says how far ids were given out: whoever folds them would read and keep all but the last
    for nothing.
    """
    place: dict[Key, int] = {}
    found: list[Update | None] = []
    for update in updates:
        key = (update.collection, update.key)
        if update.value is None:
            place.pop(key, None)  # what is removed must have been put before
        else:
            if key in place:
                found[place[key]] = None
            place[key] = len(found)
        found.append(update)
    return [update for update in found if update is not None]


def _made(image: Image, proposal: Proposal, stats: Stats) -> Image:
    """The image after ``proposal``, which was admitted."""
    cells = dict(image.cells)
    drafts: dict[str, immutables.MapMutation[str, Cell]] = {}
    changes = []
    for update in proposal.updates:
        collection, key = update.collection, update.key
        draft = drafts.get(collection)
        if draft is None:
            draft = drafts[collection] = cells.get(collection, _NOTHING).mutate()
        before = draft.get(key)
        if update.value is None:
            after = None
            del draft[key]
        else:
            after = draft[key] = Cell(collection, update.value)
        changes.append((collection, key, before, after))
    for collection, draft in drafts.items():
        cells[collection] = draft.finish()
    return Image(
        upper=proposal.new_upper,
        since=proposal.new_upper - 1 if proposal.genesis else image.since,
        genesis=proposal.genesis or image.genesis,
        stats=stats,
        cells=cells,
        previous_upper=image.upper,
        changed=_keys(proposal),
        index=None if image.lazy_index is None else image.lazy_index.changed(changes),
    )


def admit_all(image: Image, entries: Sequence[Entry]) -> tuple[Image, list[Verdict]]:
    """As :func:`admit` one by one, at several times the speed: for catching up.

    Equal to it by a property test.  The images in between are not made, so ``changed`` and the index are left out.
    """
    upper, since, genesis, stats = image.upper, image.since, image.genesis, image.stats
    drafts = {collection: cells.mutate() for collection, cells in image.cells.items()}
    verdicts = []
    for entry in entries:
        proposal, verdict = _judge(upper, genesis, drafts, entry)
        verdicts.append(verdict)
        stats = _count(stats, verdict)
        if verdict.kind is not VerdictKind.ACCEPTED:
            continue
        for update in proposal.updates:
            draft = drafts.get(update.collection)
            if draft is None:
                draft = drafts[update.collection] = immutables.Map().mutate()
            if update.value is None:
                del draft[update.key]
            else:
                draft[update.key] = Cell(update.collection, update.value)
        upper = proposal.new_upper
        if proposal.genesis:
            genesis, since = proposal.genesis, proposal.new_upper - 1
    cells = {collection: draft.finish() for collection, draft in drafts.items()}
    return Image(upper, since, genesis, stats, cells), verdicts


def refusal(image: Image, proposal: Proposal) -> str | None:
    """Why ``proposal`` would be malformed on ``image``; ``None`` if it would be admitted at ``image.upper``."""
    return _flaw(image.upper, image.genesis, image.cells, proposal)


def _judge(
    upper: int, genesis: model.Genesis | None, cells: Mapping[str, Mapping[str, Cell]], entry: Entry
) -> tuple[Proposal | None, Verdict]:
    try:
        if genesis is not None and codec.frame_version(entry.value) > SCHEMA_VERSION_MAX[genesis.format_version]:
            raise codec.Undecodable(f"schema version {entry.value[1]} in a log of format {genesis.format_version}")
        proposal = decode_proposal(entry.value)
    except codec.Undecodable as error:
        return None, Verdict(VerdictKind.MALFORMED, entry.offset, "", "", 0, 0, upper, 0, str(error))
    kind, reason = VerdictKind.ACCEPTED, None
    if proposal.expected_upper != upper:
        kind = VerdictKind.STALE
    else:
        reason = _flaw(upper, genesis, cells, proposal)
        if reason is not None:
            kind = VerdictKind.MALFORMED
        elif proposal.genesis is not None and proposal.genesis.format_version not in KNOWN_FORMATS:
            raise FatalLog(
                f"catalog format {proposal.genesis.format_version} is unknown, expected one of {sorted(KNOWN_FORMATS)}",
                hint="this catalog was made by newer code: run that",
            )
    return proposal, Verdict(kind, entry.offset, proposal.proposal_id, proposal.writer, proposal.expected_upper,
                             proposal.new_upper, upper, len(proposal.updates), reason)  # fmt: skip


def _flaw(
    upper: int, genesis: model.Genesis | None, cells: Mapping[str, Mapping[str, Cell]], proposal: Proposal
) -> str | None:
    if not proposal.proposal_id:
        return "it has no id"
    if not upper < proposal.new_upper <= upper + STEP_MS_MAX:
        return f"new_upper {proposal.new_upper} is not in ({upper}, {upper + STEP_MS_MAX}]"
    if genesis is None and proposal.genesis is None:
        return "the log has no genesis yet"
    if genesis is not None and proposal.genesis is not None:
        return "the log has a genesis already"
    format_version = (genesis or proposal.genesis).format_version
    if proposal.format_version != format_version:
        return f"format {proposal.format_version}, but the log has format {format_version}"
    present: dict[Key, bool] = {}
    for update in proposal.updates:
        # A genesis of a format that we do not know is fatal a moment later; its updates are not ours to judge.
        if update.collection not in model.collections_of(format_version):
            return f"unknown collection {update.collection!r}"
        key = (update.collection, update.key)
        if update.diff == 1 and update.value is not None:
            flaw = _frame_flaw(update.value, version_max(format_version, update.collection))
            if flaw:
                return f"{update.collection} {update.key!r}: {flaw}"
        elif update.diff == -1 and update.value is None:
            if not present.get(key, update.key in cells.get(update.collection, ())):
                return f"{update.collection} {update.key!r} is removed but not there"
        else:
            given = "no value" if update.value is None else "a value"
            return f"{update.collection} {update.key!r}: diff {update.diff} with {given}"
        present[key] = update.diff == 1
    return None


def _frame_flaw(value: bytes, newest: int) -> str | None:
    try:
        version = codec.frame_version(value)
    except codec.Undecodable as error:
        return str(error)
    if not 1 <= version <= newest:
        return f"schema version {version}, at most {newest} in this log"
    return None


def _keys(proposal: Proposal) -> tuple[Key, ...]:
    return tuple(dict.fromkeys((u.collection, u.key) for u in proposal.updates))


def _count(stats: Stats, verdict: Verdict) -> Stats:
    accepted, stale, malformed = stats
    if verdict.kind is VerdictKind.ACCEPTED:
        return Stats(accepted + 1, stale, malformed)
    if verdict.kind is VerdictKind.STALE:
        return Stats(accepted, stale + 1, malformed)
    return Stats(accepted, stale, malformed + 1)


def fold(image: Image, entries: Iterable[Entry]) -> Image:
    """The image after ``entries``, one by one."""
    for entry in entries:
        image, _ = admit(image, entry)
    return image
