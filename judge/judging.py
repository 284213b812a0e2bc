"""Judge a run's directory: every checker that concerns it, the figures, ``verdict.json`` and ``report.html``.

Promises: the verdict depends on the directory alone, so a run can be judged again, also by a later checker.  A workload
that was run and that nobody can judge makes the whole unknown, never valid; so does a run that broke off, unless
something is wrong in what it did record.  A record of a log that was seen and is gone makes it invalid.  Limits of
figures are told apart: a write that was late is no wrong answer, and no figure makes a wrong answer right.
"""

from __future__ import annotations

import json
import subprocess
import traceback
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from importlib import import_module, util
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from judge.history import Op, Run, load
from judge.measures.measured import Measures, measured
from judge.porcupine import run as porcupine
from judge.report import page
from judge.shrink import NothingToShrink, Shrunk, shrink
from judge.verdict import INVALID, UNDECIDED, Anomaly, Verdict, combined, judged, undecided
from judge.witness import CatalogRecord, read_catalog

if TYPE_CHECKING:
    from judge.replay import FewerFaults

T = TypeVar("T")

VERDICT, REPORT = "verdict.json", "report.html"


class Recorded:
    """A run's directory, read once, each log when it is first asked for."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.run: Run = load(path)
        self.ops: list[Op] = self.run.ops

    @property
    def about(self) -> dict[str, Any]:
        return self.run.about

    @cached_property
    def catalog(self) -> list[CatalogRecord]:
        return read_catalog(self.path / "log-catalog.jsonl")

    @cached_property
    def register_catalog(self) -> list[CatalogRecord]:
        return read_catalog(self.path / "log-register-catalog.jsonl")

    @cached_property
    def measures(self) -> Measures:
        logs = {
            name: read()
            for name, read in (("catalog", lambda: self.catalog), ("register-catalog", lambda: self.register_catalog))
            if (self.path / f"log-{name}.jsonl").exists()
        }
        return measured(self.ops, self.run.faults, logs)


def _module(name: str) -> Any:
    return import_module(f"judge.checkers.{name}")


Check = Callable[[Sequence[Op], Recorded], Verdict]
"""Judges operations (all of the run's, or fewer of them), with the run's logs as witnesses."""

ONE_HAS_ALL = {0: 1000}
"""What ``accounts`` begin with."""

CHECKERS: Mapping[str, Sequence[tuple[str, Check]]] = {
    "register": [
        ("register", lambda ops, run: _module("register").check(ops, run.register_catalog)),
        ("wgl", lambda ops, run: _module("wgl").check_register_windows(ops, run.register_catalog)),
    ],
    "set": [("catalog_set", lambda ops, run: _module("catalog_set").check(ops, run.catalog))],
    "oracle": [("oracle_laws", lambda ops, run: _module("oracle_laws").check(ops))],
    "append": [("list_append", lambda ops, run: _module("list_append").check(ops))],
    "bank": [("bank", lambda ops, run: _module("bank").check(ops))],
    "views": [("views", lambda ops, run: _module("views").check(ops))],
    "once": [("once", lambda ops, run: _module("once").check(ops))],
    "requests": [("requests", lambda ops, run: _module("requests").check(ops, run.catalog))],
    "anomalies": [("anomalies", lambda ops, run: _module("anomalies").check(ops))],
    "transactions": [("list_append", lambda ops, run: _module("list_append").check(ops, "transactions"))],
    "ranges": [("list_append", lambda ops, run: _module("list_append").check(ops, "ranges"))],
    "accounts": [("bank", lambda ops, run: _module("bank").check(ops, initial=ONE_HAS_ALL, workload="accounts"))],
    "counters": [("counters", lambda ops, run: _module("counters").check(ops))],
    "keys": [("keys", lambda ops, run: _module("keys").check(ops))],
    "upserts": [
        ("counters", lambda ops, run: _module("counters").check(ops, "upserts")),
        ("claims", lambda ops, run: _module("claims").check(ops)),
    ],
    "draws": [("draws", lambda ops, run: _module("draws").check(ops))],
    "envelopes": [("envelopes", lambda ops, run: _module("envelopes").check(ops))],
    "sinks": [("sinks", lambda ops, run: _module("sinks").check(ops, faults=run.run.faults))],
    "sources": [("sources", lambda ops, run: _module("sources").check(ops))],
    "idle": [("idle", lambda ops, run: _module("idle").check(ops))],
    "settled": [("settled", lambda ops, run: _module("settled").check(ops))],
    "poison": [("poison", lambda ops, run: _module("poison").check(ops, faults=run.run.faults))],
}
"""Who judges which workload: the checker's module, and how it is asked."""


def check_run(run: Recorded) -> Verdict:
    """Whether the run came to its end, and nobody was left without an answer for ever."""
    about, found = run.about, []
    error = about.get("error")
    if error and error["kind"] == "HealFailed":
        found.append(Anomaly("not-healed", error["text"]))
    if about.get("stuck"):
        found.append(Anomaly("no-answer", f"{about['stuck']} calls were never answered, not even with an error"))
    counts = {"ops": len(run.ops), "unread": len(about.get("unread", ()))}
    if found:
        return judged("run", found, **counts)
    if error:
        return undecided("run", f"it broke off: {error['kind']}: {error['text']}"[:2000], **counts)
    if about.get("late"):
        return undecided("run", f"too late to tell a starved machine from what hangs: {'; '.join(about['late'][:10])}",
                         **counts)  # fmt: skip
    if about.get("not_begun"):
        return undecided("run", f"faults that could not be begun: {'; '.join(about['not_begun'])}"[:2000], **counts)
    if about.get("unread"):
        return undecided("run", f"last reads that nobody answered: {', '.join(about['unread'][:10])}", **counts)
    return judged("run", (), **counts)


def check_laws(run: Recorded) -> Verdict:
    """What a simulation looked at on the way, where no client can look."""
    found = [Anomaly(each["law"], f"at {each['time'] / 1e9:.3f} s: {each['text']}") for each in run.about["violations"]]
    return judged("laws", found, ops=run.about["configuration"]["steps"])


def check_kept(run: Recorded) -> Verdict:
    """No record that a reader saw may be gone or another one later; only an oracle's log is ever cut."""
    path = run.path / "vanished.jsonl"
    logs = run.about.get("logs", {})
    if not path.exists() or not logs:
        return undecided("log-kept", "the logs were not read to their ends")
    vanished = [json.loads(line) for line in path.read_text().splitlines()]
    found = [
        Anomaly("lost-record", f"offset {each['offset']} of the log {each['log']} was seen and is {each['now']}",
                key=each["log"])
        for each in vanished
    ]  # fmt: skip
    return judged("log-kept", found, ops=sum(log["records"] for log in logs.values()), logs=sorted(logs))


def check_limits(run: Recorded) -> Verdict | None:
    """Whether the figures are within their limits; ``None`` where there are none to hold it to.

    Only three brokers promise figures: a single one that is killed is away for as long as it takes to start.
    """
    if run.about.get("layer") != 3:
        return None
    settle, gaps = run.measures.settlings, run.measures.gaps
    limits = [limit for limit in run.measures.limits if (settle if "settled" in limit.name else gaps)]
    if not limits:
        return None
    found = [
        Anomaly("over-limit", f"{limit.name}: {limit.value:g} s, at most {limit.limit:g} s")
        for limit in limits
        if limit.met == INVALID and limit.value is not None
    ]
    unclear = [f"{limit.name}: {limit.note}" for limit in limits if limit.met == UNDECIDED]
    if unclear and not found:
        return undecided("limits", "; ".join(unclear), ops=len(limits))
    return judged("limits", found, ops=len(limits))


def second_opinion(run: Recorded) -> Verdict | None:
    """Porcupine's, which others wrote; ``None`` where there is no Go to build it with."""
    try:
        built = porcupine.program()
        return porcupine.check(run.ops, run.register_catalog, kept=built.parent)
    except (porcupine.NotAvailable, subprocess.CalledProcessError, FileNotFoundError):
        return None
    except Exception:  # as in ``asked``
        return undecided(porcupine.NAME, f"it failed: {traceback.format_exc(limit=-3)}")


def asked(name: str, check: Check, run: Recorded) -> Verdict:
    """What a checker says.  One that is missing, or fails, says nothing, which is *unknown*."""
    if util.find_spec(f"judge.checkers.{name}") is None:
        return undecided(name, "there is no such checker here")
    try:
        return check(run.ops, run)
    except FileNotFoundError as error:
        return undecided(name, f"a log was not recorded: {Path(error.filename).name}")
    except Exception:  # a checker's bug must not hide what the others say
        return undecided(name, f"the checker failed: {traceback.format_exc(limit=-3)}")


@dataclass(frozen=True)
class Judgement:
    """What there is to say about a run."""

    run: Recorded
    verdicts: tuple[Verdict, ...]
    """Of what was answered and kept, one a checker."""
    limits: Verdict | None = None
    """Whether the figures are within their limits; ``None`` where none are promised."""
    smaller: tuple[Shrunk, ...] = ()
    """For each checker that found something, a smaller history that still shows it."""
    fewer: FewerFaults | None = None
    """Of a simulation that is invalid, the faults it cannot do without; ``None`` where its seed did not show it again,
    or the run was of real processes and cannot be asked again."""
    not_cut: tuple[str, ...] = ()
    """Why there is no smaller history, or no fewer faults, for something that was found."""

    @property
    def verdict(self) -> str:
        """Of the data alone."""
        return combined(self.verdicts)

    def to_json(self) -> dict[str, Any]:
        ops, kinds = self.run.ops, Counter(fault.kind for fault in self.run.run.faults)
        return {
            "verdict": self.verdict,
            "limits": None if self.limits is None else self.limits.to_json(),
            "operations": len(ops),
            "acknowledged": sum(op.ok for op in ops),
            "failed": sum(op.failed for op in ops),
            "unknown": sum(op.unknown for op in ops),
            "faults": len(self.run.run.faults),
            "fault_kinds": dict(sorted(kinds.items())),
            "checkers": [verdict.to_json() for verdict in self.verdicts],
            **({"needed_faults": self.fewer.to_json()} if self.fewer else {}),
            **({"not_cut": list(self.not_cut)} if self.not_cut else {}),
            "measures": self.run.measures.to_json(),
        }


SHRINK_CHECKS_MAX, SHRINK_CHECKED_MAX = 200, 2_000_000
"""A person waits for the verdict: some ten seconds for each checker that found something."""


def cut(what: str, make: Callable[[], T], not_cut: list[str]) -> T | None:
    """What ``make`` gives; ``None``, and why in ``not_cut``, where it fails: the verdict stands without it."""
    try:
        return make()
    except NothingToShrink as error:
        not_cut.append(f"{what}: {error}")
    except Exception:  # as in ``asked``
        not_cut.append(f"{what}: it failed: {traceback.format_exc(limit=-3)}")
    return None


def smallest(check: Check, run: Recorded) -> Shrunk:
    """A smaller history that fails as the whole does.  Raises :class:`NothingToShrink` where none is found."""
    return shrink(run.ops, lambda ops: check(ops, run), checks_max=SHRINK_CHECKS_MAX, checked_max=SHRINK_CHECKED_MAX)


def needed(run: Recorded, found: Sequence[Verdict]) -> FewerFaults:
    """The faults without which a simulated run does not fail as in ``found``: its seed is run again without some.
    Raises :class:`NothingToShrink` where the seed does not show it again (the code may have changed since the run)."""
    # Imported here: it brings the product's cores, which looking at a recorded run needs not.
    from judge.replay import fewer_faults

    return fewer_faults(run.about, {kind for verdict in found for kind in verdict.kinds})


def judge(path: Path) -> Judgement:
    """Ask every checker that concerns the run in ``path``.  Raises ``FileNotFoundError``, ``ValueError`` for what is no
    run's directory; writes nothing."""
    run = Recorded(path)
    verdicts = [check_laws(run)] if "violations" in run.about else [check_run(run), check_kept(run)]
    smaller: list[Shrunk] = []
    not_cut: list[str] = []
    present = {op.workload for op in run.ops}
    for workload in dict.fromkeys([*run.about.get("workloads", ()), *sorted(present)]):
        checkers = CHECKERS.get(workload)
        if checkers is None:
            verdicts.append(undecided(workload, "nobody knows how to judge this workload"))
            continue
        for name, check in checkers:
            verdicts.append(asked(name, check, run))
            if verdicts[-1].valid == INVALID:
                found = cut(name, partial(smallest, check, run), not_cut)
                smaller += [found] if found else []
    if "register" in present and (opinion := second_opinion(run)) is not None:
        verdicts.append(opinion)
    fewer, invalid = None, [verdict for verdict in verdicts if verdict.valid == INVALID]
    if "violations" in run.about and invalid:
        fewer = cut("the faults needed", lambda: needed(run, invalid), not_cut)
    return Judgement(run, tuple(verdicts), check_limits(run), tuple(smaller), fewer, tuple(not_cut))


def judge_and_write(path: Path) -> dict[str, Any]:
    """Judge a run; write ``verdict.json`` and ``report.html`` beside it.  What ``verdict.json`` says."""
    judgement = judge(path)
    fields = judgement.to_json()
    (path / VERDICT).write_text(json.dumps(fields, indent=1, default=str) + "\n")
    write_report(path, judgement)
    return fields


def write_report(path: Path, judgement: Judgement) -> None:
    """``report.html``, for a person; ``python -m judge.edn`` prints the history for Jepsen's readers."""
    run = judgement.run
    fields = json.loads(json.dumps(judgement.to_json(), default=str))
    page.write(path / REPORT, run.about, fields, run.ops, run.run.faults, run.measures, smaller=judgement.smaller,
               needed=judgement.fewer.needed if judgement.fewer else None)  # fmt: skip
