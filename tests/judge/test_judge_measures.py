"""Figures of small histories that one can reckon by hand, and of a large one in time."""

from __future__ import annotations

import json
import time

import pytest

from judge.history import Event, Fault, Op, operations
from judge.measures.gaps import longest_without
from judge.measures.measured import measured, read_log
from judge.measures.spread import SECOND, Spread
from judge.measures.writes import is_write
from judge.synthetic import history
from judge.verdict import INVALID, UNDECIDED, VALID
from judge.witness import CatalogRecord, Change


def s(seconds: float) -> int:
    return int(seconds * SECOND)


def op(index, f, start, end, value=None, result=None, workload="once", outcome="ok", gave_up=None):
    return Op(index, index, workload, f, value, s(start), None if end is None else s(end), outcome, result,
              gave_up=None if gave_up is None else s(gave_up))  # fmt: skip


def unknown(index, f, start, gave_up, value=None, workload="once"):
    return op(index, f, start, None, value, workload=workload, outcome="info", gave_up=gave_up)


def inserts(*ends):
    return [op(place, "insert", end - 0.01, end, {"id": f"0-{place}"}) for place, end in enumerate(ends)]


def move(offset, expected, new, seen, request=None):
    kind = "genesis" if expected == 0 else "proposal"
    updates = (Change("requests", request, "{}"),) if request else ()
    return CatalogRecord(offset, None if seen is None else s(seen), kind, "p", "w", expected, new, updates)


def test_percentiles_are_values_that_were_seen():
    assert Spread.of([]) == (0, None, None, None, None)
    assert Spread.of([7.0]) == (1, 7.0, 7.0, 7.0, 7.0)
    assert Spread.of(float(n) for n in range(1, 101)) == (100, 50.0, 95.0, 99.0, 100.0)
    assert Spread.of(float(n) for n in range(1, 22)) == (21, 11.0, 20.0, 21.0, 21.0)


def test_rates_and_latencies_by_kind():
    ops = [op(0, "insert", 0, 0.5), op(1, "insert", 1, 2.0), op(2, "insert", 2, 3, outcome="fail"),
           op(3, "ids", 3, 3.001), unknown(4, "insert", 3, 10)]  # fmt: skip
    found = measured(ops, [])
    by_f = {rate.f: rate for rate in found.rates}
    assert (by_f["insert"].ok, by_f["insert"].failed, by_f["insert"].unknown) == (2, 1, 1)
    assert by_f["insert"].latency_ms.max == 1000.0
    assert by_f["insert"].per_s == 0.2
    assert sum(by_f["insert"].line) == 2
    assert by_f["ids"].latency_ms.p50 == 1.0
    assert [bucket.ok for bucket in found.buckets] == [1, 0, 1, 1, 0, 0, 0, 0, 0, 0]
    assert found.buckets[-1].unknown == 1


def test_availability_is_told_by_seconds():
    ops = [op(0, "insert", 0, 0.5), op(1, "ids", 0.9, 1.5), op(2, "insert", 2, 2.5, outcome="fail"),
           op(3, "insert", 3, 4.0)]  # fmt: skip
    found = measured(ops, []).availability
    assert found.seconds == 4
    assert found.shares == (1.0, 1.0, 0.0, None)
    assert (found.any_share, found.write_share) == (0.5, 0.25)
    assert found.worst == ((2, 0.0),)


def test_the_longest_interval_counts_its_edges():
    assert longest_without([], s(1), s(4)) == 3
    assert longest_without([s(2)], s(1), s(4)) == 2
    assert longest_without([s(0), s(1.5), s(5)], s(1), s(4)) == 2.5


def test_a_gap_is_looked_for_after_each_loss_of_the_leader():
    ops = inserts(*(0.5 * n for n in range(1, 20)), *(12.0 + 0.5 * n for n in range(40)))
    faults = [
        Fault(s(9), s(14), "isolate", "broker-1", "leader of main.oracle"),
        Fault(s(5), s(6), "pause", "adapter-1"),
    ]
    found = measured(ops, faults)
    (gap,) = found.gaps
    assert (gap.kind, gap.seconds, gap.rows_s, gap.catalog_s, gap.window_s) == ("isolate", 2.5, 2.5, None, 15)
    assert found.gap_s.max == 2.5 and found.gap_by_kind["isolate"].count == 1
    assert [limit.met for limit in found.limits[:2]] == [UNDECIDED, VALID]


def lost_leaders(gaps):
    """A run with the leader lost every 30 s, each time with a gap of so many seconds."""
    faults = [Fault(s(30 * n), s(30 * n + 2), "kill", "broker-2", "the leader of catalog") for n in range(len(gaps))]
    acked = [30 * n + at for n, gap in enumerate(gaps) for at in (0.0, *(gap + 0.25 * m for m in range(100)))
             if at < 30]  # fmt: skip
    return measured(inserts(*acked), faults)


