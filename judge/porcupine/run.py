"""Build ``main.go`` and let it judge.

Promises: ``check`` says valid, invalid or unknown as Porcupine does; where it cannot be built (no Go, its module not at
hand and not to be fetched) the verdict is unknown, with the reason.  The program is built once for each state of its
sources and kept beside the project's other tools.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
from collections.abc import Iterable, Sequence
from pathlib import Path

from judge.checkers.register import WINDOW_OPS
from judge.history import Op
from judge.porcupine.export import windows
from judge.verdict import INVALID, UNDECIDED, VALID, Anomaly, Verdict, judged, undecided
from judge.witness import CatalogRecord

NAME = "register-porcupine"

HERE = Path(__file__).parent
SOURCES = ("go.mod", "go.sum", "main.go")
KEPT = HERE.parents[1] / ".tidemark" / "judge"

FETCH_TIMEOUT_S = 60.0
"""For a module of 100 kB; a proxy that cannot be reached often does not say so."""

BUILD_TIMEOUT_S = 150.0
"""A first build compiles Go's own library too: 12 s, a minute on a busy machine."""

CHECK_TIMEOUT_S = 120.0
"""For all windows together: 200,000 operations took a tenth of it."""


class NotAvailable(RuntimeError):
    """Porcupine cannot be run here; the message says why."""


def program(kept: Path = KEPT) -> Path:
    """The built program.  Raises :class:`NotAvailable`; ``CalledProcessError`` if it does not compile."""
    go = shutil.which("go")
    if go is None:
        raise NotAvailable("Go is not installed")
    digest = hashlib.sha256(b"\0".join((HERE / name).read_bytes() for name in SOURCES)).hexdigest()[:16]
    built = kept / f"porcupine-{digest}"
    if built.exists():
        return built
    try:
        subprocess.run([go, "mod", "download"], cwd=HERE, check=True, capture_output=True, timeout=FETCH_TIMEOUT_S)
    except subprocess.TimeoutExpired as error:
        raise NotAvailable(f"Porcupine's module was not fetched within {FETCH_TIMEOUT_S:g} s") from error
    except subprocess.CalledProcessError as error:
        lines = error.stderr.decode(errors="replace").strip().splitlines()
        raise NotAvailable(
            f"Porcupine's module cannot be fetched: {lines[-1] if lines else 'no reason given'}"
        ) from error
    kept.mkdir(parents=True, exist_ok=True)
    # Under a name of its own first: two runs may build at once.
    fresh = kept / f"{built.name}.{os.getpid()}"
    try:
        subprocess.run([go, "build", "-mod=readonly", "-trimpath", "-o", str(fresh), "."], cwd=HERE, check=True,
                       capture_output=True, text=True, timeout=BUILD_TIMEOUT_S)  # fmt: skip
        fresh.replace(built)
    except subprocess.TimeoutExpired as error:
        raise NotAvailable(f"Porcupine was not built within {BUILD_TIMEOUT_S:g} s") from error
    finally:
        fresh.unlink(missing_ok=True)
    return built


def verdicts(lines: Iterable[str], timeout_s: float = CHECK_TIMEOUT_S, built: Path | None = None) -> list[str]:
    """What Porcupine says of each line of ``export``.  Raises :class:`NotAvailable`, ``RuntimeError`` if it fails."""
    text = "".join(f"{line}\n" for line in lines)
    # The program looks at the time itself, and says what it knows by then.
    command = [str(built or program()), f"-timeout={timeout_s}s"]
    done = subprocess.run(command, input=text, capture_output=True, text=True, timeout=timeout_s + 30)
    if done.returncode not in (0, 1, 2):
        raise RuntimeError(f"Porcupine's program failed: {done.stderr.strip()[:500]}")
    return [json.loads(line)["verdict"] for line in done.stdout.splitlines()]


def check(
    ops: Iterable[Op],
    records: Sequence[CatalogRecord],
    ops_max: int = WINDOW_OPS,
    timeout_s: float = CHECK_TIMEOUT_S,
    kept: Path = KEPT,
) -> Verdict:
    """Let Porcupine judge the ``register`` operations among ``ops``, window by window."""
    lines = list(windows(ops, records, ops_max))
    counts = {"ops": sum(len(json.loads(line)["ops"]) for line in lines), "windows": len(lines)}
    if not lines:
        return judged(NAME, (), **counts)
    try:
        said = verdicts(lines, timeout_s, program(kept))
    except NotAvailable as error:
        return undecided(NAME, str(error), **counts)
    counts |= {each: said.count(each) for each in (VALID, INVALID, UNDECIDED)}
    wrong = [number for number, each in enumerate(said) if each == INVALID]
    if not wrong and UNDECIDED in said:
        return undecided(NAME, f"{said.count(UNDECIDED)} of {len(said)} windows took too long", **counts)
    return judged(NAME, [Anomaly("not-linearizable", f"Porcupine finds no order for window {number} ({ops_max} "
                                 "operations)", ()) for number in wrong], **counts)  # fmt: skip
