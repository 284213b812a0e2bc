"""Where random tests begin: at another place for each commit, and at the same one for whoever tests that commit.

A run that passed passes again, so nobody's change is refused for what another seed would have found; and every change
brings a new seed.  Runs of hours (``-m long``) begin anywhere.  ``TIDEMARK_SEED`` replays one.
"""

from __future__ import annotations

import hashlib
import os
import random
import subprocess
from pathlib import Path


def seed_of_commit() -> int:
    return _told(_of_commit())


def new_seed() -> int:
    return _told(random.SystemRandom().randrange(1 << 31))


def _told(otherwise: int) -> int:
    seed = int(os.environ.get("TIDEMARK_SEED") or otherwise)
    print(f"TIDEMARK_SEED={seed}")
    return seed


def _of_commit() -> int:
    """Of the commit that is checked out; without git any."""
    done = subprocess.run(
        ["git", "rev-parse", "HEAD"], cwd=Path(__file__).parent, capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        return random.SystemRandom().randrange(1 << 31)
    return int.from_bytes(hashlib.sha256(done.stdout.strip().encode()).digest()[:4], "big") >> 1
