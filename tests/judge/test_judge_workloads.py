"""The generators are pure, endless and never use a name twice; outcomes are called what the product promises."""

from __future__ import annotations

import inspect
import json
import random
from collections import Counter
from collections.abc import Iterator
from itertools import islice

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from controllers.compute.operators.lowered import Lowered
from controllers.compute.view import View
from journal.errors import Conflict, FatalLog, Indeterminate, InvalidUsage, Rejected, TidemarkError, Unavailable
from judge.checkers.poison import PLACES
from judge.history import Op
from judge.live.trap import hoarded, hoarding
from judge.measures.settling import READS, UNSETTLED, may_have_written
from judge.workloads import anomalies, append, bank, poison, views
from judge.workloads.api import Failed, Invocation, Unknown
from judge.workloads.outcome import certain, outcome, sqlstate_certain
from judge.workloads.registry import WORKLOADS
from judge.workloads.requests import judged_replies
from judge.workloads.settling import FOLLOW_S, FOLLOWS_MAX, OWED_MAX, TRIES_MAX, Debts
from oracle.errors import SnapshotTooOld, StaleCatalog
from sql.views.kept_views import TEXT_ALONE

LEN = 600
NAMES = sorted(WORKLOADS)

# A sequence is hundreds of draws: some dozens of seeds say what thousands would.  Machines are busy at times.
few = settings(max_examples=20, deadline=None)

seeds = st.integers(0, 2**32)
teams = st.integers(1, 6).flatmap(lambda workers: st.tuples(st.integers(0, workers - 1), st.just(workers)))


def sequence(name: str, seed: int, worker: int = 0, workers: int = 1, length: int = LEN) -> list[Invocation]:
    return list(islice(WORKLOADS[name].invocations(random.Random(seed), worker, workers), length))


def everybody(name: str, seed: int, workers: int = 4) -> Iterator[Invocation]:
    for worker in range(workers):
        yield from sequence(name, seed + worker, worker, workers)


@pytest.mark.parametrize("name", NAMES)
@few
@given(seed=seeds, team=teams)
def test_the_same_seed_gives_the_same_endless_sequence_of_json(name: str, seed: int, team: tuple[int, int]) -> None:
    once, again = (sequence(name, seed, *team, length=200) for _ in range(2))
    assert once == again and len(once) == 200
    assert json.loads(json.dumps(once)) == [list(each) for each in once]


@pytest.mark.parametrize("name", NAMES)
def test_every_write_that_may_become_unknown_has_a_read_that_settles_it(name: str) -> None:
    """Of what the generator gives; the requests' log is read by the observer."""
    settles = READS[name] | ({"request"} if name == "requests" else set())
    ground = WORKLOADS[name].settling(None)
    assert bool(ground) is (name != "requests") and all(each.f in settles for each in ground)
    for each in sequence(name, 3):
        reads = WORKLOADS[name].settling(each)
        write = may_have_written(Op(0, 0, name, each.f, each.value, 0, None, "info"))
        write = write and (name, each.f) not in UNSETTLED
        assert bool(reads) is write, each
        assert all(read.f in settles for read in reads)
        assert json.loads(json.dumps(reads)) == [list(read) for read in reads]


