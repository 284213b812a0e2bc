"""``compose.yaml`` says what the code can do: its options exist, its numbers agree, and nothing in it is left over."""

from __future__ import annotations

import argparse
import importlib
import re
import tomllib
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pytest
import yaml

from adapter.server.server import Limits
from catalog_log.bootstrap import fixed_topics
from controllers.commands import STORAGE, compute
from controllers.compute.session import MASTER
from controllers.spark_masters import check_store
from embedded.broker import FAST_FAILOVER, FOLLOWING
from fleet import broker, health
from fleet.member import Member
from journal.names import TopicNames
from journal.process import STOP_TIMEOUT_S
from segments.store import open_store

ROOT = Path(__file__).resolve().parents[2]
COMPOSE: dict[str, Any] = yaml.safe_load((ROOT / "compose.yaml").read_text())
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]
PARSERS = {
    "adapter": "adapter.__main__", "subscribers": "subscribers.__main__", "fleet.broker": "fleet.broker",
    "controllers.storage": "controllers.storage.__main__", "controllers.compute": "controllers.compute.__main__",
    "fleet.environment": "fleet.environment", "fleet.spark": "fleet.spark", "fleet.bucket": "fleet.bucket",
}  # fmt: skip
BYTES = {"k": 1 << 10, "m": 1 << 20, "g": 1 << 30}
MEMORY_MAX = {None: 8 << 30, "stand-by": 11 << 30, "spark": 12 << 30, "s3": 9 << 30}
"""Of the services that are there by themselves, and with those of a profile."""


def of(module: str) -> dict[str, argparse.Namespace]:
    """The services that run ``module``, each with the options it is given, as ``module`` itself understands them."""
    parser = importlib.import_module(PARSERS[module]).parser()
    return {name: parser.parse_args(service["command"][1:]) for name, service in SERVICES.items()
            if service.get("command", [None])[0] == module}  # fmt: skip


def members() -> dict[str, Member]:
    return {name: broker.member(options) for name, options in of("fleet.broker").items()}


def seconds(duration: str) -> float:
    return float(duration.removesuffix("s"))


OURS = sorted(name for name, service in SERVICES.items() if service["image"].startswith("tidemark:"))
ONCE = {*of("fleet.environment"), *of("fleet.bucket")}
"""What makes something and ends."""
SERVING = sorted(set(SERVICES) - ONCE)


def test_every_service_of_ours_runs_an_entry_with_options_that_it_has() -> None:
    found = [name for module in PARSERS for name in of(module)]  # a wrong option ends the parser, and this test
    assert sorted(found) == OURS
    assert {"adapter", "subscribers", "controllers.storage", "controllers.compute"} <= {
        SERVICES[name]["command"][0] for name in found
    }


def test_three_brokers_with_the_settings_of_fast_failover() -> None:
    brokers = members()
    assert len(brokers) == 3
    assert sorted(member.node for member in brokers.values()) == [1, 2, 3]
    assert (
        len({(member.hosts, member.cluster_id(), member.port, member.controller_port) for member in brokers.values()})
        == 1
    )
    assert len({str(SERVICES[name]["volumes"]) for name in brokers}) == 3, "a disk of its own for each"
    for name, member in brokers.items():
        assert member.host == name == SERVICES[name]["hostname"]
        properties = member.properties(Path("/data/log"))
        lines = properties.splitlines()
        for line in (FAST_FAILOVER + FOLLOWING).splitlines():
            assert line in lines
        keys = [line.partition("=")[0] for line in lines if line and not line.startswith("#")]
        assert len(keys) == len(set(keys)), "a setting given twice"
        for line in ("default.replication.factor=3", "min.insync.replicas=2", "offsets.topic.replication.factor=3",
                     "transaction.state.log.replication.factor=3", "transaction.state.log.min.isr=2"):  # fmt: skip
            assert line in lines
        assert f"advertised.listeners=PLAINTEXT://{name}:{member.port}" in lines


def test_our_topics_have_a_copy_on_each_broker_and_need_two() -> None:
    [options] = of("fleet.environment").values()
    assert options.replication_factor == len(members())
    for spec in fixed_topics(TopicNames(options.env), options.replication_factor):
        assert (spec.replication_factor, spec.config["min.insync.replicas"]) == (3, "2")


