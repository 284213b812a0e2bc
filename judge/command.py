"""``tidemark judge``: run a layer, or several, show how it goes, judge what was recorded, and say so.

Each layer leaves a run's directory behind, whatever its verdict; naming that directory judges it again.
"""

from __future__ import annotations

import argparse
import secrets
import time
from collections.abc import Callable, Collection, Sequence
from datetime import datetime
from importlib import import_module, util
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.markup import escape

from cli.output import FAILED, OK, console, print_json
from collection.topic_keeper import PARTITIONS_MAX
from embedded.layout import STATE
from journal.errors import InvalidUsage
from judge.judging import REPORT, judge_and_write
from judge.live.cluster import OpenCluster
from judge.live.nemesis import QUICK, Pace
from judge.live.run import RunConfig, Status, chosen_workloads
from judge.live.run import run as record
from judge.measures.measured import P95_COUNT_MIN
from judge.partitions import partitions_of
from judge.verdict import INVALID, UNDECIDED, VALID

UNKNOWN, OVER_LIMIT = 3, 4
CODES = {VALID: OK, INVALID: FAILED, UNDECIDED: UNKNOWN}
LIMIT_CODES = {VALID: OK, INVALID: OVER_LIMIT, UNDECIDED: UNKNOWN}
LIMIT_WORDS = {VALID: "kept", INVALID: "not kept", UNDECIDED: "unknown"}


def exit_code(verdict: str, limits: str | None) -> int:
    """What was answered counts first: a limit that was missed is only said of data that are valid."""
    return CODES[verdict] or LIMIT_CODES[limits or VALID]


def worst(said: Collection[str | None]) -> str | None:
    """Of several runs': invalid if any is, else unknown if any is, else valid; ``None`` where nothing was promised."""
    return next((each for each in (INVALID, UNDECIDED, VALID) if each in said), None)

FULL_MINUTES, FULL_OPERATIONS = 30.0, 200_000
STACK_MINUTES = 10.0
"""Layer 2 where nothing else is asked for."""
QUICK_MINUTES, QUICK_OPERATIONS, QUICK_STEPS, STEPS = 1.5, 20_000, 200_000, 1_000_000

FULL = Pace(first_s=10.0, quiet_s=(2.0, 5.0), last_s=15.0)
"""A fault, its healing and the quiet after it take some 13 s on three brokers (25 s on a machine that is busy
otherwise): more than a hundred in half an hour."""

LINE_EVERY_S = 10.0
"""Between two lines of progress where nobody's terminal can be written over."""
ANOMALIES_SHOWN = 5
FAULTS_SHOWN = 5


def options(arguments: argparse.Namespace) -> list[RunConfig]:
    """The runs that are asked for.  Raises ``InvalidUsage``."""
    given = arguments.minutes, arguments.operations
    if arguments.partitions is not None and not 1 <= arguments.partitions <= PARTITIONS_MAX:
        raise InvalidUsage(f"--partitions takes 1 to {PARTITIONS_MAX}")
    if any(number is not None and number <= 0 for number in given):
        raise InvalidUsage("a run needs time and operations", hint="--minutes and --operations take more than 0")
    if arguments.stand_by and arguments.layer == 1:
        raise InvalidUsage("nobody stands by in a simulation", hint="--layer 2 or 3")
    seed = secrets.randbits(32) if arguments.seed is None else arguments.seed
    layers = (arguments.layer,) if arguments.layer else (1, 2) if arguments.quick else (3,)
    out = arguments.out or STATE / "judge" / datetime.now().strftime("%Y-%m-%d-%H%M%S")
    faults = _words(arguments.fault)
    return [
        _option(arguments, layer, out if len(layers) == 1 else out / f"layer-{layer}", seed, faults) for layer in layers
    ]


def _words(given: Sequence[str]) -> tuple[str, ...]:
    return tuple(word for words in given for word in words.split(",") if word)