def test_a_settling_read_looks_where_the_write_went() -> None:
    def reads(name: str, f: str, value: object) -> list[tuple]:
        return [tuple(each) for each in WORKLOADS[name].settling(Invocation(f, value))]

    assert reads("append", "txn", [["append", 4, 1], ["append", 2, 2], ["append", 4, 3]]) == [
        ("txn", [["r", 2, None], ["r", 4, None]])
    ]
    assert reads("once", "insert", {"id": "t1-2"}) == [("seen", {"from": "table", "id": "t1-2"})]
    assert reads("once", "produce", {"ids": ["s1-2", "s1-3"]}) == [("seen", {"from": "source", "id": "s1-2"})]
    assert reads("bank", "transfer", {"id": "1-2"}) == [("moved", {"id": "1-2"})]
    assert reads("views", "insert", {"table": views.EVENTS, "rows": [[7, 1, 2], [8, 1, 2]]}) == [
        ("row", {"table": views.EVENTS, "is": 7})
    ]
    assert reads("views", "insert", {"table": views.CUSTOMERS, "rows": [[7, "1-2"]]}) == [
        ("row", {"table": views.CUSTOMERS, "is": "1-2"})
    ]
    for name, table in (("idle", "idle_seen"), ("poison", "poison_rows")):
        assert reads(name, "insert", {"id": "0-7", "rows": [[1, 2]]}) == [("row", {"table": table, "is": "0-7"})]
    request = {"id": "1-2", "sql": "CREATE VIEW v AS SELECT 1", "name": "v", "copies": 2}
    assert reads("requests", "request", request) == [("request", {**request, "copies": 1})]


class Debtor:
    """What happens to debts, in short: u a write becomes unknown, hurt, healed, ok and failed what became of a look."""

    def __init__(self) -> None:
        self.debts = Debts(self.settling)
        self.now_s = 1.0

    @staticmethod
    def settling(write: Invocation | None) -> list[Invocation]:
        if write is not None and write.f.startswith("look"):
            return []
        return [Invocation("ground" if write is None else f"look {write.value}")]

    def due(self) -> str:
        owed = self.debts.due(self.now_s)
        return owed.read.f if owed else ""

    def unknown(self, number: int) -> None:
        self.debts.unknown(Invocation("write", number))

    def look(self, answered: bool = True) -> None:
        owed = self.debts.due(self.now_s)
        assert owed is not None
        self.debts.told(owed, answered, self.now_s)


def test_an_unknown_outcome_of_a_healthy_cluster_is_looked_at_at_once_and_once() -> None:
    debtor = Debtor()
    assert debtor.due() == ""
    debtor.unknown(1)
    assert debtor.due() == "look 1"
    debtor.look()
    assert debtor.due() == ""


def test_one_of_a_fault_is_looked_at_when_it_is_healed_and_so_is_the_workload() -> None:
    debtor = Debtor()
    debtor.debts.hurt()
    debtor.unknown(1)
    assert debtor.due() == ""
    debtor.debts.healed()
    assert debtor.due() == "look 1"
    debtor.look()
    assert debtor.due() == "ground"
    debtor.look()
    assert debtor.due() == ""


def test_an_answer_to_a_look_from_before_the_healing_pays_nothing() -> None:
    debtor = Debtor()
    debtor.unknown(1)
    before = debtor.debts.due(debtor.now_s)
    debtor.debts.hurt()
    debtor.debts.healed()
    debtor.debts.told(before, True, debtor.now_s)
    assert debtor.due() == "look 1"


def test_what_is_not_answered_is_asked_again_in_turn_and_not_for_ever() -> None:
    debtor = Debtor()
    debtor.unknown(1)
    debtor.unknown(2)
    debtor.look(answered=False)
    assert debtor.due() == "look 2"
    debtor.look()
    for _ in range(TRIES_MAX - 1):
        assert debtor.due() == "look 1"
        debtor.look(answered=False)
    assert debtor.due() == ""


def test_one_that_was_answered_is_looked_at_again_for_as_long_as_it_may_take_to_settle() -> None:
    """Its statement may still be carried out, and when it is must be seen."""
    debtor = Debtor()
    debtor.unknown(1)
    debtor.look()
    for _ in range(FOLLOWS_MAX):
        assert debtor.due() == "" and debtor.debts.next_s() == debtor.now_s + FOLLOW_S
        debtor.now_s += FOLLOW_S
        assert debtor.due() == "look 1"
        debtor.look()
    assert debtor.debts.next_s() is None
    debtor.unknown(2)
    debtor.look()
    debtor.debts.hurt()
    debtor.now_s += FOLLOW_S
    assert debtor.due() == "" and debtor.debts.next_s() is None
    debtor.debts.healed()
    assert debtor.due() == "look 2", "a healing begins anew"