def test_everybody_knows_all_brokers_and_the_same_environment() -> None:
    bootstrap = ",".join(member.bootstrap for member in members().values())
    modules = set(PARSERS) - {"fleet.broker", "fleet.spark", "fleet.bucket"}
    told = [options for module in modules for options in of(module).values()]
    assert {(options.kafka, options.env) for options in told} == {(bootstrap, told[0].env)}


def test_each_controller_has_its_subscriber() -> None:
    clusters = {options.cluster for options in of("controllers.compute").values()}
    assert len(of("controllers.storage")) == 1
    told = sorted(options.controller for options in of("subscribers").values())
    assert told == sorted([STORAGE, *map(compute, clusters)])


@pytest.mark.parametrize("name", SERVING)
def test_a_service_is_asked_whether_it_serves_where_it_serves(name: str) -> None:
    check = SERVICES[name]["healthcheck"]
    assert (
        min(seconds(check["timeout"]), seconds(check["interval"]) if name in OURS else 60)
        > health.END_S
        > health.TIMEOUT_S
    )
    if name not in OURS:
        assert {"sql": "/dev/tcp/127.0.0.1/6875", "s3": "local"}[name] in check["test"][-1]
        return
    assert check["test"][:5] == ["CMD", "python", "-P", "-m", "fleet.health"]
    asked = health.parser().parse_args(check["test"][5:])
    module = SERVICES[name]["command"][0]
    options = of(module)[name]
    match module:
        case "fleet.broker":
            assert (asked.kind, asked.address) == ("broker", members()[name].bootstrap)
        case "adapter":
            assert (asked.kind, asked.address) == ("adapter", f"127.0.0.1:{options.port}")
        case "controllers.storage":
            assert (asked.kind, asked.address) == ("controller", f"127.0.0.1:{options.port}")
        case "controllers.compute":
            assert (asked.kind, asked.address) == ("controller", f"127.0.0.1:{options.flight_port}")
        case "fleet.spark":
            assert (asked.kind, asked.address) == ("spark", f"127.0.0.1:{options.web_port}")
        case "subscribers":
            assert asked.kind == "subscriber"
            assert (asked.kafka, asked.env, asked.controller) == (options.kafka, options.env, options.controller)
        case _:
            raise AssertionError(f"nobody checks {module}")


def test_what_others_must_reach_listens_everywhere_and_has_a_name() -> None:
    assert all(options.host == "0.0.0.0" for options in of("adapter").values())
    listening = {**of("adapter"), **of("controllers.storage"), **of("controllers.compute")}
    assert all(options.insecure for options in listening.values()), "they would not start"
    for name, options in of("controllers.storage").items():
        assert options.host == "0.0.0.0" and SERVICES[name]["hostname"] == name
    for name, options in of("controllers.compute").items():
        assert options.flight_host == "0.0.0.0" and SERVICES[name]["hostname"] == name


def test_they_start_in_order() -> None:
    [environment] = of("fleet.environment")
    waits = SERVICES[environment]["depends_on"]
    assert waits == {name: {"condition": "service_healthy"} for name in members()}
    assert SERVICES[environment]["restart"] == "no"
    for name in set(of("fleet.spark")):
        assert "depends_on" not in SERVICES[name], "a worker looks for its master for as long as it takes"
    [bucket] = of("fleet.bucket")
    done = {"condition": "service_completed_successfully"}
    stored = {environment: done, bucket: {**done, "required": False}}  # it may be somebody else's
    for name in set(OURS) - set(members()) - ONCE - set(of("fleet.spark")):
        has_files = name in {*of("controllers.storage"), *of("controllers.compute")}
        assert SERVICES[name]["depends_on"] == (stored if has_files else {environment: done})
    assert SERVICES[bucket]["depends_on"] == {"s3": {"condition": "service_healthy"}}
    assert SERVICES[bucket]["restart"] == "no"
    assert SERVICES["sql"]["depends_on"] == {"adapter": {"condition": "service_healthy"}}


