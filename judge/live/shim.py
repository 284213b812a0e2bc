"""Libraries to preload that make a process's clock or disk misbehave: compiled when first wanted.

``shims/clock.c`` and ``shims/fsync.c`` say what they do.  Both are told by files that are read at each call, so a
running process can be hurt and healed.
"""

from __future__ import annotations

import functools
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from journal.errors import Unavailable

SOURCES = Path(__file__).with_name("shims")
COMPILE_TIMEOUT_S = 60.0


@functools.cache
def compiled(name: str) -> Path:
    """The shared library of ``shims/<name>.c``, from the cache or made now.  Raises ``Unavailable`` with the reason."""
    if sys.platform != "linux":
        raise Unavailable(f"preloaded libraries are Linux's here; this is {sys.platform}")
    compiler = shutil.which("gcc") or shutil.which("cc")
    if compiler is None:
        raise Unavailable("no C compiler (gcc) to make the shims with")
    source = SOURCES / f"{name}.c"
    cache = Path(tempfile.gettempdir()) / f"tidemark-shims-{os.getuid()}"
    cache.mkdir(mode=0o700, exist_ok=True)
    library = cache / f"{name}-{hashlib.sha256(source.read_bytes()).hexdigest()[:16]}.so"
    if not library.exists():
        making = library.with_suffix(f".{os.getpid()}")
        command = [compiler, "-shared", "-fPIC", "-O2", "-Wall", "-o", str(making), str(source), "-ldl"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=COMPILE_TIMEOUT_S)
        if done.returncode:
            raise Unavailable(f"{source.name} does not compile", detail=done.stderr.strip())
        os.replace(making, library)
    return library


def unavailable() -> str | None:
    """Why there can be no shims here, or ``None``."""
    try:
        for source in SOURCES.glob("*.c"):
            compiled(source.stem)
    except Unavailable as error:
        return error.message
    return None


def preloaded(env: dict[str, str], *libraries: Path) -> dict[str, str]:
    """``env`` with ``libraries`` preloaded, beside those that are."""
    before = env.get("LD_PRELOAD", os.environ.get("LD_PRELOAD", ""))
    return env | {"LD_PRELOAD": " ".join(filter(None, [*map(str, libraries), before]))}
