"""What a sink writes: from changes of a collection to messages, one transaction after another.  Pure.

Promises: whoever reads what was committed finds first what the collection held at one timestamp, then the changes of
each later one, every one once and none left out, those of one key in the order of their timestamps; whenever the writer
dies, whatever became of its last transaction, and however many writers there were.

*How:* a transaction has the messages of whole timestamps and a note of how far they go (:class:`Target`), so the two
are there or are not there together.  A writer begins by a claim, after which none before it can commit, and goes on
from the newest note that is there: from what is in the topic itself, never from what it remembers.

It does *not* promise that a collection can be written so: where a change has no message in an envelope, or two rows
have one key, it is :class:`SinkRefused`, before anything of that transaction is committed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import NamedTuple, Protocol

from catalog_log.objects.sink import DEBEZIUM, NONE, UPSERT
from controllers.storage.sink_forms import Form, JsonForm
from values.limits import TIMES_MAX

KEYS_MAX = 2_000_000
"""Keys that are remembered of a sink that looks itself whether they are unique: some 250 MB of short ones."""

SHOWN_CHARS_MAX = 200

JSON_FORM = JsonForm()
"""Of rows and keys that are said already."""


class SinkRefused(Exception):
    """Why a sink cannot go on, ever: what it would have to write cannot be written so."""


class Change(NamedTuple):
    """``diff`` times more (or fewer, where it is negative) of one row at ``ts``.  No row both goes and comes at one
    ``ts``, and none does so 0 times."""

    ts: int
    key: bytes | None
    """``None``: the sink has no key."""
    row: bytes
    diff: int


class ChangeColumns(NamedTuple):
    """Changes beside each other: what a :class:`Change` has one each of."""

    stamps: Sequence[int]
    keys: Sequence[bytes | None]
    """All of them ``None``, or none."""
    rows: Sequence[bytes]
    diffs: Sequence[int]

    def only_come(self) -> bool:
        """Whether each is there once more."""
        return all(diff == 1 for diff in self.diffs)


Message = tuple[int, bytes | None, bytes | None]
"""A timestamp, a key and a value; without a value there is no row of that key any more."""


class Changes(NamedTuple):
    """All changes above where it was asked from, through ``through``: none where there are no parts."""

    through: int
    parts: Sequence[ChangeColumns]


class Contents(Protocol):
    """A collection."""

    def at(self, ts: int) -> Iterable[ChangeColumns]:
        """What it holds at ``ts``, which is complete: rows with how often each is there, in any order.  Where nothing
        changed since ``ts``, this may be of later.  Raises :class:`SinkRefused` where ``ts`` is not told apart any
        more."""

    def between(self, after: int, through: int) -> Changes:
        """The changes with ``after < ts <= through``, or of the first timestamps of these.  Raises likewise."""


class Target(Protocol):
    """A topic, and another one that has the notes of how far it goes."""

    def claim(self) -> int | None:
        """Have everybody before shut out, then tell the newest note that is committed; ``None`` where none is."""

    def write(self, messages: Iterable[Message], through: int) -> int:
        """Commit all of ``messages`` and the note that they go through ``through``, or nothing; how many they were.

        Whatever it raises, it may have been committed: only the next :meth:`claim` tells.  What ``messages`` raises
        comes out of it, and then it was not."""


class Sinking:
    """One sink's writing.  :meth:`claim` before anything else, and after anything that raised."""

    def __init__(
        self, envelope: str, has_unique_key: bool, contents: Contents, target: Target, form: Form | None = None
    ) -> None:
        """``has_unique_key``: whether it is to be looked at here that no two rows have one key; ``form``: in which
        rows and keys of ``contents`` are said, JSON by itself."""
        self._envelope = envelope
        self._form = form or JSON_FORM
        self._unique = has_unique_key
        self._contents = contents
        self._target = target
        self.through: int | None = None
        """Everything at or below it is in the topic; ``None``: nothing is, nor was."""
        self.noted: int | None = None
        """The newest note in the topic."""
        self._attempted: int | None = None
        """Through what the last transaction was to go, if all of it was handed over."""
        self._keys: Keys | None = None

    def claim(self) -> None:
        """Become the one that writes, and learn how far those before came."""
        found = self._target.claim()
        keys, self._keys = self._keys, None
        if self._unique and found is not None:
            if keys is not None and found == self.noted:
                keys.forget()
            elif keys is not None and found == self._attempted:
                keys.accept()
            else:
                keys = Keys()
                for part in self._contents.at(found):
                    if not keys.come(part.keys):
                        for change in map(Change, *part):
                            keys.put(change, 1)
                keys.accept()
            self._keys = keys
        self.through = self.noted = found

    def behind(self, complete: int) -> bool:
        """Whether there is anything to write, as far as is known, once the collection is complete through it."""
        return self.through is not None and self.through < complete

    def advance(self, complete: int, noting: bool = False) -> int:
        """Write what there is through ``complete``, or the first of it; how many messages that were.

        Where nothing changed nothing is written, unless ``noting``: then how far it is complete.
        """
        if self.through is None:
            self._keys = Keys() if self._unique else None
            return self._write(self._first(self._contents.at(complete)), complete)
        if complete <= self.through:
            return 0
        found = self._contents.between(self.through, complete)
        if not found.parts and not noting:
            self.through = found.through
            return 0
        return self._write(messages(self._envelope, found.parts, self._keys, self._form), found.through)

    def _write(self, written: Iterable[Message], through: int) -> int:
        self._attempted = None
        count = self._target.write(self._to_the_end(written, through), through)
        if self._keys is not None:
            self._keys.accept()
        self.through = self.noted = through
        return count

    def _to_the_end(self, written: Iterable[Message], through: int) -> Iterator[Message]:
        """``written``; once all of it was taken, keys are known as they are if it is committed.  (Another writer may
        have committed as much where this one was cut off before.)"""
        yield from written
        self._attempted = through

    def _first(self, contents: Iterable[ChangeColumns]) -> Iterator[Message]:
        """What it begins with: each row that is there."""
        keys = self._keys or Keys()  # one timestamp has one message of a key, also where nobody looks later
        for part in contents:
            found = _come(self._envelope, "r", part, keys, self._form) if part.only_come() else None
            yield from self._first_one_by_one(part, keys) if found is None else found

    def _first_one_by_one(self, part: ChangeColumns, keys: Keys) -> Iterator[Message]:
        form = self._form
        for change in map(Change, *part):
            if change.diff < 0:
                raise SinkRefused(f"a row is there {change.diff} times at {change.ts}")
            if self._envelope == UPSERT:
                if change.diff > 1 or keys.put(change, 1) != 1:
                    raise not_unique(change, form)
                yield change.ts, change.key, form.value(change.row)
                continue
            for _ in range(times(change.diff)):
                plain = self._envelope == NONE
                value = form.value(change.row) if plain else form.pair(change.ts, "r", None, change.row)
                yield change.ts, change.key, value