def test_a_write_that_is_its_own_look_is_settled_by_its_answer() -> None:
    debts = Debts(lambda write: [] if write is None else [write])
    debts.unknown(Invocation("request", 1))
    owed = debts.due(0.0)
    assert owed is not None
    debts.told(owed, True, 0.0)
    assert debts.next_s() is None


def test_debts_are_bounded_and_the_newest_stay() -> None:
    debtor = Debtor()
    for number in range(OWED_MAX + 3):
        debtor.unknown(number)
    assert debtor.due() == "look 3"
    debtor.debts.hurt()
    debtor.debts.healed()
    seen = []
    while debtor.due():
        seen.append(debtor.due())
        debtor.look()
    assert len(seen) == OWED_MAX and seen[-1] == "ground"
    debtor.unknown(99)
    debtor.look()
    for number in range(OWED_MAX):
        debtor.unknown(number)
    debtor.now_s += FOLLOW_S
    assert debtor.due() == "look 0", "one that was answered goes first"


@pytest.mark.parametrize("name", NAMES)
def test_every_f_appears_and_different_seeds_differ(name: str) -> None:
    expected = {
        "register": {"cas", "read"}, "set": {"create", "drop", "names", "image"},
        "oracle": {"read_ts", "write_ts", "apply_write"}, "append": {"txn", "positions"},
        "bank": {"transfer", "sums", "accounts"}, "views": {"insert", "compare"},
        "once": {"insert", "produce", "ids"}, "requests": {"request"},
        "anomalies": {"create", "insert", "select", "index", "select_index", "drop"},
        "sources": {"produce", "read", "remake", "reset"}, "idle": {"insert", "compare"},
        "poison": {"insert", "compare", "renew"}, "transactions": {"txn"}, "ranges": {"txn"},
        "counters": {"increment", "counters"},
        "accounts": {"transfer", "sums", "accounts"}, "keys": {"insert", "delete", "move", "window"},
        "upserts": {"increment", "claim", "counters", "claims"}, "draws": {"nextval", "insert", "drawn"},
        "settled": {"change", "sums", "rows", "was", "files", "vacuum", "cluster"},
        "envelopes": {"produce", "read"}, "sinks": {"change", "tail"},
    }  # fmt: skip
    assert {each.f for each in sequence(name, 1, length=2000)} == expected[name]
    assert sequence(name, 1) != sequence(name, 2)


def test_a_view_fails_on_the_row_of_its_own_definition_alone() -> None:
    """Each row that worker 0 poisons it with is the one of the definition in force, and no other row is like it."""
    in_force = poison.bad(0)
    assert in_force in PLACES[poison.FAILING].values, "the checker knows the first one by itself"
    for each in sequence("poison", 4, 0, 2):
        if each.f == "insert":
            ((_, value),) = each.value["rows"]
            assert value == in_force or value >= 100
        elif each.f == "renew":
            assert each.value["value"] != in_force
            in_force = each.value["value"]
            assert f"(v + {-in_force})" in each.value["as"]
    assert in_force < poison.bad(5) and in_force > poison.bad(poison.BEGIN)
    assert all(value >= 100 for each in sequence("poison", 4, 1, 2) if each.f == "insert"
               for _, value in each.value["rows"])  # fmt: skip


def test_only_the_marked_view_is_given_what_ends_its_controller() -> None:
    assert hoarding("SELECT k FROM u1", ["u1"]) == "SELECT k FROM u1"
    for text in (poison.HARMLESS, poison.definition(3)):
        assert hoarding(text, ["u1"]) == text
    assert "REPEAT" in hoarding(poison.ENDS, ["u7"]) and "FROM u7" in hoarding(poison.ENDS, ["u7"])


