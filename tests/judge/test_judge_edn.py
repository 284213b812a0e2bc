"""Histories as EDN say what ours say, in the way of Jepsen's own."""

import json

import pytest

from judge.edn import Keyword, main, text, to_edn
from judge.history import INFO, INVOKE, OK, Event
from judge.notation import events


def test_a_register():
    lines = list(to_edn(events("0:cas(1>5,w0-1)[10,12] 1:read()=5,w0-1[13,14] 2:cas(1>9,w2-1)[15,16]! 3:read()[17,]")))
    assert lines == [
        '{:index 0, :type :invoke, :process 0, :workload :register, :f :cas, :value {:expected 1, :new 5, '
        ':token "w0-1"}, :time 0}',
        '{:index 1, :type :ok, :process 0, :workload :register, :f :cas, :value {:expected 1, :new 5, '
        ':token "w0-1", :upper 5}, :time 2}',
        "{:index 2, :type :invoke, :process 1, :workload :register, :f :read, :value nil, :time 3}",
        '{:index 3, :type :ok, :process 1, :workload :register, :f :read, :value {:upper 5, :token "w0-1"}, :time 4}',
        '{:index 4, :type :invoke, :process 2, :workload :register, :f :cas, :value {:expected 1, :new 9, '
        ':token "w2-1"}, :time 5}',
        '{:index 5, :type :fail, :process 2, :workload :register, :f :cas, :value {:expected 1, :new 9, '
        ':token "w2-1"}, :time 6, :error ["Conflict" ""]}',
        "{:index 6, :type :invoke, :process 3, :workload :register, :f :read, :value nil, :time 7}",
    ]  # fmt: skip


def test_transactions_as_elle_reads_them():
    lines = list(to_edn(events("0:txn(ax1,ry12,rz-)[0,1] 1:txn(ax2)[2,3]?")))
    values = [read(line)["value"] for line in lines]
    assert values == [
        [["append", "x", 1], ["r", "y", None], ["r", "z", None]],
        [["append", "x", 1], ["r", "y", [1, 2]], ["r", "z", []]],
        [["append", "x", 2]],
        [["append", "x", 2]],
    ]
    assert ':value [[:append "x" 1] [:r "y" [1 2]] [:r "z" []]]' in lines[1]
    assert ":type :info" in lines[3]


def test_one_workload_alone():
    both = events("0:create(t)[0,1] 1:write_ts(g)=5[2,3]")
    lines = list(to_edn(both, "oracle"))
    assert len(lines) == 2
    assert read(lines[1]) == {
        "index": 1, "type": "ok", "process": 1, "workload": "oracle", "f": "write_ts",
        "value": {"timeline": "g", "result": 5}, "time": 1,
    }  # fmt: skip


@pytest.mark.parametrize(
    "value",
    [
        None,
        True,
        False,
        0,
        -5,
        1.5,
        "",
        'a"b\\c\nd\té\U0001f600',
        [],
        [1, [2]],
        {},
        {"a b": {"c-d": [None]}, "": 1, "1": 2},
    ],
)
def test_values_come_back(value):
    assert read(text(value)) == value


def test_odd_values():
    assert text(2**63) == "9223372036854775808N"
    assert text(float("nan")) == "##NaN"
    assert text(Keyword("f-1")) == ":f-1" and text(Keyword("no keyword")) == '"no keyword"'
    with pytest.raises(TypeError):
        text(object())


def test_of_a_run(tmp_path, capsys):
    (tmp_path / "run.json").write_text("{}")
    (tmp_path / "faults.jsonl").write_text("")
    recorded = [Event(5, 0, INVOKE, "set", "names", None, "adapter-1"), Event(9, 0, OK, "set", "names", {"names": []}),
                Event(10, 1, INVOKE, "oracle", "read_ts", {"timeline": "g"}),
                Event(11, 1, INFO, "oracle", "read_ts", None, "", ("57014", "timed out"))]  # fmt: skip
    (tmp_path / "history.jsonl").write_text("".join(event.to_json() + "\n" for event in recorded))
    assert main([str(tmp_path), "set"]) == 0
    assert [read(line)["type"] for line in capsys.readouterr().out.splitlines()] == ["invoke", "ok"]
    assert main([str(tmp_path)]) == 0
    last = read(capsys.readouterr().out.splitlines()[-1])
    assert last["error"] == ["57014", "timed out"] and last["value"] == {"timeline": "g"}
    assert main([]) == 2


# -- a reader of as much EDN as we write


def read(written):
    value, rest = _value(written.strip())
    assert not rest.strip(), rest
    return value


def _value(left):
    left = left.lstrip(" ,")
    if left[0] in "[{":
        close, items = {"[": "]", "{": "}"}[left[0]], []
        rest = left[1:].lstrip(" ,")
        while rest[0] != close:
            item, rest = _value(rest)
            items.append(item)
            rest = rest.lstrip(" ,")
        return (items if close == "]" else dict(zip(items[::2], items[1::2], strict=True))), rest[1:]
    if left[0] == '"':
        item, end = json.JSONDecoder().raw_decode(left)
        return item, left[end:]
    end = next((at for at, char in enumerate(left) if char in " ,]}"), len(left))
    word, rest = left[:end], left[end:]
    if word[0] == ":":
        return word[1:], rest
    return {"nil": None, "true": True, "false": False}[word] if word.isalpha() else json.loads(word), rest
