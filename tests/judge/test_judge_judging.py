"""A run is judged from its directory: what lost an acknowledged record is found out, what broke off is unknown."""

from __future__ import annotations

import argparse
import html
import io
import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from rich.console import Console

from cli.__main__ import main
from journal.errors import InvalidUsage
from judge import command, judging
from judge.history import INFO, INVOKE, OK, Event, Fault
from judge.judging import judge, judge_and_write
from judge.live.nemesis import Pace
from judge.live.run import RunConfig, Status, chosen_faults, chosen_workloads, enough
from judge.measures.measured import P95_COUNT_MIN
from judge.partitions import partitions_of
from judge.simulated import record_simulation
from judge.verdict import INVALID, UNDECIDED, VALID
from judge.workloads.registry import LONG

WORKLOADS = ("register", "set", "once", "requests")


@pytest.fixture(scope="module")
def simulated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A recorded run of a healthy system, as one broker would have left it."""
    path = tmp_path_factory.mktemp("run") / "run"
    record_simulation(RunConfig(path, 1, 0.0, Pace(), operations=12_000, seed=3, workloads=WORKLOADS))
    about = json.loads((path / "run.json").read_text())
    del about["violations"]
    logs = {log.stem.removeprefix("log-"): len(log.read_text().splitlines()) for log in path.glob("log-*.jsonl")}
    about |= {"layer": 2, "logs": {name: {"records": count} for name, count in logs.items()}}
    (path / "run.json").write_text(json.dumps(about))
    (path / "vanished.jsonl").write_text("")
    return path


@pytest.fixture
def run(simulated: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(simulated, tmp_path / "run"))


def change_about(run: Path, **fields: Any) -> None:
    about = json.loads((run / "run.json").read_text())
    (run / "run.json").write_text(json.dumps(about | fields))


def lines(run: Path, name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (run / name).read_text().splitlines()]


def write_lines(run: Path, name: str, found: list[dict[str, Any]]) -> None:
    (run / name).write_text("".join(json.dumps(line) + "\n" for line in found))


def said(run: Path) -> dict[str, str]:
    return {verdict.checker: verdict.valid for verdict in judge(run).verdicts}


def test_a_healthy_run_is_valid_and_says_what_it_is_made_of(run: Path) -> None:
    fields = judge_and_write(run)
    assert fields["verdict"] == VALID, [c for c in fields["checkers"] if c["valid"] != VALID]
    assert json.loads(json.dumps(fields)) == json.loads((run / "verdict.json").read_text())
    assert fields["operations"] == fields["acknowledged"] + fields["failed"] + fields["unknown"] > 300
    assert fields["faults"] == sum(fields["fault_kinds"].values()) > 0
    assert {"run", "log-kept", "register", "register-wgl", "set", "once"} <= {c["checker"] for c in fields["checkers"]}


def drop_an_acknowledged_cas(run: Path) -> None:
    token = [
        event["value"]["token"] for event in lines(run, "history.jsonl")
        if event["workload"] == "register" and event["type"] == INVOKE and event["f"] == "cas"
    ]  # fmt: skip
    log = lines(run, "log-register-catalog.jsonl")
    in_log = [line for line in log if any(u[2] in token for u in line.get("updates", ()))]
    log.remove(in_log[len(in_log) // 2])
    write_lines(run, "log-register-catalog.jsonl", log)


def drop_an_acknowledged_table(run: Path) -> None:
    history = lines(run, "history.jsonl")
    created: dict[int, str] = {}
    kept: list[str] = []
    for event in history:
        if event["workload"] == "set" and event["f"] == "create":
            if event["type"] == INVOKE:
                created[event["process"]] = event["value"]["name"]
            elif event["type"] == OK:
                kept.append(created[event["process"]])
    for event in history:
        if event["workload"] == "set" and event["f"] in ("names", "image") and event["type"] == OK:
            event["value"]["names"] = [name for name in event["value"]["names"] if name != kept[-1]]
    write_lines(run, "history.jsonl", history)


def double_a_row(run: Path) -> None:
    history = lines(run, "history.jsonl")
    [last, *_] = [e for e in history if e["workload"] == "once" and e["f"] == "all" and e["type"] == OK]
    last["value"]["ids"][0][1] = 2
    write_lines(run, "history.jsonl", history)


def lose_what_was_seen(run: Path) -> None:
    (run / "vanished.jsonl").write_text('{"log": "catalog", "offset": 7, "seen_ns": 1, "now": "gone"}\n')


@pytest.mark.parametrize(
    "doctor,checker",
    [
        (drop_an_acknowledged_cas, "register"),
        (drop_an_acknowledged_table, "set"),
        (double_a_row, "once"),
        (lose_what_was_seen, "log-kept"),
        (lambda run: change_about(run, stuck=2), "run"),
        (lambda run: change_about(run, error={"kind": "HealFailed", "text": "storage did not serve again"}), "run"),
    ],
)
def test_a_doctored_run_is_invalid_and_exits_with_1(run: Path, doctor: Callable[[Path], None], checker: str) -> None:
    doctor(run)
    assert said(run)[checker] == INVALID
    assert main(["judge", str(run)]) == 1
    fields = json.loads((run / "verdict.json").read_text())
    assert fields["verdict"] == INVALID
    [verdict] = [each for each in fields["checkers"] if each["checker"] == checker]
    assert verdict["anomalies"][0]["text"]
    assert "<html" in (run / "report.html").read_text()


@pytest.mark.parametrize(
    "doctor",
    [
        lambda run: change_about(run, error={"kind": "ClientFailed", "text": "worker-0 ended with code 1"}),
        lambda run: change_about(run, unread=["once 0: all"]),
        lambda run: change_about(run, not_begun=["day all: the oracle did not answer"]),
        lambda run: change_about(run, late=["full-disk b2 healed after 240 s"]),
        lambda run: change_about(run, workloads=[*WORKLOADS, "chess"]),
        lambda run: change_about(run, logs={}),
        lambda run: (run / "log-register-catalog.jsonl").unlink(),
        lambda run: change_about(run, workloads=[*WORKLOADS, "bank"]),
    ],
)
def test_what_nobody_can_judge_is_unknown_and_exits_with_3(run: Path, doctor: Callable[[Path], None]) -> None:
    doctor(run)
    assert UNDECIDED in said(run).values()
    assert main(["judge", str(run)]) == 3


def test_a_checker_that_fails_says_nothing_and_hides_nobody(run: Path, monkeypatch) -> None:
    def broken(_ops: object, _run: object) -> None:
        raise ZeroDivisionError("a checker's bug")

    monkeypatch.setattr(judging, "CHECKERS", {**judging.CHECKERS, "set": [("catalog_set", broken)]})
    double_a_row(run)
    verdicts = {verdict.checker: verdict for verdict in judge(run).verdicts}
    assert verdicts["catalog_set"].valid == UNDECIDED and "ZeroDivisionError" in verdicts["catalog_set"].reason
    assert verdicts["once"].valid == INVALID


def test_what_could_not_be_cut_down_is_told_beside_the_verdict(
    run: Path, monkeypatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def broken(*_args: object, **_options: object) -> None:
        raise ZeroDivisionError("a bug of the shrinker's")

    monkeypatch.setattr(judging, "shrink", broken)
    double_a_row(run)
    assert main(["judge", str(run)]) == 1
    assert "not cut down: once" in capsys.readouterr().out
    [reason] = json.loads((run / "verdict.json").read_text())["not_cut"]
    assert "ZeroDivisionError" in reason and reason in html.unescape((run / "report.html").read_text())


def test_a_seed_that_shows_nothing_again_is_told(simulated: Path, run: Path) -> None:
    change_about(run, violations=[{"law": "I5", "text": "two folds differ", "time": 5 * 10**9}], layer=1)
    change_about(run, configuration={**json.loads((simulated / "run.json").read_text())["configuration"], "steps": 500})
    judgement = judge(run)
    assert judgement.fewer is None and any("seed 3" in reason for reason in judgement.not_cut)


def test_unknown_outcomes_alone_are_no_reason_to_doubt(run: Path) -> None:
    history = lines(run, "history.jsonl")
    time, process = history[-1]["time"] + 1, 10**6
    for event in (Event(time, process, INVOKE, "set", "create", {"name": "never"}),
                  Event(time + 1, process, INFO, "set", "create", None)):  # fmt: skip
        history.append(json.loads(event.to_json()))
    write_lines(run, "history.jsonl", history)
    assert judge(run).verdict == VALID


def lose_leaders(run: Path, gap_s: int, count: int) -> None:
    """Make it a run of three brokers in which the leader is lost ``count`` times, with a silence after the last."""
    change_about(run, layer=3)
    history = lines(run, "history.jsonl")
    # The run may end before an unknown outcome settles, which is a limit of its own.
    for unknown in [at for at, event in enumerate(history) if event["type"] == INFO]:
        begun = max(at for at in range(unknown) if history[at]["process"] == history[unknown]["process"])
        history[begun] = history[unknown] = None
    history = [event for event in history if event is not None]
    second = 10**9
    written = [event["time"] for event in history if event["f"] in ("cas", "create", "insert") and event["type"] == OK]
    middle = written[len(written) // 2]
    moved = [event | {"time": event["time"] + (gap_s * second if event["time"] > middle else 0)} for event in history]
    write_lines(run, "history.jsonl", moved)
    faults = [Fault(middle - n, middle + second, "kill", "broker-1", "leader of judge.catalog") for n in range(count)]
    (run / "faults.jsonl").write_text("".join(fault.to_json() + "\n" for fault in faults))


@pytest.mark.parametrize(
    ("gap_s", "count", "limits", "code", "words"),
    [
        (0, 20, VALID, 0, "valid, limits kept"),
        (4, 20, INVALID, 4, "valid, limits not kept"),
        (4, 8, UNDECIDED, 3, "valid, limits unknown"),
        (10, 8, INVALID, 4, "valid, limits not kept"),
    ],
)
def test_limits_of_three_brokers_are_told_apart_from_their_data(
    run: Path, capsys: pytest.CaptureFixture[str], gap_s: int, count: int, limits: str, code: int, words: str
) -> None:
    lose_leaders(run, gap_s, count)
    assert main(["judge", str(run)]) == code
    assert words in capsys.readouterr().out
    assert main(["judge", str(run), "--json"]) == code
    found = json.loads(capsys.readouterr().out)
    assert (found["verdict"], found["limits"], found["ok"]) == (VALID, limits, code == 0)
    assert found["runs"][0]["limits"]["valid"] == limits


def test_wrong_data_are_not_made_right_by_figures_nor_hidden_by_them(run: Path) -> None:
    lose_leaders(run, 10, 8)
    drop_an_acknowledged_cas(run)
    assert main(["judge", str(run)]) == 1
    fields = json.loads((run / "verdict.json").read_text())
    assert (fields["verdict"], fields["limits"]["valid"]) == (INVALID, INVALID)


def test_simulated_laws_count(simulated: Path, run: Path) -> None:
    change_about(run, violations=[{"law": "I5", "text": "two folds differ", "time": 5 * 10**9}], layer=1)
    change_about(run, configuration={"steps": 12_000})
    assert said(run)["laws"] == INVALID


# -- the command


def test_one_json_object_with_verdict_operations_and_faults(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["judge", str(run), "--json"]) == 0
    fields = json.loads(capsys.readouterr().out)
    assert fields["verdict"] == VALID and fields["operations"] > 300 and fields["faults"] > 0
    assert fields["runs"][0]["directory"] == str(run)


def test_layer_1_alone_is_recorded_and_judged(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "out"
    argv = ["judge", "--layer", "1", "--operations", "3000", "--seed", "4", "--workload", "oracle", "--out", str(out)]
    assert main(argv) == 0, capsys.readouterr().out
    assert (out / "verdict.json").exists() and json.loads((out / "run.json").read_text())["seed"] == 4


@pytest.mark.parametrize(
    "argv",
    [
        ["--minutes", "0"], ["--operations", "-1"], ["--layer", "4"], ["--layer", "1", "--workload", "chess"],
        ["--layer", "2", "--workload", "chess"], ["--layer", "1", "--bug", "none-such"], ["no-such-directory"],
        ["--layer", "1", "--fault", "kill"], ["--layer", "2", "--bug", "none-such", "--workload", "set"],
    ],
)  # fmt: skip
def test_what_is_asked_for_wrongly_is_2(argv: list[str], tmp_path: Path) -> None:
    out = tmp_path / "out"
    try:
        code = main(["judge", *argv, "--out", str(out)])
    except SystemExit as ended:
        code = ended.code
    assert code == 2
    assert not out.exists() or not list(out.glob("run.json"))


def options(*argv: str) -> list[RunConfig]:
    from cli.__main__ import make_parser

    parsed: argparse.Namespace = make_parser("judge").parse_args(["judge", *argv])
    return command.options(parsed)


def test_what_is_run_by_default_and_in_short() -> None:
    [full] = options()
    assert (full.layer, full.duration_s, full.operations, full.faults) == (3, 1800, 200_000, None)
    one, two = options("--quick", "--seed", "9")
    assert (one.layer, two.layer, one.seed, two.seed) == (1, 2, 9, 9) and one.out != two.out
    assert two.duration_s <= 120 and two.operations == 20_000 and two.few_clients
    [chosen] = options(
        "--layer", "2", "--minutes", "3", "--fault", "kill,pause", "--workload", "set", "--workload", "bank"
    )
    assert chosen.faults == ("kill", "pause") and chosen.workloads == ("set", "bank") and chosen.duration_s == 180
    assert options("--fault", "none")[0].faults == ()
    assert options("--seed", "9")[0].partitions == partitions_of(9)
    assert [each.partitions for each in options("--quick", "--partitions", "5")] == [5, 5]
    for wrong in ("0", "65"):
        with pytest.raises(InvalidUsage, match="--partitions takes 1 to 64"):
            options("--partitions", wrong)


def test_workloads_are_known_by_name(tmp_path: Path) -> None:
    with pytest.raises(InvalidUsage, match="chess"):
        chosen_workloads(RunConfig(tmp_path, 2, 1.0, Pace(), workloads=("set", "chess")))


def test_what_takes_minutes_is_run_for_half_an_hour_and_where_it_is_named(tmp_path: Path) -> None:
    config = RunConfig(tmp_path, 2, 1.0, Pace())
    assert set(LONG) < set(chosen_workloads(config)) and {"envelopes", "sinks", "sources", "idle", "poison"} < set(LONG)
    short = replace(config, few_clients=True)
    assert set(chosen_workloads(config)) - set(chosen_workloads(short)) == set(LONG)
    assert list(chosen_workloads(replace(short, workloads=("idle",)))) == ["idle"]
    cluster = SimpleNamespace(faults=[SimpleNamespace(name=name) for name in ("kill", "day", "poison")])

    def kinds(config: RunConfig) -> list[str]:
        return [kind.name for kind in chosen_faults(config, cluster)]

    assert kinds(config) == ["kill", "day", "poison"] and kinds(short) == ["kill"]
    assert kinds(replace(short, workloads=("idle",))) == ["kill", "day"]
    assert kinds(replace(short, faults=("day",))) == ["day"]


def test_half_an_hour_of_everything_goes_on_until_its_limits_can_be_told(tmp_path: Path) -> None:
    (config,) = options("--seed", "1")
    assert (config.operations, config.leader_losses, config.duration_s) == (200_000, P95_COUNT_MIN, 1800)
    for fewer in (["--quick"], ["--fault", "kill"], ["--minutes", "3"]):
        assert options(*fewer)[0].leader_losses == 0
    over = 1800.0 - config.settle_s
    losses = [Fault(0, 1, "kill", "broker-1", "the leader of all") for _ in range(20)]
    assert enough(config, over, 200_000, losses)
    assert not enough(config, over - 1, 200_000, losses)
    assert not enough(config, over, 199_999, losses) and not enough(config, over, 200_000, losses[1:])
    assert enough(config, 3600, 0, []), "a run that never gets there ends"


def test_a_run_goes_on_until_each_kind_of_process_was_hurt(tmp_path: Path) -> None:
    config = RunConfig(tmp_path, 2, 40.0, Pace(), hurt=("adapter", "compute"), settle_s=6.0, longer_max=4.0)
    adapter, compute = (Fault(0, 1, "pause", target) for target in ("adapter-2", "compute"))
    assert enough(config, 34.0, 0, [adapter, compute])
    assert not enough(config, 33.0, 0, [adapter, compute])
    assert not enough(config, 159.0, 0, [adapter, adapter])
    assert enough(config, 160.0, 0, []), "a run that never gets there ends"


def test_progress_says_rate_outcomes_fault_and_time_left() -> None:
    status = Status("running", left_s=75, fault="kill broker", faults=3, per_s=210.4, counts={"set": (100, 90, 6, 3)})
    line = command.describe(2, status)
    for words in ("99 operations", "210/s", "90 ok", "6 failed", "3 unknown", "3 faults, now kill broker", "1:15 left"):
        assert words in line
    out = Console(file=io.StringIO(), width=200)
    ticks = iter([0.0, 1.0, 20.0])
    display = command.Display(out, RunConfig(Path("x"), 2, 60, Pace()), lambda: next(ticks))
    for _ in range(3):
        display(status)
    display.close()
    assert out.file.getvalue().count("layer 2") == 2, "now and then, where a line cannot be written over"
