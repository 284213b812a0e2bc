"""Who is blamed for which deaths: the fold of a controller's notes, and the notes as they are written."""

from __future__ import annotations

import random
import threading

import pytest

from controllers.at_work import ALONE_MAX, AtWork
from controllers.peeks.peek_codec import decode_error, encode_error
from controllers.quarantine import Note, NoteKind, Notes, decode_note, encode_note, fold_notes, is_refusal
from journal.api import Entry
from journal.memory import MemoryTopic, MemoryTransport


class Killed(BaseException):
    """A process's end: nobody catches it."""


def story(*notes: Note | str) -> Notes:
    """The state after ``notes``; a text is a life that begins."""
    found = Notes()
    for note in notes:
        found = found.apply(found.begin(note) if isinstance(note, str) else note)
    return found


def took(life: str, *names: str) -> Note:
    return Note(NoteKind.TAKEN, life, names)


def did(life: str, *names: str) -> Note:
    return Note(NoteKind.DONE, life, names)


@pytest.mark.parametrize("notes, suspects, quarantined", [
    ((), {}, []),
    (("1", took("1", "a"), "2"), {"a": 1}, []),
    (("1", took("1", "a"), "2", took("2", "a"), "3"), {"a": 2}, ["a"]),
    (("1", took("1", "a"), "2", took("2", "a"), did("2", "a"), took("2", "b"), "3"), {"b": 1}, []),
    # Of several one is to blame, at most; alone it will show.
    (("1", took("1", "a", "b"), "2"), {"a": 0, "b": 0}, []),
    (("1", took("1", "a", "b"), "2", took("2", "a"), did("2", "a"), took("2", "b"), "3", took("3", "b"), "4"),
     {"b": 2}, ["b"]),
    (("1", took("1", "a", "b"), did("1", "a"), "2"), {"b": 1}, []),
    # Two at work at once that began one after the other are several too.
    (("1", took("1", "a"), took("1", "b"), "2"), {"a": 0, "b": 0}, []),
    # Beside what is new in each life it is whoever was there each time.
    (("1", took("1", "a", "b"), "2", took("2", "new", "a"), "3"), {"a": 1, "b": 0, "new": 0}, []),
    (("1", took("1", "a"), "2", took("2", "new", "a"), "3"), {"a": 2, "new": 0}, ["a"]),
    (("1", took("1", "a", "b"), "2", took("2", "c", "a"), "3", took("3", "d", "a"), "4"),
     {"a": 2, "b": 0, "c": 0, "d": 0}, ["a"]),
    (("1", took("1", "a", "b"), "2", took("2", "a", "b", "c"), "3"), {"a": 0, "b": 0, "c": 0}, []),
    (("1", took("1", "a"), "2", took("2", "new", "a"), did("2", "a"), "3"), {"new": 1}, []),
    # A life that says that it ends blames nobody; nor does one that was deposed and did not know.
    (("1", took("1", "a"), Note(NoteKind.ENDED, "1"), "2"), {}, []),
    (("1", "2", took("1", "a"), "3"), {}, []),
    # Nor one that stood still, was taken for dead, and says that it ends once it is fenced: what it was charged with is
    # taken back, and no more than that.
    (("1", took("1", "a"), "2", Note(NoteKind.ENDED, "1")), {}, []),
    (("1", took("1", "a"), "2", Note(NoteKind.ENDED, "1"), took("2", "a"), "3", Note(NoteKind.ENDED, "2")), {}, []),
    (("1", took("1", "a"), "2", took("2", "a"), "3", Note(NoteKind.ENDED, "2")), {"a": 1}, []),
    (("1", took("1", "a", "b"), "2", Note(NoteKind.ENDED, "1")), {}, []),
    (("1", took("1", "a"), "2", took("2", "a"), did("2", "a"), Note(NoteKind.ENDED, "1")), {}, []),
    (("1", took("1", "a"), "2", took("2", "a"), "3", Note(NoteKind.ENDED, "1")), {"a": 2}, ["a"]),
    (("1", took("1", "a"), "2", took("2", "a"), "3", Note(NoteKind.RELEASED, "3", ("a",))), {}, []),
    # Quarantine outlives any number of lives.
    (("1", took("1", "a"), "2", took("2", "a"), "3", Note(NoteKind.ENDED, "3"), "4", "5"), {"a": 2}, ["a"]),
])  # fmt: skip
def test_who_is_blamed(notes, suspects, quarantined):
    found = story(*notes)
    assert dict(found.deaths) == suspects and found.quarantined() == quarantined


