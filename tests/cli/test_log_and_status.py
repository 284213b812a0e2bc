"""``log`` and ``status`` on a real catalog: accepted, stale and malformed records are told apart and named."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
from confluent_kafka import Producer

from catalog_log import model, records
from catalog_log.bootstrap import create_environment
from catalog_log.log import CatalogLog
from catalog_log.objects import Column, Table
from catalog_log.records import Proposal, encode_proposal
from cli.__main__ import main
from embedded.layout import ROOT
from journal.names import TopicNames

pytestmark = pytest.mark.integration


@pytest.fixture
def catalog(broker: str, env_name: str):
    """A catalog with one table, one stale proposal and one record that is none."""
    names = TopicNames(env_name)
    create_environment(broker, names)
    log = CatalogLog.open(broker, names, "tester")
    stale = Proposal("p-stale", "slow", log.upper(), log.upper() + 1, ())
    item = Table("u1", "s1", "t", "CREATE TABLE t (a int4)", (Column("a", "int4"),))
    upper = log.upper()
    log.compare_and_append(upper, upper + 10, [records.put(model.ITEMS, "u1", item)]).result(timeout=30)
    producer = Producer({"bootstrap.servers": broker, "acks": "all"})
    producer.produce(names.catalog, encode_proposal(stale))
    producer.produce(names.catalog, b"\x00garbage")
    assert producer.flush(30) == 0
    yield log
    log.close()


def run_json(capsys: pytest.CaptureFixture[str], *argv: str) -> tuple[int, dict]:
    code = main([*argv, "--json"])
    return code, json.loads(capsys.readouterr().out)


def test_log_tells_what_the_fold_says(catalog: CatalogLog, broker: str, env_name: str, capsys) -> None:
    code, found = run_json(capsys, "log", "--kafka", broker, "--env", env_name)
    assert code == 0
    assert [record["verdict"] for record in found["records"]] == ["accepted", "accepted", "stale", "malformed"]
    genesis, created, stale, malformed = found["records"]
    assert "+ schema public (s1)" in genesis["changes"]
    assert created["changes"] == ["+ table public.t (u1)"] and created["writer"] == "tester"
    assert created["catalog_ts"] == catalog.upper() - 1
    assert "expected upper" in stale["reason"] and malformed["reason"]
    assert found["stats"] == {"accepted": 2, "stale": 1, "malformed": 1}


def test_log_for_people(catalog: CatalogLog, broker: str, env_name: str, capsys) -> None:
    assert main(["log", "--kafka", broker, "--env", env_name, "--last", "3"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 3
    assert "+ table public.t (u1)" in lines[0] and "accepted" in lines[0]
    assert main(["log", "--kafka", broker, "--env", env_name, "--verdict", "stale"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 1


def test_log_follows_until_it_is_interrupted(catalog: CatalogLog, broker: str, env_name: str) -> None:
    command = [sys.executable, "-m", "cli", "log", "--follow", "--kafka", broker, "--env", env_name]
    follower = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
    try:
        assert [follower.stdout.readline().split()[1] for _ in range(4)][-1] == "malformed"
        upper = catalog.upper()
        catalog.compare_and_append(upper, upper + 1, [records.remove(model.ITEMS, "u1")]).result(timeout=30)
        assert "- table public.t (u1)" in follower.stdout.readline()
    finally:
        follower.terminate()
    assert follower.wait(timeout=20) == 0


def test_status_without_controllers_is_unhealthy_and_says_so(catalog: CatalogLog, broker, env_name, capsys) -> None:
    code, found = run_json(capsys, "status", "--kafka", broker, "--env", env_name)
    assert code == 1 and found["healthy"] is False
    assert found["controllers"] == {}
    assert [(item["name"], item["kind"]) for item in found["objects"]] == [("public.t", "table")]
    assert found["catalog"]["malformed"] == 1


def test_an_environment_that_is_not_there_is_one_line(broker: str, env_name: str, capsys) -> None:
    for command in ("log", "status"):
        assert main([command, "--kafka", broker, "--env", env_name]) == 1
        assert capsys.readouterr().err.startswith("tidemark: ")