@pytest.mark.parametrize("query", (poison.ENDS, poison.HARMLESS))
def test_the_trap_knows_what_a_view_is_made_of_and_leaves_the_marked_one_to_spark(query: str) -> None:
    made = inspect.signature(View.__init__)
    lowered = Lowered(TEXT_ALONE, query)
    parts = {name: name for name in made.parameters} | {"lowered": lowered, "inputs": {"u7": None}}
    bound = hoarded(made.bind(**parts))
    given = bound.arguments.pop("lowered")
    del parts["lowered"]
    assert bound.arguments == parts
    if query == poison.ENDS:
        assert given.spark_sql == hoarding(query, ["u7"]) != query and isinstance(given.query, str)
    else:
        assert given is lowered


@pytest.mark.parametrize("name", NAMES)
def test_what_it_says_of_itself_can_be_run(name: str) -> None:
    workload = WORKLOADS[name]
    assert workload.name == name
    assert 1 <= workload.clients_quick <= workload.clients <= 16
    assert workload.rate and workload.rate_quick
    for worker in range(3):
        assert all(isinstance(each, Invocation) for each in workload.final(worker, 3))


def test_a_short_run_at_full_rate_is_twenty_thousand_operations_in_ninety_seconds() -> None:
    assert sum(workload.rate_quick for workload in WORKLOADS.values()) * 90 >= 25_000
    assert sum(workload.rate for workload in WORKLOADS.values()) * 1800 >= 250_000


@few
@given(seed=seeds)
def test_tokens_of_the_register_are_unique(seed: int) -> None:
    tokens = Counter(each.value["token"] for each in everybody("register", seed) if each.f == "cas")
    assert set(tokens.values()) == {1}


@few
@given(seed=seeds)
def test_a_name_of_the_set_is_created_once_and_dropped_at_most_once_after(seed: int) -> None:
    created: set[str] = set()
    dropped: set[str] = set()
    for each in everybody("set", seed):
        if each.f == "create":
            assert each.value["name"] not in created
            created.add(each.value["name"])
        elif each.f == "drop":
            assert each.value["name"] in created - dropped
            dropped.add(each.value["name"])
    assert dropped and created - dropped


@few
@given(seed=seeds)
def test_the_set_stays_short_and_something_stays_for_ever(seed: int) -> None:
    live: set[str] = set()
    for each in sequence("set", seed, length=3000):
        if each.f == "create":
            live.add(each.value["name"])
        elif each.f == "drop":
            live.discard(each.value["name"])
    assert 20 <= len(live) <= 60


@few
@given(seed=seeds)
def test_appended_values_are_unique_and_each_transaction_is_of_one_kind(seed: int) -> None:
    seen: set[int] = set()
    for each in everybody("append", seed):
        if each.f != "txn":
            continue
        kinds = {step[0] for step in each.value}
        assert len(kinds) == 1
        if kinds == {"append"}:
            values = [v for _, _, v in each.value]
            assert len(set(values)) == len(values) and not seen & set(values)
            seen.update(values)
            assert len({k % append.TABLES for _, k, _ in each.value}) == 1, "one statement has one target"
        else:
            keys = [k for _, k, _ in each.value]
            assert len(set(keys)) == len(keys)


@few
@given(seed=seeds)
def test_lists_stay_short_and_old_ones_are_left(seed: int) -> None:
    lengths = Counter(
        step[1] for each in everybody("append", seed) if each.f == "txn" for step in each.value if step[0] == "append"
    )
    assert max(lengths.values()) <= 100
    last = sequence("append", seed)[-1]
    assert (last.value if last.f == "positions" else last.value[0][1]) >= append.KEYS


def test_appends_to_one_list_in_one_statement_take_positions_one_behind_the_other() -> None:
    assert append.append_sql([["append", 2, 7], ["append", 4, 8], ["append", 2, 9]]) == (
        "INSERT INTO lists_0 SELECT 2, count(*) + 0, 7 FROM lists_0 WHERE k = 2"
        " UNION ALL SELECT 4, count(*) + 0, 8 FROM lists_0 WHERE k = 4"
        " UNION ALL SELECT 2, count(*) + 1, 9 FROM lists_0 WHERE k = 2"
    )


