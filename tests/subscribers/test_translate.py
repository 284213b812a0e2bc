"""From catalog history to commands: stories, cuts anywhere, losing proposals, new subscribers (I6)."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from catalog_log import model, objects
from catalog_log.delta import between, from_empty
from catalog_log.fold import admit_all, fold
from catalog_log.image import EMPTY
from catalog_log.model import Cluster, Genesis, Setting
from catalog_log.objects import Item
from catalog_log.records import FORMAT_VERSION, Proposal, encode_proposal, put, remove
from controllers import commands_log
from controllers.commands import STORAGE, Command, Kind, compute, in_dependency_order
from controllers.commands_log import CommandFold, decode, encode, records_of, restate
from controllers.protocol import ControllerState
from journal.api import Entry
from journal.errors import FatalLog
from schemas import codec
from schemas.codec import Undecodable
from subscribers.stepper import Stepper
from subscribers.translate import translate
from tests.objects import made

DEFAULT = compute("default")


def item(object_id: str, kind: str = objects.TABLE, *, on: tuple[str, ...] = (), cluster: str | None = None,
         name: str | None = None) -> Item:  # fmt: skip
    return made(kind, object_id, name, on=on, cluster=cluster or "default", create_sql=f"-- {object_id}")


TABLE, OTHER = item("u1"), item("u2")
VIEW = item("u3", objects.VIEW, on=("u1",))
MATERIALIZED = item("u10", objects.MATERIALIZED_VIEW, on=("u2", "u1"), cluster="default")
ELSEWHERE = item("u4", objects.MATERIALIZED_VIEW, on=("u10",), cluster="c2")
INDEX = item("u5", objects.INDEX, on=("u10",), cluster="default")
INDEX_2 = item("u6", objects.INDEX, on=("u4",), cluster="c2")
SOURCE = item("u7", objects.SOURCE)
ERRORS = item("u8", objects.ERRORS, on=("u7",))


class Log:
    """A catalog topic in the making."""

    def __init__(self) -> None:
        self.entries: list[Entry] = []
        self.upper = 0
        self._propose(0, 10, (), Genesis(FORMAT_VERSION, "test", "topic"))
        self.upper = 10

    def _propose(self, expected: int, new: int, updates, genesis=None) -> None:
        number = len(self.entries)
        proposal = Proposal(f"p{number}", "w", expected, new, tuple(updates), genesis)
        self.entries.append(Entry(number, encode_proposal(proposal)))

    def change(self, *changes: Item | str) -> Log:
        """One admitted proposal: items are put, ids removed."""
        updates = [
            remove(model.ITEMS, c) if isinstance(c, str) else put(model.ITEMS, c.id, c) for c in changes
        ]  # fmt: skip
        self._propose(self.upper, self.upper + 10, updates)
        self.upper += 10
        return self

    def set(self, key: str, value: str | None) -> Log:
        """One admitted proposal about a setting."""
        update = remove(model.SETTINGS, key) if value is None else put(model.SETTINGS, key, Setting(value))
        self._propose(self.upper, self.upper + 10, [update])
        self.upper += 10
        return self

    def lose(self, *changes: Item) -> Log:
        """A proposal that somebody else's preceded: it is on the topic and was never admitted."""
        self._propose(self.upper - 10, self.upper + 5, [put(model.ITEMS, c.id, c) for c in changes])
        return self

    def garbage(self) -> Log:
        self.entries.append(Entry(len(self.entries), b"\x00garbage"))
        return self


def commands(log: Log, controller: str, frontier: int = 0, begin_offset: int = 0) -> list[Command]:
    stepper = Stepper(controller, frontier, begin_offset)
    return [c for entry in log.entries for c in stepper.feed(entry)]


def told(sent: list[Command]) -> list[str]:
    """A story a person can read."""
    return [
        f"{c.catalog_ts}.{c.ordinal} frontier {c.frontier}" if c.kind == Kind.ADVANCE_CATALOG_FRONTIER
        else f"{c.catalog_ts}.{c.ordinal} {c.kind} {c.object_id}"
        for c in sent
    ]  # fmt: skip


def whole_story() -> Log:
    return (
        Log()
        .change(TABLE, OTHER)
        .lose(item("u99"))
        .change(VIEW, MATERIALIZED, SOURCE, ERRORS)
        .garbage()
        .change(INDEX, ELSEWHERE, INDEX_2)
        .change()
        .change("u5", "u10", "u6", "u4", item("u1", name="renamed"))
    )