@pytest.mark.parametrize(("gap", "met"), [(3.0, [VALID, VALID]), (4.0, [INVALID, VALID]), (6.0, [INVALID, INVALID])])
def test_limits_of_gaps(gap, met):
    assert [limit.met for limit in lost_leaders([gap] * 20).limits[:2]] == met


def test_one_slow_loss_of_twenty_is_within_the_p95_and_two_are_not():
    assert [limit.met for limit in lost_leaders([1.5] * 19 + [3.8]).limits[:2]] == [VALID, VALID]
    assert [limit.met for limit in lost_leaders([1.5] * 18 + [3.8] * 2).limits[:2]] == [INVALID, VALID]


@pytest.mark.parametrize("count", [1, 8, 19])
def test_a_p95_of_few_losses_is_none_and_the_longest_counts_all_the_same(count):
    p95, longest = lost_leaders([1.5] * (count - 1) + [3.8]).limits[:2]
    assert (p95.met, p95.value, longest.met, longest.value) == (UNDECIDED, None, VALID, 3.8)
    assert p95.note == f"{count} losses of the leader are too few for it: 20 are needed"
    assert lost_leaders([5.5] * count).limits[1].met == INVALID
    assert lost_leaders([1.5] * count).to_json()["write_gap"]["p95"] is None


def test_without_a_lost_leader_the_limit_is_unknown():
    assert [limit.met for limit in measured(inserts(1, 2), []).limits[:2]] == [UNDECIDED, UNDECIDED]


def test_a_gap_ends_where_the_writers_stopped_but_not_where_they_hang():
    fault = Fault(s(10), s(11), "kill", "broker-1", "leader")
    stopped = measured([*inserts(9, 10.5), op(9, "ids", 20, 40)], [fault])
    assert stopped.gaps[0].seconds == 0.5
    hanging = measured([*inserts(9), unknown(1, "insert", 9.5, 24.5), op(9, "ids", 20, 40)], [fault])
    assert hanging.gaps[0].seconds == pytest.approx(14.5)
    lost = measured([*inserts(9), unknown(1, "insert", 9.9, None), op(9, "ids", 20, 40)], [fault])
    assert lost.gaps[0].seconds == pytest.approx(14.9)
    told = measured([*inserts(9, 10.5), op(9, "ids", 20, 40)], [fault], writing_until=s(13))
    assert told.gaps[0].seconds == 2.5


def test_one_kind_of_write_does_not_hide_that_the_other_stands_still():
    ops = inserts(*(10 + 0.5 * n for n in range(40)))
    ops += [op(100, "cas", 9, 10, {"expected": 1}), op(101, "cas", 17, 18, {"expected": 2})]
    (gap,) = measured(ops, [Fault(s(10), s(12), "kill", "b", "leader")]).gaps
    assert (gap.seconds, gap.rows_s, gap.catalog_s) == (0.5, 0.5, 8)


def test_what_counts_as_a_write():
    assert is_write(op(0, "txn", 0, 1, [["r", 1, None], ["append", 1, 2]]))
    assert not is_write(op(0, "txn", 0, 1, [["r", 1, None]]))
    assert not is_write(op(0, "produce", 0, 1, {"ids": []}))
    assert all(is_write(op(0, f, 0, 1)) for f in ("cas", "create", "drop", "insert", "transfer"))


def test_the_calm_gap_is_measured_away_from_faults():
    ops = inserts(*(0.5 * n for n in range(1, 200)))
    assert measured(ops, [Fault(s(30), s(40), "kill", "b")]).calm_gap_s == 0.5
    assert measured(ops, [Fault(s(0), None, "kill", "b")]).calm_gap_s is None


# -- settling


HEALED = Fault(s(9), s(20), "isolate", "broker-1")


def settle(ops, faults=(HEALED,), log=None):
    (found,) = measured(ops, list(faults), log).settlings
    return found.seconds, found.by


def test_a_cas_is_settled_when_the_log_passes_what_it_expected():
    cas = unknown(0, "cas", 10, 25, {"expected": 5, "new": 8, "token": "w0-1"}, "register")
    log = [move(0, 0, 5, 1), move(1, 5, 8, 21.5), move(2, 8, 9, 30)]
    assert settle([cas], log={"register-catalog": log}) == (1.5, "log")
    another = [move(0, 0, 5, 1), move(1, 5, 6, 23), move(2, 5, 8, 24)]
    assert settle([cas], log={"register-catalog": another}) == (3, "log")
    assert settle([cas], log={"register-catalog": log[:1]}) == (None, "nobody")
    before_healing = [move(0, 0, 5, 1), move(1, 5, 8, 12)]
    assert settle([cas], log={"register-catalog": before_healing}) == (0, "log")


