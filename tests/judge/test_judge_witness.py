"""Raw records become lines, lines become records, and I1 applied to them agrees with the product's own fold."""

import json
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from catalog_log import model, records
from catalog_log.bootstrap import initial_updates
from catalog_log.fold import VerdictKind, admit
from catalog_log.image import EMPTY
from catalog_log.model import Genesis, Request, Setting, Update
from catalog_log.records import FORMAT_VERSION, Proposal, encode_proposal
from collection.binding import Binding, Run
from journal.api import Entry
from judge.notation import log
from judge.witness import (
    admitted,
    catalog_lines,
    catalog_record,
    gaps,
    oracle_lines,
    oracle_record,
    read_catalog,
    read_oracle,
)
from oracle.model import CommitPart, Kind, Record, Stamp, Token
from oracle.records import encode_record
from tests.oracle.oracle_logs import one_key

GENESIS = Proposal("g", "boot", 0, 10, tuple(initial_updates()), Genesis(FORMAT_VERSION, "e", "t"))


def entries(*proposals):
    return [Entry(n, p if isinstance(p, bytes) else encode_proposal(p)) for n, p in enumerate(proposals)]


def test_a_proposal_as_a_line():
    updates = (
        records.put(model.SETTINGS, "w3", Setting("w3-17")),
        records.put(model.REQUESTS, "r1", Request(11, "ok", "CREATE TABLE")),
        records.remove(model.DATABASES, "d1"),
    )
    genesis, line, garbage = catalog_lines(entries(GENESIS, Proposal("p", "w", 10, 12, updates), b"no"), seen=99)
    assert json.loads(json.dumps(line)) == {
        "offset": 1,
        "seen": 99,
        "kind": "proposal",
        "proposal_id": "p",
        "writer": "w",
        "expected_upper": 10,
        "new_upper": 12,
        "format_version": FORMAT_VERSION,
        "updates": [
            ["settings", "w3", "w3-17"],
            ["requests", "r1", '{"catalog_ts":11,"status":"ok","message":"CREATE TABLE"}'],
            ["databases", "d1", None],
        ],
        "request_ids": ["r1"],
    }
    assert (genesis["kind"], genesis["genesis"]["environment_id"]) == ("genesis", "e")
    assert (garbage["kind"], garbage["bytes"], garbage["hex"]) == ("garbage", 2, "6e6f")
    read = catalog_record(line)
    assert read.request_ids == ["r1"]
    assert list(read.puts(model.SETTINGS)) == [("w3", "w3-17")]


def test_an_oracle_record_as_a_line():
    part = CommitPart(
        "p", (Binding("u1", Run("t", 0, 5, 9, "a", 4), True),), 7, 3, 6, (one_key("u1", b"k"),), (one_key("u1", b"l"),)
    )
    token = Token("w", 1, 5)
    sent = [
        Record(token, 3, Kind.COMMIT, (part,)),
        Record(token, 3, Kind.APPLY_WRITE, stamps=(Stamp("g", 8),)),
        Record(token, 4, Kind.COMPACT, ts=6),
    ]
    lines = list(
        oracle_lines(
            [Entry(n, encode_record(record)) for n, record in enumerate(sent)] + [Entry(3, b"")],
            seen=lambda entry: entry.offset * 10,
        )
    )
    lines = json.loads(json.dumps(lines))
    assert [line["kind"] for line in lines] == ["commit", "apply_write", "compact", "garbage"]
    assert [line["seen"] for line in lines] == [0, 10, 20, 30]
    commit, apply_write, compact, garbage = [oracle_record(line) for line in lines]
    assert commit.parts[0]["bindings"] == [["u1", "t", 0, 5, 9, "a", 4]]
    assert commit.parts[0]["reads"] == [["u1", "6b", "6b00"]]
    assert (apply_write.stamps, apply_write.writer, apply_write.seq) == ((("g", 8),), "w", 5)
    assert (compact.ts, compact.catalog_upper) == (6, 4)
    assert garbage.flaw


def test_files(tmp_path):
    path = tmp_path / "log.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in catalog_lines(entries(GENESIS, b"no"))))
    assert [record.kind for record in read_catalog(path)] == ["genesis", "garbage"]
    path.write_text("".join(json.dumps(line) + "\n" for line in oracle_lines([Entry(0, b"no")])))
    assert [record.kind for record in read_oracle(path)] == ["garbage"]


@pytest.mark.parametrize(
    "text, offsets",
    [
        ("0>1:genesis 1>5:w0-1 5>7:w1-1", [0, 1, 2]),
        ("0>1:genesis 1>5:w0-1 1>7:w1-1 5>6:w1-2", [0, 1, 3]),
        ("0>1:genesis 1>5:w0-1 1>5:w0-1", [0, 1]),
        ("0>1:genesis x 1>1:w0-1 1>0:w0-1 1>2:w0-1", [0, 4]),
        ("0>1:w0-1 0>1:genesis 0>5:genesis 1>6:genesis", [1]),
        ("0>1:genesis 1>2:+t,-t,-t 1>3:-t 1>4:+t 4>5:-t 5>6:-t", [0, 3, 4]),
        ("0>1:genesis 1>90000000000000:w0-1 1>2:w1-1", [0, 2]),
    ],
)
def test_admitted(text, offsets):
    assert [record.offset for record in admitted(log(text))] == offsets


def test_gaps():
    records = log("0>1:genesis x x x")
    assert not gaps(records)
    assert len(gaps(records[1:])) == 1 and not gaps(records[1:], None)
    assert len(gaps([records[0], records[2], records[2]])) == 2


@settings(max_examples=100, deadline=None)
@given(st.integers(0, 2**32))
def test_i1_agrees_with_the_fold(seed):
    """Two makers of one rule: hostile, stale, doubled, malformed and good proposals get the same verdicts."""
    rng = random.Random(seed)
    sent, upper, keys = [], 0, ["a", "b"]
    for n in range(30):
        updates = []
        for _ in range(rng.randrange(3)):
            key, collection = rng.choice(keys), rng.choice([model.SETTINGS, model.SETTINGS, "odd"])
            kind = rng.randrange(8)
            if kind < 4:
                updates.append(Update(collection, key, records.encode_value(model.SETTINGS, Setting(f"{n}")), +1))
            elif kind < 6:
                updates.append(Update(collection, key, None, -1))
            else:
                updates.append(Update(collection, key, rng.choice([None, b"x", b"T\x07"]), rng.choice([1, -1, 2])))
        expected = upper if rng.random() < 0.7 else rng.randrange(upper + 2)
        new = expected + rng.choice([0, 1, 1, 2, 3, 5, -1, 10**15])
        genesis = Genesis(FORMAT_VERSION, "e", "t") if rng.random() < (0.5 if upper == 0 else 0.05) else None
        proposal = Proposal(
            rng.choice(["p", "p", "p", ""]), "w", expected, new, tuple(updates), genesis,
            rng.choice([FORMAT_VERSION] * 9 + [1])
        )
        value = encode_proposal(proposal)
        sent.append(rng.choice([value] * 5 + [b"", b"T\x02" + value[2:], value[:-1]]))
        if rng.random() < 0.1:
            sent.append(rng.choice(sent))
        image = EMPTY
        for entry in (raw := [Entry(at, value) for at, value in enumerate(sent)]):
            image, _ = admit(image, entry)
        upper = image.upper
    image, said = EMPTY, []
    for entry in raw:
        image, verdict = admit(image, entry)
        if verdict.kind is VerdictKind.ACCEPTED:
            said.append(entry.offset)
    assert [record.offset for record in admitted(map(catalog_record, catalog_lines(raw)))] == said
