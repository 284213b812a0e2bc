"""Who may reach a listening process: whether an address is this machine's alone, and the one password.

Promises: a process that would let anybody in from elsewhere is not started by mistake.  Where there is no password,
whoever reaches a port is everybody, so an address that other machines reach needs ``--insecure`` to be said.
"""

from __future__ import annotations

import argparse
import ipaddress
import os
import stat
import sys
from pathlib import Path

from journal.errors import InvalidUsage

PASSWORD = "TIDEMARK_PASSWORD"
PASSWORD_FILE = "TIDEMARK_PASSWORD_FILE"
"""The environment's variables, for where options are awkward: what a file holds is in nobody's list of processes."""


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches ``host``.  A name other than localhost is taken for one that others reach."""
    bare = host.strip("[]")
    if bare.lower() in ("localhost", "localhost."):
        return True
    try:
        return ipaddress.ip_address(bare).is_loopback
    except ValueError:
        return False


def add_insecure(parser: argparse.ArgumentParser) -> None:
    """The option that says: let anybody in."""
    parser.add_argument("--insecure", action="store_true",
                        help="listen also where other machines reach it and nothing asks who they are")  # fmt: skip


def check_address(host: str, password: str | None, insecure: bool, hint: str) -> None:
    """Raises ``InvalidUsage`` where whoever reaches ``host`` would be let in and nobody has said that they may."""
    if password is None and not insecure and not is_loopback(host):
        shown = host or "every address"
        raise InvalidUsage(f"{shown} is not loopback, and whoever reaches it would be let in unasked", hint=hint)


SQL_HINT = "set a password with --password-file, or say --insecure"
CONTROLLER_HINT = "controllers ask nobody who they are: listen on loopback or a network of your own, and say --insecure"


def controller_refused(name: str, host: str, insecure: bool) -> bool:
    """Whether a controller may not listen on ``host``, said in one line on standard error."""
    try:
        check_address(host, None, insecure, CONTROLLER_HINT)
    except InvalidUsage as error:
        print(f"{name}: {error.message} ({error.hint})", file=sys.stderr)
        return True
    return False


def password_from(file: str | Path | None) -> str | None:
    """The password: the first line of ``file``, else of the file that TIDEMARK_PASSWORD_FILE names, else what
    TIDEMARK_PASSWORD says; ``None``: trust.

    Raises ``InvalidUsage`` for a file that is empty, cannot be read, or that others may read (where it is ours) or
    write."""
    file = file or os.environ.get(PASSWORD_FILE)
    if not file:
        return os.environ.get(PASSWORD) or None
    try:
        about = os.stat(file)
        lines = Path(file).read_text().splitlines()
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not text"
        raise InvalidUsage(f"password file {file} cannot be read: {why}") from None
    check_closed(about, f"password file {file}", f"chmod 600 {file}")
    if not lines or not lines[0]:
        raise InvalidUsage(f"password file {file} is empty")
    return lines[0]


def check_closed(about: os.stat_result, what: str, hint: str) -> None:
    """Raises ``InvalidUsage`` for a file that others may read (where it is ours) or write."""
    # What another user owns was laid there for us to read, as an engine mounts a secret; what is ours is ours to close.
    forbidden = stat.S_IRWXG | stat.S_IRWXO if about.st_uid == os.geteuid() else stat.S_IWGRP | stat.S_IWOTH
    if stat.S_ISREG(about.st_mode) and about.st_mode & forbidden:
        raise InvalidUsage(f"{what} is open to others (mode {stat.S_IMODE(about.st_mode):04o})", hint=hint)