def test_a_record_read_late_was_there_when_a_later_one_was_seen():
    cas = unknown(0, "cas", 10, 25, {"expected": 5, "new": 8}, "register")
    log = [move(0, 0, 5, 1), move(1, 5, 8, None), move(2, 8, 9, 22)]
    assert settle([cas], log={"register-catalog": log}) == (2, "log")


def test_a_read_of_the_register_says_the_same():
    cas = unknown(0, "cas", 10, 25, {"expected": 5, "new": 8}, "register")
    reads = [
        op(1, "read", 21, 22, None, {"upper": 5}, "register"),
        op(2, "read", 23, 24, None, {"upper": 9}, "register"),
    ]
    assert settle([cas, *reads]) == (4, "read")


def test_anything_else_is_settled_by_the_first_strict_read_begun_after_the_healing():
    transfer = unknown(0, "transfer", 10, 25, {"id": "0-1"}, "bank")
    reads = [op(1, "sums", 19, 20.5, None, {}, "bank"), op(2, "sums", 20.2, 23, None, {}, "bank"),
             op(3, "accounts", 20.4, 22, None, {}, "bank"),
             op(4, "sums", 20.1, 20.3, outcome="fail", workload="bank")]  # fmt: skip
    assert settle([transfer, *reads]) == (2, "read")
    assert settle([transfer, reads[0]]) == (None, "nobody")
    assert measured([transfer, reads[0]], [HEALED]).limits[2].met == UNDECIDED


def test_an_effect_that_comes_later_settles_later():
    txn = unknown(0, "txn", 10, 25, [["append", 1, 7]], "append")

    def read(index, start, end, elements, key=1):
        return op(index, "txn", start, end, [["r", key, None]], [["r", key, elements]], "append")

    assert settle([txn, read(1, 21, 22, []), read(2, 23, 24, [])]) == (2, "read")
    assert settle([txn, read(1, 21, 22, [7]), read(2, 23, 24, [7])]) == (2, "read")
    assert settle([txn, read(1, 21, 22, []), read(2, 33, 34, [7])]) == (14, "late effect")
    assert settle([txn, read(1, 21, 22, [3], key=2), read(2, 33, 34, [7])]) == (2, "read")
    assert settle([txn, read(1, 12, 13, []), read(2, 21, 22, [7])]) == (2, "read")
    over = measured([txn, read(1, 21, 22, []), read(2, 33, 34, [7])], [HEALED])
    assert over.limits[2].met == INVALID and over.to_json()["settle"]["over_limit"][0]["op"] == 0


def test_a_drop_shows_by_what_is_gone():
    drop = unknown(0, "drop", 10, 25, {"name": "t"}, "set")
    reads = [op(1, "names", 21, 22, None, {"names": ["t"]}, "set"), op(2, "image", 25, 26, None, {"names": []}, "set")]
    assert settle([drop, *reads]) == (6, "late effect")


def test_an_id_shows_where_all_are_listed():
    insert = unknown(0, "insert", 10, 25, {"id": "0-1"})
    reads = [op(1, "all", 21, 22, {"from": "table"}, {"ids": []}),
             op(2, "all", 24, 25, {"from": "source"}, {"ids": []}),
             op(3, "all", 26, 27, {"from": "table"}, {"ids": [["0-1", 1]]})]  # fmt: skip
    assert settle([insert, *reads]) == (7, "late effect")


@pytest.mark.parametrize("workload,f,value,read,asked,there,gone", [
    ("once", "insert", {"id": "a"}, "seen", {"from": "table", "id": "a"}, {"n": 1}, {"n": 0}),
    ("once", "produce", {"ids": ["a", "b"]}, "seen", {"from": "source", "id": "a"}, {"n": 1}, {"n": 0}),
    ("bank", "transfer", {"id": "a"}, "moved", {"id": "a"}, {"rows": [[1, -5]]}, {"rows": []}),
    ("views", "insert", {"table": "views_events", "rows": [[7, 3, 5]]}, "row", {"table": "views_events", "is": 7},
     {"n": 1}, {"n": 0}),
    ("views", "insert", {"table": "views_customers", "rows": [[3, "w"]]}, "row",
     {"table": "views_customers", "is": "w"}, {"n": 1}, {"n": 0}),
])  # fmt: skip
def test_a_look_at_one_thing_settles_and_shows_when_it_came_late(workload, f, value, read, asked, there, gone):
    faults = [Fault(s(1), s(5), "kill", "broker")]
    write = unknown(0, f, 2, 4, value, workload)

    def look(index, start, end, result, asked=asked):
        return op(index, read, start, end, asked, result, workload)

    def settled(*reads):
        (one,) = measured([write, *reads], faults).settlings
        return one.seconds, one.by

    assert settled(look(1, 4.5, 4.9, there), look(2, 6, 6.2, there)) == (1.2, "read")
    assert settled(look(1, 6, 6.2, gone), look(2, 8, 8.5, there)) == (3.5, "late effect")
    other = {name: "other" if name in ("id", "is") else each for name, each in asked.items()}
    assert settled(look(1, 6, 6.2, gone, other), look(2, 8, 8.5, there)) == (1.2, "read"), "it was not looked for"


