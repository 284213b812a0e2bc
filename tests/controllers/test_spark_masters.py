"""Where a cluster's executors are, and what they must reach."""

from __future__ import annotations

from pathlib import Path

import pytest

from controllers.compute.__main__ import main as compute
from controllers.spark_masters import check_store, in_this_process, on_this_machine
from journal.errors import InvalidUsage

ELSEWHERE = ("spark://master:7077", "k8s://https://cluster:443", "yarn")


def test_where_executors_are():
    assert in_this_process("local") and in_this_process("local[16]")
    assert not in_this_process("local-cluster[2,1,1024]") and on_this_machine("local-cluster[2,1,1024]")
    assert not any(on_this_machine(master) for master in ELSEWHERE)


@pytest.mark.parametrize("master", ELSEWHERE)
def test_a_cluster_elsewhere_needs_a_store_that_is_elsewhere(master, tmp_path):
    data = tmp_path / "data"
    for store in (None, str(data / "store"), (data / "store").as_uri(), f"{data}/../data/store"):
        with pytest.raises(InvalidUsage, match=f"a cluster on {master} needs a store that all of its machines reach"):
            check_store(master, store, data)
    for store in ("s3://bucket/prefix?region=r", "file:///store", str(tmp_path / "data-of-all")):
        check_store(master, store, data)


@pytest.mark.parametrize("master", [None, "local[16]", "local-cluster[2,1,1024]"])
def test_one_on_this_machine_needs_none(master, tmp_path):
    check_store(master, None, tmp_path)
    check_store(master, str(tmp_path / "store"), tmp_path)


@pytest.mark.parametrize("store", [[], ["--store", "here"]])
def test_a_controller_is_not_started_so(store, tmp_path, monkeypatch, capsys):
    told = [str(tmp_path / "data" / "store") if word == "here" else word for word in store]
    monkeypatch.setattr("sys.argv", [
        "compute", "--kafka", "127.0.0.1:1", "--data", str(tmp_path / "data"), "--spark-master", ELSEWHERE[0], *told,
    ])  # fmt: skip
    assert compute() == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1 and "needs a store that all of its machines reach" in said and "--store s3://" in said
    assert not Path(tmp_path / "data").exists()