class Keys:
    """The keys that there are, and what the transaction under way makes of them."""

    def __init__(self) -> None:
        self._there: set[bytes] = set()
        self._counts: dict[bytes, int] = {}

    def put(self, change: Change, diff: int) -> int:
        """How often the key of ``change`` is there once it is so many times more."""
        key = change.key
        assert key is not None, change
        count = self._counts.get(key, int(key in self._there)) + diff
        self._counts[key] = count
        if max(len(self._there), len(self._counts)) > KEYS_MAX:
            raise SinkRefused(
                f"a sink that looks whether its keys are unique has at most {KEYS_MAX} of them: "
                "say NOT ENFORCED where you know that they are"
            )
        return count

    def come(self, keys: Sequence[bytes | None]) -> bool:
        """Whether ``keys`` are none that there were, each once, and few enough; then they are there once."""
        counts = dict.fromkeys(keys, 1)
        if len(counts) < len(keys) or max(len(self._there), len(self._counts) + len(counts)) > KEYS_MAX:
            return False
        if not (self._there.isdisjoint(counts) and self._counts.keys().isdisjoint(counts)):
            return False
        self._counts |= counts
        return True

    def accept(self) -> None:
        for key, count in self._counts.items():
            self._there.add(key) if count else self._there.discard(key)
        self._counts = {}

    def forget(self) -> None:
        self._counts = {}