def test_one_port_before_two_adapters() -> None:
    [(name, options)] = of("adapter").items()
    assert SERVICES[name]["deploy"]["replicas"] == 2
    lines = (ROOT / COMPOSE["configs"]["haproxy"]["file"]).read_text().splitlines()
    [template] = [line.split() for line in lines if line.split()[:1] == ["server-template"]]
    assert template[3] == f"{name}:{options.port}"
    assert [line.split()[1] for line in lines if line.split()[:1] == ["bind"]] == [":6875"]
    [connections] = [int(line.split()[1]) for line in lines if line.split()[:1] == ["maxconn"]]
    assert connections > SERVICES[name]["deploy"]["replicas"] * Limits.connections_max, "adapters refuse by SQLSTATE"
    published = [port for service in SERVICES.values() for port in service.get("ports", [])]
    assert published == ["127.0.0.1:${TIDEMARK_PORT:-6875}:6875"], "there is no password: this machine alone"


@pytest.mark.parametrize("name", OURS)
def test_a_stop_has_the_time_it_takes_and_an_end_is_followed_by_a_start(name: str) -> None:
    assert seconds(SERVICES[name]["stop_grace_period"]) > STOP_TIMEOUT_S
    if name in SERVING:
        assert SERVICES[name]["restart"] == "unless-stopped"


def test_volumes_are_the_ones_that_are_used() -> None:
    used = [volume.partition(":") for service in SERVICES.values() for volume in service.get("volumes", [])]
    assert sorted({source for source, _, place in used if place}) == sorted(COMPOSE["volumes"])
    nameless = {source for source, _, place in used if not place}  # one a container, with what the image has there
    for place in nameless:
        assert f" {place} " in (ROOT / "Dockerfile").read_text(), "made by the image, so that its user may write there"
    assert {str(options.data) for options in of("fleet.spark").values()} == nameless
    data = {name: str(options.data) for module in ("fleet.broker", "controllers.compute")
            for name, options in of(module).items()}  # fmt: skip
    for name, directory in data.items():
        assert SERVICES[name]["volumes"][0].partition(":")[2] == directory


def test_who_seals_rows_and_who_reads_them_have_one_store() -> None:
    told = {name: options.store for module in ("controllers.storage", "controllers.compute")
            for name, options in of(module).items()}  # fmt: skip
    assert set(told) == {"storage", "compute", "compute-2"} and len(set(told.values())) == 1
    directory = left_out(told["storage"]).removeprefix("file://")
    mounts = [[v for v in SERVICES[name]["volumes"] if v.endswith(f":{directory}")] for name in told]
    assert mounts == [mounts[0]] * len(told) and len(mounts[0]) == 1
    assert f" {directory}\n" in (ROOT / "Dockerfile").read_text(), "made by the image, so that its user may write there"


def left_out(told: str) -> str:
    """What ``${NAME:-this}`` is where nobody says NAME."""
    found = re.fullmatch(r"\$\{\w+:-(.*)\}", told)
    assert found, told
    return found[1]


def test_a_service_that_speaks_s3_is_the_store_where_it_is_told_so() -> None:
    [(bucket, options)] = of("fleet.bucket").items()
    url = urlsplit(left_out(options.store))
    asked = dict(parse_qsl(url.query))
    assert f'TIDEMARK_STORE="{left_out(options.store)}"' in (ROOT / "compose.yaml").read_text()
    service = SERVICES["s3"]
    assert service["profiles"] == SERVICES[bucket]["profiles"] == ["s3"]
    assert asked["endpoint_override"] == service["hostname"] + service["command"][-1]
    open_store(left_out(options.store), "tidemark")  # which asks nobody yet
    keys = {(SERVICES[name]["environment"]["AWS_ACCESS_KEY_ID"], SERVICES[name]["environment"]["AWS_SECRET_ACCESS_KEY"])
            for name in (bucket, *of("controllers.storage"), *of("controllers.compute"))}  # fmt: skip
    assert keys == {(service["environment"]["MINIO_ROOT_USER"], service["environment"]["MINIO_ROOT_PASSWORD"])}
    assert [volume.partition(":")[2] for volume in service["volumes"]] == [service["command"][1]]