def test_what_storage_is_told() -> None:
    assert told(commands(whole_story(), STORAGE)) == [
        "9.0 frontier 10",
        "19.0 create u1",
        "19.1 create u2",
        "19.2 frontier 20",
        "29.0 create u7",
        "29.1 create u8",
        "29.2 create u10",
        "29.3 frontier 30",
        "39.0 create u4",
        "39.1 frontier 40",
        "49.0 frontier 50",
        "59.0 drop u4",
        "59.1 drop u10",
        "59.2 create u1",
        "59.3 frontier 60",
    ]


def test_a_cluster_is_told_its_own_settings_and_nobody_else_is() -> None:
    log = Log().set("gear/default", "spark").set("next_item_id", "7").set("gear/c2", "process")
    log.set("gear/default", None)
    sent = commands(log, DEFAULT)
    assert told(sent) == [
        "9.0 frontier 10", "19.0 set gear/default", "19.1 frontier 20", "29.0 frontier 30", "39.0 frontier 40",
        "49.0 set gear/default", "49.1 frontier 50",
    ]  # fmt: skip
    assert [c.setting for c in sent if c.kind == Kind.SET] == [Setting("spark"), None]
    assert [decode(encode(c)) for c in sent] == [[c] for c in sent]
    assert [c.object_id for c in commands(log, compute("c2")) if c.kind == Kind.SET] == ["gear/c2"]
    assert not [c for c in commands(log, STORAGE) if c.kind == Kind.SET]
    fold = CommandFold()
    known = []
    for n, command in enumerate(sent):
        fold.take(Entry(n, encode(command)))
        known.append(dict(fold.state.settings))
    assert known == [{}, {}, *[{"gear/default": Setting("spark")}] * 4, {}], "from its timestamp's end on"


def test_a_cluster_knows_all_collections_and_its_own_indexes() -> None:
    assert told(commands(whole_story(), DEFAULT))[9:] == [
        "39.1 create u5",
        "39.2 frontier 40",
        "49.0 frontier 50",
        "59.0 drop u5",
        "59.1 drop u4",
        "59.2 drop u10",
        "59.3 create u1",
        "59.4 frontier 60",
    ]
    assert "39.1 create u6" in told(commands(whole_story(), compute("c2")))


def test_losing_proposals_and_garbage_on_the_raw_topic_never_become_commands() -> None:
    log = whole_story()
    assert b"u99" in b"".join(e.value for e in log.entries)
    for controller in (STORAGE, DEFAULT):
        assert not [c for c in commands(log, controller) if c.object_id == "u99"]


def test_the_commands_build_the_same_objects_as_the_catalog() -> None:
    log = whole_story()
    follower = CommandFold()
    for number, command in enumerate(commands(log, DEFAULT)):
        follower.take(Entry(number, encode(command)))
    image = fold(EMPTY, log.entries)
    assert dict(follower.state.objects) == {i: image.item(i) for i in ("u1", "u2", "u7", "u8")}
    assert follower.state.frontier == image.upper


def test_resuming_at_every_frontier_sends_exactly_the_rest() -> None:
    """Cut the history at every place: what was sent and what is sent after a restart are one story (I6)."""
    log = whole_story()
    everything = [encode(c) for c in commands(log, DEFAULT)]
    for frontier in range(10, log.upper + 1, 10):
        before = [c for c in everything if decode(c)[0].catalog_ts < frontier]
        assert before + [encode(c) for c in commands(log, DEFAULT, frontier)] == everything


def test_any_batching_of_the_deltas_comes_to_the_same_objects() -> None:
    log = whole_story()
    for cut in range(1, len(log.entries) + 1):
        middle, _ = admit_all(EMPTY, log.entries[:cut])
        end, _ = admit_all(middle, log.entries[cut:])
        follower = CommandFold()
        for command in translate(from_empty(middle), DEFAULT) + translate(between(middle, end), DEFAULT):
            follower.take(Entry(0, encode(command)))
        assert follower.state.frontier == end.upper
        assert set(follower.state.objects) == {"u1", "u2", "u7", "u8"}


def test_a_new_subscriber_gets_the_delta_from_empty_and_only_what_lives() -> None:
    log = whole_story()
    first = commands(log, DEFAULT, begin_offset=len(log.entries))
    assert told(first) == ["59.0 create u1", "59.1 create u2", "59.2 create u7", "59.3 create u8", "59.4 frontier 60"]
    assert first[0].lower == 0
    image, _ = admit_all(EMPTY, log.entries)
    assert first == translate(from_empty(image), DEFAULT)