def _option(
    arguments: argparse.Namespace, layer: int, out: Path, seed: int, faults: tuple[str, ...]
) -> RunConfig:  # fmt: skip
    quick = arguments.quick
    minutes = arguments.minutes or (QUICK_MINUTES if quick else FULL_MINUTES if layer == 3 else STACK_MINUTES)
    operations = arguments.operations
    if operations is None and layer == 1:
        operations = QUICK_STEPS if quick else STEPS
    elif operations is None and arguments.minutes is None:
        operations = QUICK_OPERATIONS if quick else FULL_OPERATIONS if layer == 3 else 0
    everything = layer == 3 and not quick and not (faults or arguments.minutes or arguments.operations)
    return RunConfig(
        out, layer, minutes * 60, QUICK if quick else FULL, operations or 0, seed, _words(arguments.workload),
        () if faults == ("none",) else faults or None, arguments.bug, few_clients=quick,
        rate=QUICK_RATE if quick else 1.0, settle_s=8.0 if quick else 12.0,
        leader_losses=P95_COUNT_MIN if everything else 0, partitions=arguments.partitions or partitions_of(seed),
        stand_by=arguments.stand_by,
    )  # fmt: skip


QUICK_RATE = 1.5
"""A short run is to do much in little time; the workloads' own rates are what a long run bears."""


def opener(layer: int) -> OpenCluster:
    """What starts the system under test of a layer.  Raises ``InvalidUsage`` where this checkout has none."""
    if layer == 2:
        from judge.live.stack import one_broker

        return one_broker
    if util.find_spec("judge.live.three_brokers") is None:
        raise InvalidUsage("layer 3 is not here", hint="use --layer 2")
    return import_module("judge.live.three_brokers").three_brokers


class Display:
    """One line that is written over on a terminal; a line now and then elsewhere."""

    def __init__(self, out: Console, config: RunConfig, clock: Callable[[], float] = time.monotonic) -> None:
        self._out = out
        self._config = config
        self._clock = clock
        self._live = out.status(f"layer {config.layer}: starting") if out.is_terminal else None
        self._last = (0.0, "")
        if self._live:
            self._live.start()

    def __call__(self, status: Status) -> None:
        line = escape(describe(self._config.layer, status))
        if self._live:
            self._live.update(line)
            return
        now = self._clock()
        if status.phase != self._last[1] or now - self._last[0] >= LINE_EVERY_S:
            self._last = (now, status.phase)
            self._out.print(line)

    def close(self) -> None:
        if self._live:
            self._live.stop()
            self._live = None


def describe(layer: int, status: Status) -> str:
    """How far a run is, in one line."""
    words = [f"layer {layer}: {status.phase}"]
    if status.phase in ("starting", "setting up") and status.note:
        words.append(status.note)
    if status.counts:
        ok, failed, unknown = status.total
        words.append(f"{status.completed:,} operations, {status.per_s:.0f}/s: {ok:,} ok, {failed:,} failed, "
                     f"{unknown:,} unknown")  # fmt: skip
        words.append(f"{status.faults} faults" + (f", now {status.fault}" if status.fault else ""))
    if status.phase == "running":
        left = round(status.left_s)
        words.append(f"{left // 60}:{left % 60:02d} left" if left else "until there is enough to judge")
    return " · ".join(words)


def simulate(config: RunConfig, out: Console) -> None:
    """Layer 1: a simulated run, recorded as a real one is."""
    # Imported here: it brings the product's cores, which looking at a recorded run needs not.
    from judge.simulated import record_simulation

    shown = 0

    def progress(steps: int) -> None:
        nonlocal shown
        tenth = 10 * steps // config.operations
        if tenth > shown:
            shown = tenth
            out.print(f"layer 1: {steps:,} of {config.operations:,} steps")

    record_simulation(config, progress)


def run_one(config: RunConfig, out: Console) -> dict[str, Any]:
    """Run one layer and judge it: what its ``verdict.json`` says, and where it is."""
    out.print(f"layer {config.layer}, seed {config.seed}" + (f", planted: {config.bug}" if config.bug else ""))
    if config.layer == 1:
        simulate(config, out)
    else:
        display = Display(out, config)
        try:
            record(config, opener(config.layer), display)
        finally:
            display.close()
    return judge_one(config.out, out)


def judge_one(path: Path, out: Console) -> dict[str, Any]:
    try:
        fields = judge_and_write(path)
    except (FileNotFoundError, ValueError) as error:
        raise InvalidUsage(f"{path} is no recorded run: {error}") from error
    show(fields, path, out)
    return {**fields, "directory": str(path)}


JSON_FIELDS = ("verdict", "limits", "operations", "acknowledged", "failed", "unknown", "faults", "fault_kinds",
               "checkers", "needed_faults", "not_cut")  # fmt: skip
"""Of ``verdict.json``, what ``--json`` prints for each run: all but the figures (the last two where there are any)."""

COLOURS = {VALID: "green", INVALID: "red", UNDECIDED: "yellow"}