@pytest.mark.parametrize("profile", MEMORY_MAX)
def test_it_fits_its_memory(profile: str | None) -> None:
    limits = {name: int(limit[:-1]) * BYTES[limit[-1]] for name, limit in
              ((name, service["mem_limit"]) for name, service in SERVICES.items())}  # fmt: skip
    there = [name for name, service in SERVICES.items() if profile in service.get("profiles", [profile])]
    replicas = {name: SERVICES[name].get("deploy", {}).get("replicas", 1) for name in there}
    assert sum(limits[name] * count for name, count in replicas.items()) <= MEMORY_MAX[profile]
    for name, member in members().items():
        assert int(member.heap.removesuffix("m")) * BYTES["m"] <= 0.6 * limits[name], "Java needs more than its heap"


def test_compute_has_executors_of_its_own_where_it_is_told_so() -> None:
    found = of("fleet.spark")
    assert all(SERVICES[name]["profiles"] == ["spark"] for name in found)
    [(master, there)] = [(name, options) for name, options in found.items() if options.kind == "master"]
    [(worker, those)] = [(name, options) for name, options in found.items() if options.kind == "worker"]
    assert SERVICES[master]["hostname"] == master and SERVICES[worker]["deploy"]["replicas"] == 2
    url = f"spark://{master}:{there.port}"
    assert those.master == url and f"TIDEMARK_SPARK_MASTER={url}" in (ROOT / "compose.yaml").read_text()
    compute = of("controllers.compute")["compute"]
    assert compute.spark_master == f"${{TIDEMARK_SPARK_MASTER:-{MASTER}}}"
    check_store(url, left_out(compute.store), compute.data)
    limit = SERVICES[worker]["mem_limit"]
    assert int(limit[:-1]) * BYTES[limit[-1]] >= (those.memory_mb + 512) * BYTES["m"], "its own JVM, and Python's"


def test_who_stands_by_is_as_who_serves_and_has_a_name_and_a_disk_of_its_own() -> None:
    serves, stands_by = (SERVICES[name] for name in ("compute", "compute-2"))
    own = ("profiles", "hostname", "volumes")
    assert {k: v for k, v in stands_by.items() if k not in own} == {k: v for k, v in serves.items() if k not in own}
    assert stands_by["profiles"] == ["stand-by"] and "profiles" not in serves
    assert set(serves["volumes"]) & set(stands_by["volumes"]) == {"store:/store"}


def test_versions_are_exact_and_nobody_is_root() -> None:
    dockerfile = (ROOT / "Dockerfile").read_text()
    [base] = re.findall(r"^FROM (\S+)$", dockerfile, re.MULTILINE)
    for image in {base, *(service["image"] for service in SERVICES.values())}:
        assert re.fullmatch(r"[a-z/]+:(\d+\.\d+\.\d+|RELEASE\.\d{4}-\d\d-\d\dT)[\w.-]*", image), image
    assert "--require-hashes -r requirements.lock" in dockerfile
    users = re.findall(r"^USER (\S+)$", dockerfile, re.MULTILINE)
    assert users and users[-1] not in ("root", "0")
    assert all(service["cap_drop"] == ["ALL"] for service in SERVICES.values())
    assert [name for name, service in SERVICES.items() if "build" in service] == ["environment"], (
        "one image, built once"
    )


def test_the_image_holds_every_package_that_is_run_and_nothing_that_a_checkout_made() -> None:
    lines = [line for line in (ROOT / ".dockerignore").read_text().splitlines() if line and not line.startswith("#")]
    assert lines[0] == "*"
    kept = {line[1:] for line in lines if line.startswith("!")}
    installed = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]["packages"]["find"]
    run = {name.partition(".")[0] for name in (*PARSERS, *installed["include"])}
    assert {name.removesuffix("*") for name in run} - {"demo"} <= kept
    assert all((ROOT / name).exists() for name in kept)
    copied = set(re.findall(r"^COPY (\w[\w.]*) ", (ROOT / "Dockerfile").read_text(), re.MULTILINE))
    assert copied <= kept