def test_a_look_at_one_id_and_at_all_of_them_are_looks_at_the_same():
    faults = [Fault(s(1), s(5), "kill", "broker")]
    ops = [unknown(0, "insert", 2, 4, {"id": "a"}), op(1, "seen", 6, 6.2, {"from": "table", "id": "a"}, {"n": 0}),
           op(2, "all", 30, 31, {"from": "table"}, {"ids": [["a", 1]]})]  # fmt: skip
    (one,) = measured(ops, faults).settlings
    assert (one.seconds, one.by) == (26.0, "late effect")


def test_a_row_of_a_table_shows_in_that_table():
    insert = unknown(0, "insert", 10, 25, {"table": "x1", "row": 3}, "anomalies")
    reads = [op(place, "select", 21 + place, 21.5 + place, {"table": table}, {"rows": rows}, "anomalies")
             for place, (table, rows) in enumerate([("x2", [3]), ("x1", []), ("x1", [3])], 1)]  # fmt: skip
    assert settle([insert, *reads]) == (4.5, "late effect")


def test_a_request_is_settled_by_the_log():
    request = unknown(0, "request", 10, 25, {"id": "r1", "sql": "…", "name": "t"}, "requests")
    log = [move(0, 0, 5, 1), move(1, 5, 6, 21), move(2, 6, 7, 26, "r1")]
    assert settle([request], log={"catalog": log}) == (6, "late effect")
    assert settle([request], log={"catalog": log[:2]}) == (1, "log")
    assert settle([request], log={"catalog": log[:1]}) == (None, "nobody")


def test_without_a_fault_it_counts_from_its_own_start():
    assert settle([unknown(0, "transfer", 10, 25, None, "bank"), op(1, "sums", 11, 12, workload="bank")], []) == (
        2,
        "read",
    )


def test_reads_need_no_settling():
    assert measured([unknown(0, "ids", 1, 2), unknown(1, "txn", 1, 2, [["r", 1, None]], "append")], []).settlings == ()
    assert measured([unknown(0, "ids", 1, 2)], []).limits[2].met == VALID


def test_the_time_of_giving_up_is_kept_and_bounds_nothing():
    (found,) = operations(
        [Event(1, 0, "invoke", "once", "insert", {"id": "a"}), Event(9, 0, "info", "once", "insert", None)]
    )
    assert (found.end, found.gave_up, found.outcome) == (None, 9, "info")


def test_logs_are_read_from_a_directory(tmp_path):
    line = {"offset": 0, "seen": 4, "kind": "genesis", "expected_upper": 0, "new_upper": 5, "updates": []}
    (tmp_path / "log-catalog.jsonl").write_text(json.dumps(line) + "\n")
    assert [record.seen for record in read_log(tmp_path)["catalog"]] == [4]


def test_nothing_at_all():
    found = measured([], [])
    assert found.rates == () and json.dumps(found.to_json())


def test_a_full_run_is_measured_in_time_and_as_plain_values():
    run = history(seed=1, ops_len=40_000, seconds=900, faults_len=60)
    began = time.process_time()
    found = measured(run.ops, run.faults)
    assert time.process_time() - began < 20  # it takes 2
    assert len(found.buckets) <= 240
    assert len(json.dumps(found.to_json())) < 300_000
    assert sum(rate.ok for rate in found.rates) == sum(op.ok for op in run.ops)
    assert found.gaps and found.settlings


def test_while_another_fault_is_on_nothing_is_healed():
    txn = unknown(0, "txn", 10, 25, [["append", 1, 7]], "append")
    late = op(1, "txn", 33, 34, [["r", 1, None]], result=[["r", 1, []]], workload="append")
    assert settle([txn, late]) == (14, "read")
    again = HEALED._replace(start=s(27), end=s(32))
    assert settle([txn, late], (HEALED, again)) == (14 - 5, "read")
    overlapping = again._replace(start=s(30), end=s(33))
    assert settle([txn, late], (HEALED, again, overlapping)) == (14 - 6, "read")