def show(fields: dict[str, Any], path: Path, out: Console) -> None:
    """The verdict for people."""
    kinds = ", ".join(f"{count} {kind}" for kind, count in fields["fault_kinds"].items())
    out.print(f"  {fields['operations']:,} operations: {fields['acknowledged']:,} acknowledged, "
              f"{fields['failed']:,} failed, {fields['unknown']:,} unknown; {fields['faults']} faults"
              + (f" ({kinds})" if kinds else ""))  # fmt: skip
    for each in (*fields["checkers"], *([fields["limits"]] if fields["limits"] else ())):
        reason = f" [dim]{escape(each['reason'].splitlines()[0][:200])}[/]" if each["reason"] else ""
        out.print(f"  [{COLOURS[each['valid']]}]{each['valid']:8}[/] {each['checker']}{reason}")
        for anomaly in each["anomalies"][:ANOMALIES_SHOWN]:
            out.print(f"           {anomaly['kind']}: {anomaly['text']}", markup=False)
        more = each["counts"].get("anomalies", 0) - ANOMALIES_SHOWN
        if more > 0:
            out.print(f"           and {more} more")
    if "needed_faults" in fields:
        out.print(f"  {needed_words(fields['needed_faults'])}", markup=False)
    for reason in fields.get("not_cut", ()):
        out.print(f"  not cut down: {reason.splitlines()[0][:200]}", markup=False)
    out.print(f"{verdict_words(fields)}: {path}/{REPORT}", soft_wrap=True)


def verdict_words(fields: dict[str, Any]) -> str:
    """The verdict on the data, and apart from it what became of the limits, where there are any."""
    words = f"[{COLOURS[fields['verdict']]}]{fields['verdict']}[/]"
    if (limits := fields["limits"]) is not None:
        words += f", limits [{COLOURS[limits['valid']]}]{LIMIT_WORDS[limits['valid']]}[/]"
    return words


def needed_words(needed: dict[str, Any]) -> str:
    """What is left of a simulated run's faults, in one line."""
    faults = ", ".join(f"{fault['kind']} {fault['target']}" for fault in needed["faults"][:FAULTS_SHOWN])
    more = len(needed["faults"]) - FAULTS_SHOWN
    many = f"with {len(needed['faults'])} of {needed['before']} faults" if faults else "with no fault at all"
    return (f"seed {needed['seed']} still fails after {needed['steps']:,} steps {many}"
            + (f": {faults}" + (f" and {more} more" if more > 0 else "") if faults else ""))  # fmt: skip


def sit_exam(arguments: argparse.Namespace, out: Console) -> int:
    """The internal-consistency exam (:mod:`judge.exam`), which records nothing."""
    others = ("rundir", "quick", "layer", "minutes", "operations", "workload", "partitions", "stand_by", "bug", "out")
    if given := [name for name in others if getattr(arguments, name)]:
        raise InvalidUsage(f"--exam takes no {given[0]}", hint="it takes --seed and --fault none")
    if arguments.exam < 1 or _words(arguments.fault) not in ((), ("none",)):
        raise InvalidUsage("the exam needs a transfer at least, and has one kind of faults", hint="--fault none")
    from judge.exam.command import run as sit

    seed = secrets.randbits(32) if arguments.seed is None else arguments.seed
    told = sit(arguments.exam, seed, not arguments.fault, out)
    if arguments.json:
        print_json(told)
    return OK if told["ok"] else FAILED


def run(arguments: argparse.Namespace) -> int:
    """Exit codes as ``cli/judge_command.py`` tells them."""
    out = console(arguments.json)
    if arguments.exam is not None:
        return sit_exam(arguments, out)
    if arguments.rundir is not None:
        results = [judge_one(arguments.rundir, out)]
    else:
        configs = options(arguments)
        for config in configs:
            if config.layer > 1:
                chosen_workloads(config)
        results = [run_one(config, out) for config in configs]
    verdict = worst({result["verdict"] for result in results}) or UNDECIDED
    limits = worst({result["limits"]["valid"] for result in results if result["limits"]})
    if arguments.json:
        print_json({
            "command": "judge", "verdict": verdict, "limits": limits, "ok": exit_code(verdict, limits) == OK,
            "operations": sum(result["operations"] for result in results),
            "faults": sum(result["faults"] for result in results),
            "runs": [
                {name: result[name] for name in ("directory", *JSON_FIELDS) if name in result} for result in results
            ],
        })  # fmt: skip
    return exit_code(verdict, limits)
