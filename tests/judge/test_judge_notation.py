"""The notation says what it seems to say, and refuses what it cannot read."""

import pytest

from judge.history import MalformedHistory
from judge.notation import BadNotation, log, parse


def said(text, workload=""):
    return [(op.process, op.f, op.value, op.outcome, op.result, op.start, op.end) for op in parse(text, workload)]


def test_outcomes():
    cas = {"expected": 0, "new": 5, "token": "w0-1"}
    assert said(
        "0:cas(0>5,w0-1)[0,3] 1:cas(0>5,w0-1)[1,4]! 2:cas(0>5,w0-1)[2,5]? 3:cas(0>5,w0-1)[3,] 4:read()=5,w0-1[4,6]"
    ) == [
        (0, "cas", cas, "ok", {"upper": 5}, 0, 3),
        (1, "cas", cas, "fail", None, 1, 4),
        (2, "cas", cas, "info", None, 2, None),
        (3, "cas", cas, "info", None, 3, None),
        (4, "read", None, "ok", {"upper": 5, "token": "w0-1"}, 4, 6),
    ]
    assert [op.error for op in parse("0:create(t)[0,1]!42P07 1:cas(0>5,w0-1)[1,4]!")] == [
        ("42P07", ""),
        ("Conflict", ""),
    ]


@pytest.mark.parametrize(
    "text, value, result",
    [
        ("0:read()=5,[0,1]", None, {"upper": 5, "token": None}),
        ("0:create(t)[0,1]", {"name": "t"}, None),
        ("0:names()=t,u[0,1]", None, {"names": ["t", "u"]}),
        ("0:names()=[0,1]", None, {"names": []}),
        ("0:image()=7:t,u[0,1]", None, {"upper": 7, "names": ["t", "u"]}),
        ("0:write_ts(g)=5[0,1]", {"timeline": "g"}, 5),
        ("0:apply_write(g,5)[0,1]", {"timeline": "g", "ts": 5}, 5),
        ("0:request(r1,t)=error,no[0,1]", {"id": "r1", "sql": "CREATE TABLE t (v int)", "name": "t"},
         {"status": "error", "message": "no"}),
        ("0:txn(ax1,ry12,rz-)[0,1]", [["append", "x", 1], ["r", "y", None], ["r", "z", None]],
         [["append", "x", 1], ["r", "y", [1, 2]], ["r", "z", []]]),
        ("0:txn(rx1.23)[0,1]", [["r", "x", None]], [["r", "x", [1, 23]]]),
        ("0:transfer(a>b,5,t1)[0,1]", {"id": "t1", "from": "a", "to": "b", "amount": 5}, None),
        ("0:sums()=tables:10,view:9[0,1]", None, {"tables": 10, "view": 9}),
        ('0:other({"a": [1, "=)"]})={"b": [2]}[0,1]', {"a": [1, "=)"]}, {"b": [2]}),
    ],
)  # fmt: skip
def test_forms(text, value, result):
    (op,) = parse(text, "given")
    assert (op.value, op.result, op.workload) == (value, result, "given")


def test_operations_are_in_the_order_of_their_starts():
    assert [op.f for op in parse("0:names()=[5,6] 1:create(t)[0,9]")] == ["create", "names"]
    assert [op.f for op in parse("0:create(t)[0,1] 0:drop(t)[1,2]")] == ["create", "drop"]


@pytest.mark.parametrize(
    "text", ["cas", "0:cas(0,5)[0,1]", "0:cas(0>5,a)[x,1]", "0:txn(q)[0,1]", "0:read()=5[0,1]then"]
)
def test_refused(text):
    with pytest.raises(BadNotation):
        parse(text)


def test_no_process_acts_after_an_unknown_outcome():
    with pytest.raises(MalformedHistory):
        parse("0:create(t)[0,1]? 0:create(u)[2,3]")


def test_a_log():
    records = log("0>1:genesis 1>5:w0-1 5>7:+t,-u 7>9:#r1+v@2 x")
    assert [(r.offset, r.kind, r.expected_upper, r.new_upper) for r in records[:2]] == [
        (0, "genesis", 0, 1),
        (1, "proposal", 1, 5),
    ]
    assert records[1].updates == (("settings", "w0", "w0-1"),)
    assert records[2].updates == (("items", "id-t", '{"name": "t"}'), ("items", "id-u", None))
    assert records[3].request_ids == ["r1"]
    assert records[3].updates[1] == ("items", "id-v@2", '{"name": "v"}')
    assert records[4].kind == "garbage"