def messages(
    envelope: str, parts: Sequence[ChangeColumns], keys: Keys | None, form: Form = JSON_FORM
) -> Iterator[Message]:
    """What the changes of ``parts`` are in ``envelope``, in the order of their timestamps."""
    ordered = sorted(chain.from_iterable(zip(*part, strict=True) for part in parts))
    if ordered and all(part.only_come() for part in parts):
        found = _come(envelope, "c", ChangeColumns(*zip(*ordered, strict=True)), keys, form)
        if found is not None:
            yield from found
            return
    for start, end in _groups(ordered):
        ts, key, *_ = ordered[start]
        went = [change for change in ordered[start:end] if change[3] < 0]
        came = [change for change in ordered[start:end] if change[3] > 0]
        if envelope == UPSERT:
            yield _newest(ts, key, went, came, keys, form)
        elif envelope == DEBEZIUM:
            yield from _pairs(ts, key, _each(went), _each(came), form)
        else:
            if went:
                raise SinkRefused(
                    f"a row went at {ts}, which ENVELOPE NONE has no message for: {_short(form.shown(went[0][2]))}"
                )
            for row in _each(came):
                yield ts, key, form.value(row)


_Plain = tuple[int, "bytes | None", bytes, int]
"""A :class:`Change`, of which there are too many to give each a name."""


def _come(envelope: str, op: str, part: ChangeColumns, keys: Keys | None, form: Form) -> Iterable[Message] | None:
    """The messages of rows that only come, one each, with ``op`` where that is said; ``None`` where two may be of one
    key, which takes a look."""
    of = part.keys
    if envelope == DEBEZIUM:
        pairs = [form.pair(ts, op, None, row) for ts, row in zip(part.stamps, part.rows, strict=True)]
        return zip(part.stamps, of, pairs, strict=True)
    if envelope == UPSERT and not (len(set(of)) == len(of) if keys is None else keys.come(of)):
        return None
    return zip(part.stamps, of, form.values(part.rows), strict=True)


def _groups(ordered: Sequence[_Plain]) -> Iterator[tuple[int, int]]:
    """From where to where changes are of one timestamp and one key."""
    start = 0
    for place in range(1, len(ordered)):
        before, this = ordered[place - 1], ordered[place]
        if this[1] != before[1] or this[0] != before[0]:
            yield start, place
            start = place
    if ordered:
        yield start, len(ordered)


def _newest(
    ts: int, key: bytes | None, went: Sequence[_Plain], came: Sequence[_Plain], keys: Keys | None, form: Form
) -> Message:
    count = sum(change[3] for change in came)
    change = Change(*(came or went)[0])
    if count > 1:
        raise not_unique(change, form)
    if keys is not None:
        left = keys.put(change, count + sum(each[3] for each in went))
        if left not in (0, 1) or left != count:
            raise not_unique(change, form)
    return ts, key, form.value(came[0][2]) if came else None


def _pairs(ts: int, key: bytes | None, went: list[bytes], came: list[bytes], form: Form) -> Iterator[Message]:
    """One row that goes and one that comes are what became of it, where both have one key."""
    both = min(len(went), len(came)) if key is not None else 0
    for before, after in zip(went[:both], came[:both], strict=True):
        yield ts, key, form.pair(ts, "u", before, after)
    for before in went[both:]:
        yield ts, key, form.pair(ts, "d", before, None)
    for after in came[both:]:
        yield ts, key, form.pair(ts, "c", None, after)


def _each(changes: Iterable[_Plain]) -> list[bytes]:
    return [row for _, _, row, diff in changes for _ in range(times(abs(diff)))]


def times(count: int) -> int:
    """As often as a row is told.  Raises :class:`SinkRefused` where that is too often."""
    if count > TIMES_MAX:
        raise SinkRefused(f"one row came or went {count} times at once, and at most {TIMES_MAX} messages say so")
    return count


def not_unique(change: Change, form: Form) -> SinkRefused:
    shown = _short(form.shown(change.key or b"", key=True))
    return SinkRefused(f"two rows have the key {shown} at {change.ts}, and ENVELOPE UPSERT has one of each")


def _short(text: str) -> str:
    return text[:SHOWN_CHARS_MAX]