def test_what_begins_a_life_says_all_that_was_before_it():
    """So the topic may be cut there: from any such note on, the fold comes to the same."""
    rng = random.Random(7)
    for _ in range(200):
        state, since_begun, life = Notes(), None, 0
        for _ in range(rng.randrange(1, 40)):
            names = tuple(rng.sample("abcd", rng.randrange(1, 3)))
            kind = rng.choice([*NoteKind])
            if kind is NoteKind.BEGUN:
                life += 1
                note = state.begin(str(life))
                since_begun = Notes()
            else:
                note = Note(kind, str(max(1, life - rng.randrange(2))), () if kind is NoteKind.ENDED else names)
            assert decode_note(encode_note(note)) == note
            state = state.apply(note)
            since_begun = None if since_begun is None else fold_notes(since_begun, Entry(0, encode_note(note)))
        assert since_begun in (None, state)
    assert fold_notes(state, Entry(0, b"no note")) == state


def test_two_deaths_at_the_same_work_and_the_third_life_leaves_it():
    topic = MemoryTopic()
    for life in range(2):
        at_work = AtWork(MemoryTransport(topic), f"life {life}").begin()
        assert at_work.refused("bad") is None
        with at_work.on(["fine"]):
            pass
        with pytest.raises(Killed), at_work.on(["bad"]):
            raise Killed
    third = AtWork(MemoryTransport(topic), "life 2").begin()
    told = third.refused("bad")
    assert told.sqlstate == "58000" and third.refused("fine") is None
    again = decode_error(encode_error(told))
    assert is_refusal(again) and (again.message, again.hint) == (told.message, told.hint)
    assert topic.end - topic.start == 1, "the topic begins with the life"
    assert third.release(["bad", "fine"]) == ["bad"] and third.refused("bad") is None
    third.ended()
    assert not AtWork(MemoryTransport(topic), "life 3").begin().notes.deaths


def test_what_came_through_once_costs_no_note():
    topic = MemoryTopic()
    at_work = AtWork(MemoryTransport(topic), "life").begin()
    with at_work.on(["a", "b"]):
        assert at_work.notes.open == {"a", "b"}
    end = topic.end
    for _ in range(100):
        with at_work.on(["b", "a"]):
            assert not at_work.notes.open
    assert topic.end == end
    # A death at what is proven can still be told by who sees it come.
    at_work.blame(["a"])
    after = AtWork(MemoryTransport(topic), "next").begin()
    assert after.suspects(["a", "b"]) == ["a", "b"], "few are taken alone at once"


def test_what_came_after_a_crash_did_not_cause_it_and_holds_up_nobody():
    """It is not taken alone, though another is in quarantine since then, and others begin while it is at work."""
    topic = MemoryTopic()
    for life in ("life 1", "life 2"):
        with pytest.raises(KeyboardInterrupt), AtWork(MemoryTransport(topic), life).begin().on(["bad"]):
            raise KeyboardInterrupt  # nobody notes that it has ended
    for life in ("life 3", "life 4"):
        at_work = AtWork(MemoryTransport(topic), life).begin()
        assert at_work.notes.quarantined() == ["bad"]
        assert at_work.suspects(["old", "new"]) == ["old", "new"], "nobody has said what was there"
        at_work.begun_with({"bad", "old"})
        assert at_work.suspects(["old", "new"]) == ["old"] and at_work.suspects(["new"]) == []
        inside, leave = threading.Event(), threading.Event()

        def large(at_work=at_work, inside=inside, leave=leave) -> None:
            with at_work.on(["new"]):
                inside.set()
                assert leave.wait(10)

        working = threading.Thread(target=large)
        working.start()
        assert inside.wait(10)
        done = threading.Thread(target=lambda at_work=at_work: at_work.on(["newer"]).__enter__())
        done.start()
        done.join(10)
        assert not done.is_alive() and at_work.notes.open == {"new", "newer"}
        leave.set()
        working.join()


def test_what_is_blamed_stays_so_though_the_work_on_it_fails_then():
    """Spark ended under a view: that is told by who watches Spark, before or after the view's own failure."""
    for first in ("told", "failed"):
        topic = MemoryTopic()
        at_work = AtWork(MemoryTransport(topic), "life").begin()
        with pytest.raises(OSError), at_work.on(["bad"]):
            if first == "told":
                at_work.blame(["bad"])
            raise OSError
        if first == "failed":
            at_work.blame(["bad"])
        assert dict(AtWork(MemoryTransport(topic), "next").begin().notes.deaths) == {"bad": 1}, first


def test_after_a_crash_few_are_taken_alone_and_of_many_only_suspects():
    topic = MemoryTopic()
    many = [f"u{n}" for n in range(ALONE_MAX + 1)]
    first = AtWork(MemoryTransport(topic), "1").begin()
    assert first.suspects(many) == [] and first.suspects(many[:3]) == []
    with pytest.raises(Killed), first.on(many[:2]):
        raise Killed
    second = AtWork(MemoryTransport(topic), "2").begin()
    assert second.suspects(many) == many[:2]
    assert second.suspects(many[5:9]) == many[5:9]
    with second.on(many[5:9]):
        pass
    assert second.suspects(many[5:9]) == []
    second.ended()
    third = AtWork(MemoryTransport(topic), "3").begin()
    assert third.suspects(many) == many[:2], "a suspect is one until it came through"
