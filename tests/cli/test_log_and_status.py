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
from cli.log_command import moment
from embedded.layout import ROOT
from journal.errors import InvalidUsage
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


def test_log_of_a_time_is_what_was_there_and_what_became_of_it(
    catalog: CatalogLog, broker: str, env_name: str, capsys
) -> None:
    where = ("log", "--kafka", broker, "--env", env_name)
    made = catalog.upper() - 1
    catalog.compare_and_append(made + 1, made + 5, [records.remove(model.ITEMS, "u1")]).result(timeout=30)
    begun = catalog.since()
    code, found = run_json(capsys, *where, "--at", str(begun))
    assert code == 0 and found["catalog"]["catalog_ts"] == begun
    assert "+ schema public (s1)" in found["catalog"]["changes"]
    assert "+ table public.t (u1)" not in found["catalog"]["changes"]
    assert found["since"] == [
        {"catalog_ts": made, "changes": ["+ table public.t (u1)"]},
        {"catalog_ts": made + 4, "changes": ["- table public.t (u1)"]},
    ]
    code, found = run_json(capsys, *where, "--at", str(made + 1))
    assert "+ table public.t (u1)" in found["catalog"]["changes"] and [len(found["since"]), code] == [1, 0]
    assert main([*where, "--at", str(made)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) > 2 and lines[-1].endswith("- table public.t (u1)")
    assert main([*where, "--at", "yesterday"]) != 0 and main([*where, "--at", "1", "--last", "2"]) != 0


def test_a_time_is_a_timestamp_of_the_catalog() -> None:
    assert moment("1500", 2000, 9000) == 1500 and moment("2500", 2000, 9000) == 1999
    assert moment("9500", 2000, 9000) == 9500, "what is to come is refused by the catalog"
    assert moment("1970-01-01T00:00:01.5Z", 2000, 9000) == moment("1970-01-01 00:00:01.500", 2000, 9000) == 1500
    with pytest.raises(InvalidUsage):
        moment("soon", 2000, 9000)


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