def test_a_last_read_that_could_not_learn_which_lists_there_are_failed_and_is_asked_again() -> None:
    class Away:
        node = "adapter-1"

        def move_on(self) -> None: ...

        def run(self, *_arguments, **_named) -> list[tuple]:
            raise Failed("NotConnected", "away")

    client = append.AppendClient.__new__(append.AppendClient)
    client.sql, client.handlers = Away(), {"txn": client._transaction}
    (asked,) = WORKLOADS["append"].final(0, 2)
    assert client.prepare(asked) == asked
    with pytest.raises(Failed):
        client.invoke(asked)
    client.sql.run = lambda *_arguments, **_named: [(k,) for k in range(8)]
    assert [k for _, k, _ in client.prepare(asked).value] == [0, 1, 4, 5]


def test_lists_of_both_tables_are_read_in_one_statement() -> None:
    assert append.read_sql([3, 2, 4]) == (
        "SELECT k, pos, v FROM lists_0 WHERE k IN (2, 4)"
        " UNION ALL SELECT k, pos, v FROM lists_1 WHERE k IN (3) ORDER BY k, pos, v"
    )


@few
@given(seed=seeds)
def test_transfers_have_ids_of_their_own_and_move_money_between_two_accounts(seed: int) -> None:
    found = [each.value for each in everybody("bank", seed) if each.f == "transfer"]
    assert len({value["id"] for value in found}) == len(found)
    assert all(value["from"] != value["to"] and value["amount"] > 0 for value in found)
    assert {*range(bank.ACCOUNTS)} == {value["from"] for value in found}
    assert {bool(value.get("across")) for value in found} == {True, False}


@few
@given(seed=seeds)
def test_rows_of_views_are_distinct(seed: int) -> None:
    ids: list[int] = []
    names: list[str] = []
    for each in everybody("views", seed):
        if each.f == "insert":
            of = ids if each.value["table"] == views.EVENTS else names
            of.extend(row[0] if of is ids else row[1] for row in each.value["rows"])
    assert len(set(ids)) == len(ids) and len(set(names)) == len(names)
    assert 0 < len(names) <= 4 * views.NAMED_MAX


@few
@given(seed=seeds)
def test_ids_of_once_are_unique_whichever_way_they_go(seed: int) -> None:
    ids: Counter[str] = Counter()
    for each in everybody("once", seed):
        ids.update([each.value["id"]] if each.f == "insert" else each.value["ids"] if each.f == "produce" else [])
    assert set(ids.values()) == {1}


@few
@given(seed=seeds)
def test_a_request_id_always_says_the_same_and_some_are_sent_again(seed: int) -> None:
    said: dict[str, tuple[str, str]] = {}
    again = 0
    for each in everybody("requests", seed):
        what = (each.value["sql"], each.value["name"])
        again += each.value["id"] in said
        assert said.setdefault(each.value["id"], what) == what
    assert again and len({name for _, name in said.values()}) == len(said)


@few
@given(seed=seeds)
def test_a_table_of_the_anomalies_lives_once_and_is_indexed_before_it_is_asked_by_index(seed: int) -> None:
    state: dict[str, set[str]] = {}
    rows: list[tuple[str, int]] = []
    for each in everybody("anomalies", seed):
        table = each.value["table"]
        if each.f == "create":
            assert table not in state
            state[table] = set()
            continue
        assert "drop" not in state[table]
        if each.f == "select_index":
            assert "index" in state[table]
        if each.f == "insert":
            rows.append((table, each.value["row"]))
        state[table].add(each.f)
    assert len(set(rows)) == len(rows)