def test_two_new_subscribers_send_the_same_bytes_and_go_on_alike() -> None:
    log = whole_story()
    begin = len(log.entries)
    log.change(item("u20"))
    one, two = ([encode(c) for c in commands(log, DEFAULT, begin_offset=begin)] for _ in range(2))
    assert one == two
    assert one[-2:] == [encode(c) for c in commands(log, DEFAULT)][-2:]


@given(st.lists(st.sets(st.integers(1, 6), max_size=3), max_size=8), st.data())
@settings(max_examples=150, deadline=None)
def test_cut_anywhere_resume_anywhere(steps, data) -> None:
    """Random histories with losers between: a subscriber that dies after any record sends the same bytes in the end."""
    log, alive = Log(), set()
    for step in steps:
        made_now = {n: made("materialized_view", f"u{n}", on=(f"u{n - 1}",)) for n in step - alive}
        log.change(*(made_now.get(n, f"u{n}") for n in sorted(step)))
        alive ^= step
        if data.draw(st.booleans()):
            log.lose(item("u99"))
    everything = [encode(c) for c in commands(log, STORAGE)]
    topic, follower = [], CommandFold()
    while follower.state.frontier < log.upper:
        frontier, opened, ordinal = follower.state.next_id()
        rest = [c for c in commands(log, STORAGE, frontier) if (c.catalog_ts, c.ordinal) >= (opened or 0, ordinal)]
        for command in rest[: data.draw(st.integers(1, len(rest)))]:
            topic.append(encode(command))
            follower.take(Entry(len(topic), topic[-1]))
    assert topic == everything
    assert set(follower.state.objects) == {f"u{n}" for n in alive}


def test_a_delta_of_other_collections_still_closes_its_timestamp() -> None:
    log = Log()
    log._propose(10, 20, [put(model.CLUSTERS, "c9", Cluster("c9", "nine"))])
    log.upper = 20
    assert told(commands(log, STORAGE)) == ["9.0 frontier 10", "19.0 frontier 20"]


def test_an_item_under_a_key_that_is_not_its_id_is_as_good_as_absent() -> None:
    log = Log()
    log._propose(10, 20, [put(model.ITEMS, "u1", item("u2"))])
    assert told(commands(log, STORAGE)) == ["9.0 frontier 10", "19.0 frontier 20"]


def test_an_object_that_moves_to_another_cluster_is_dropped_here_and_created_there() -> None:
    moved = item("u5", objects.INDEX, on=("u10",), cluster="c2")
    log = Log().change(TABLE, OTHER, MATERIALIZED, INDEX).change(moved)
    assert told(commands(log, DEFAULT))[-2:] == ["29.0 drop u5", "29.1 frontier 30"]
    assert told(commands(log, compute("c2")))[-2:] == ["29.0 create u5", "29.1 frontier 30"]


def test_clusters_are_told_what_plain_views_mean_and_storage_is_not() -> None:
    plain, over = (made(kind, i, on=on, defined=True) for kind, i, on in (
        ("view", "u3", ("u1",)), ("materialized_view", "u4", ("u3",)),
    ))  # fmt: skip
    log = Log().change(TABLE).change(plain, over).change("u3", "u4")
    assert told(commands(log, DEFAULT))[3:] == [
        "29.0 create u3", "29.1 create u4", "29.2 frontier 30", "39.0 drop u4", "39.1 drop u3", "39.2 frontier 40",
    ]  # fmt: skip
    assert " u3" not in " ".join(told(commands(log, STORAGE)))


def test_dependencies_come_first_even_in_a_very_long_chain() -> None:
    chain = {f"u{n}": item(f"u{n}", objects.VIEW, on=(f"u{n + 1}",)) for n in range(1, 5000)}
    assert [i.id for i in in_dependency_order(chain)] == [f"u{n}" for n in range(4999, 0, -1)]


def test_a_command_log_of_another_catalog_stops_the_subscriber() -> None:
    with pytest.raises(FatalLog, match="do not belong"):
        commands(Log().change(TABLE), STORAGE, frontier=15)
    with pytest.raises(FatalLog, match="hole"):
        Stepper(STORAGE, 0).feed(Entry(3, b""))


