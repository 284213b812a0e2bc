"""What stands in the place of a secret, where and when somebody connects.

Promises: nothing but variables that are called for it and files below one directory is ever read, and no error has any
of what is there.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path

from catalog_log.objects import Secret
from catalog_log.objects.connection import FILE
from journal.doors import check_closed
from journal.errors import InvalidUsage

DIRECTORY, DEFAULT_DIRECTORY = "TIDEMARK_SECRETS", "/run/secrets"
"""The variable that says where the files are, and where they are otherwise: where engines mount them."""

VARIABLES = "TIDEMARK_SECRET_"

SECRET_BYTES_MAX = 64 * 1024
"""A chain of certificates has some 20 KiB."""


def secret_in(place: Secret) -> str:
    """The secret that is in ``place`` now: of a file all of it but a line's end.  55000 where there is none."""
    text = _of_file(place.name) if place.way == FILE else _of_environment(place.name)
    if not text:
        raise _none(f"{place.way} {place.name} is empty")
    return text


def _of_environment(name: str) -> str:
    if not name.startswith(VARIABLES) or name not in os.environ:
        raise _none(f"there is no variable {name} in this process's environment")
    return os.environ[name]


def _of_file(name: str) -> str:
    root = os.path.realpath(os.environ.get(DIRECTORY) or DEFAULT_DIRECTORY)
    path = os.path.realpath(os.path.join(root, name))  # engines mount links to elsewhere below it
    if os.path.commonpath([root, path]) != root:
        raise _none(f"file {name} is outside of the directory of secrets")
    try:
        about = os.stat(path)
        if not stat.S_ISREG(about.st_mode) or about.st_size > SECRET_BYTES_MAX:
            raise _none(f"file {name} is no file of at most {SECRET_BYTES_MAX} bytes")
        check_closed(about, f"file {name} of a secret", "chmod 600")
        return Path(path).read_text().removesuffix("\n")
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not text"
        raise _none(f"file {name} cannot be read: {why}") from None


def _none(why: str) -> InvalidUsage:
    return InvalidUsage(
        f"a secret is not in its place: {why}", sqlstate="55000",
        hint=f"the process that connects has it: variables are called {VARIABLES}…, files are below {DIRECTORY} or "
        f"{DEFAULT_DIRECTORY}",
    )  # fmt: skip