def test_each_step_of_a_table_is_taken_through_another_adapter() -> None:
    class Session:
        def __init__(self, _world, _name, first, *, only) -> None:
            self.node = f"adapter-{first + 1}"

    class World:
        dsns = ("one", "two", "three")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(anomalies, "Sql", Session)
        client = anomalies.AnomaliesClient(World, worker=1, life=0)
        nodes = []
        for invocation in sequence("anomalies", 5, length=12):
            client.prepare(invocation)
            nodes.append(client.node)
    assert all(before != after for before, after in zip(nodes, nodes[1:], strict=False))
    assert set(nodes) == {"adapter-1", "adapter-2", "adapter-3"}


# -- outcomes ---------------------------------------------------------------------------------------------------------


class Answered(Exception):
    """An error as psycopg gives it."""

    def __init__(self, sqlstate: str | None) -> None:
        super().__init__("said\nand explained")
        self.sqlstate = sqlstate


KNOWN = ["40001", "40000", "42P01", "42P07", "22003", "23502", "57014", "57P03", "53300", "53400", "54000", "72000",
         "08001", "08004", "25P02", "0A000", "3D000"]  # fmt: skip
OPEN = ["08007", "08006", "08003", "08P01", "XX000", "XX001", "57P01", "57P02", "40003", "58030", None]


@pytest.mark.parametrize("sqlstate", KNOWN)
def test_what_the_product_vouches_for_did_not_happen(sqlstate: str) -> None:
    assert sqlstate_certain(sqlstate)
    said = outcome(Answered(sqlstate), write=True)
    assert isinstance(said, Failed) and said.code == sqlstate and str(said) == "said"


@pytest.mark.parametrize("sqlstate", OPEN)
def test_whatever_else_ends_a_write_is_unknown_and_a_read_failed(sqlstate: str | None) -> None:
    assert isinstance(outcome(Answered(sqlstate), write=True), Unknown)
    assert isinstance(outcome(Answered(sqlstate), write=False), Failed)


FAMILIES = [
    (Conflict("c"), True), (Rejected("r"), True), (Unavailable("u"), True), (InvalidUsage("i"), True),
    (StaleCatalog(1, 2), True), (SnapshotTooOld("s"), True), (Indeterminate("n"), False), (FatalLog("f"), False),
    (TidemarkError("?"), False), (TimeoutError(), False), (Rejected("r", sqlstate="57P01"), True),
]  # fmt: skip


@pytest.mark.parametrize(("error", "known"), FAMILIES, ids=lambda each: type(each).__name__)
def test_in_one_process_the_family_decides(error: Exception, known: bool) -> None:
    assert certain(error) == known
    said = outcome(error, write=True)
    assert isinstance(said, Failed if known else Unknown) and said.code == type(error).__name__


def test_a_sqlstate_says_of_a_family_what_the_family_says() -> None:
    """Over the wire only the SQLSTATE is left: each family's own must not be taken for another's."""
    for family in (InvalidUsage, Rejected, Conflict, Unavailable):
        assert sqlstate_certain(family.sqlstate), family
    for family in (TidemarkError, Indeterminate, FatalLog):
        assert not sqlstate_certain(family.sqlstate), family


OK = {"request_id": "r", "status": "ok", "message": "CREATE VIEW", "sqlstate": None, "catalog_ts": 7}
AWAY = {"request_id": "r", "status": "error", "message": "away", "sqlstate": "57P03", "catalog_ts": None}
EXISTS = {"request_id": "r", "status": "error", "message": "exists", "sqlstate": "42P07", "catalog_ts": None}


def test_answers_to_a_request_come_to_one() -> None:
    told = {"status": "ok", "message": "CREATE VIEW", "catalog_ts": 7}
    assert judged_replies([OK]) == judged_replies([OK, OK]) == judged_replies([AWAY, OK]) == told
    assert judged_replies([OK, EXISTS])["others"] == [{"status": "error", "message": "exists", "sqlstate": "42P07"}]
    assert judged_replies([EXISTS])["status"] == "error"
    for silent in ([], [AWAY], [AWAY, AWAY]):
        with pytest.raises(Unknown):
            judged_replies(silent)