def test_commands_survive_their_bytes_and_nothing_else_is_one() -> None:
    for command in commands(whole_story(), DEFAULT):
        for alone in (True, False):
            assert decode(encode(command, alone)) == [command]
            assert encode(*decode(encode(command, alone)), alone) == encode(command, alone)
    for alone in (True, False):
        good = encode(commands(whole_story(), DEFAULT)[1], alone)
        for bad in (b"", b"T", good[:-1], good + b"\x00", b"X" + good[1:], b"T\x63" + good[2:]):
            with pytest.raises(Undecodable):
                decode(bad)
    for nonsense in (Command(9, 0, Kind.CREATE, "u1"), Command(9, 0, Kind.DROP), Command(9, -1, Kind.DROP, "u1"),
                     Command(9, 0, Kind.ADVANCE_CATALOG_FRONTIER), Command(9, 0, Kind.CREATE, "u2", TABLE),
                     ):  # fmt: skip
        with pytest.raises(Undecodable):
            decode(encode(nonsense))


def test_many_commands_are_one_record(monkeypatch: pytest.MonkeyPatch) -> None:
    """However they are cut, they are what they are one by one; a record in which something is wrong is none."""
    sent = commands(whole_story(), DEFAULT)
    alone = CommandFold()
    effects = [effect for n, command in enumerate(sent) for effect in alone.take(Entry(n, encode(command)))]
    size = max(len(encode(each, alone=False)) for each in sent)
    for most, bytes_max in ((1, 1 << 20), (2, 1 << 20), (3, 1 << 20), (1000, 1 << 20), (1000, 1), (1000, 2 * size)):
        monkeypatch.setattr(commands_log, "TOGETHER_MAX", most)
        monkeypatch.setattr(commands_log, "TOGETHER_BYTES_MAX", bytes_max)
        cut = list(records_of(sent, together=True))
        assert [each for of, _ in cut for each in of] == sent and [decode(value) for _, value in cut] == [
            list(of) for of, _ in cut
        ]
        assert all(len(of) <= most and (len(of) == 1 or len(value) <= bytes_max + 20) for of, value in cut)
        assert len(cut) < len(sent) or most == 1 or bytes_max == 1
        together, taken = CommandFold(), CommandFold()
        assert [effect for n, (_, value) in enumerate(cut) for effect in together.take(Entry(n, value))] == effects
        assert [c for n, (_, value) in enumerate(cut) for c in taken.taken(Entry(n, value))] == sent
        assert together.state == taken.state == alone.state and together.together and not alone.together
    monkeypatch.undo()
    ((_, good),) = records_of(sent[:3], together=True)
    nested = encode(sent[0], alone=False)[:-1] + codec.array_of_bytes([good])
    nothing = encode(sent[0], alone=False)[:-1] + codec.array_of_bytes([b"T", encode(sent[1])])
    for bad in (nested, nothing, good[:-1]):
        with pytest.raises(Undecodable):
            decode(bad)
        fold = CommandFold()
        assert not fold.take(Entry(0, bad)) and fold.undecodable == 1 and fold.state == ControllerState()


def test_a_topic_that_others_wrote_in_part_is_gone_on_with_from_there() -> None:
    """A record holds some that another subscriber has sent: what is new in it counts."""
    sent = commands(whole_story(), DEFAULT)
    whole = CommandFold()
    for n, (_, value) in enumerate(records_of(sent, together=True)):
        whole.take(Entry(n, value))
    for before in range(len(sent)):
        fold = CommandFold()
        for n, command in enumerate(sent[:before]):
            fold.take(Entry(n, encode(command)))
        for n, (_, value) in enumerate(records_of(sent, together=True), before):
            fold.take(Entry(n, value))
        assert fold.state.objects == whole.state.objects and fold.state.frontier == whole.state.frontier
        assert fold.state.ignored == before


def test_garbage_on_the_command_topic_is_counted_and_skipped() -> None:
    follower = CommandFold()
    follower.take(Entry(0, b"garbage"))
    for number, command in enumerate(commands(whole_story(), STORAGE), 1):
        follower.take(Entry(number, encode(command)))
    assert follower.undecodable == 1
    assert follower.state.frontier == 60


def test_what_a_controller_restates_is_what_a_new_one_is_told() -> None:
    """So it does not matter whether a controller's history was cut: both are the delta from the empty catalog."""
    log = Log().change(TABLE).change(OTHER, SOURCE, ERRORS).change("u1").change(MATERIALIZED).change(INDEX, ELSEWHERE)
    log.set("gear/default", "spark").set("gear/c2", "process").set("gear/c2", None)
    log.change(item("u2", name="renamed"), "u5")
    image = admit_all(EMPTY, log.entries)[0]
    for controller in (STORAGE, DEFAULT, compute("c2")):
        told = translate(from_empty(image), controller)
        fold = CommandFold()
        for n, command in enumerate(told):
            fold.take(Entry(n, encode(command)))
        assert restate(fold.state) == told
