"""The store: files of one environment under a URL, written whole or not at all.

Promises: a file is there under its path only once all of it is durable, and never changes; two writers never share a
path (paths have an id that was never used).  ``file://`` (or a plain path) is a directory of this machine; any other
URL is what pyarrow's file systems know, such as ``s3://bucket/prefix?endpoint_override=…``, with its credentials where
that library looks for them.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple, Protocol
from urllib.parse import unquote, urlsplit

import pyarrow as pa
import pyarrow.fs as pafs

from journal.errors import InvalidUsage, Unavailable

_PART = ".part"
"""The ending of what is being written.  Nobody reads it; a writer that died leaves it, and it goes as an orphan."""


class Gone(Unavailable):
    """There is no such file: its rows are in others by now, or it was taken out of the store by somebody else."""

    sqlstate = "58P01"


class Stored(NamedTuple):
    """A file that is there: when it was last written, in milliseconds, and its bytes."""

    path: str
    at_ms: int
    size: int


class Store(Protocol):
    """Paths are ``<directory>/<file>``, below the environment's own directory.  Any thread may call it.

    Everything raises ``Unavailable`` 58030 where the store does not answer, or has no room.
    """

    def write(self, path: str, data: bytes) -> None:
        """Durable once this returns."""
        ...

    def read(self, path: str) -> bytes:
        """Raises :class:`Gone` where there is no such file."""
        ...

    def delete(self, path: str) -> None:
        """No effect where there is no such file."""
        ...

    def files(self) -> Iterator[Stored]:
        """All that there is, what is being written included."""
        ...


def open_store(url: str, env: str) -> Store:
    """The store at ``url``, for ``env``.  Raises ``InvalidUsage`` for a URL that means nothing."""
    scheme = urlsplit(url).scheme
    if scheme in ("", "file"):
        path = unquote(urlsplit(url).path) if scheme else url
        if not path.startswith("/"):
            raise InvalidUsage(f"the store needs a whole path: {url}", hint="file:///var/lib/tidemark/store")
        return DirectoryStore(Path(path) / env)
    try:
        system, root = pafs.FileSystem.from_uri(url)
    except (pa.ArrowException, OSError, ValueError) as error:
        raise InvalidUsage(f"the store {url!r} cannot be opened", detail=str(error)) from error
    return ObjectStore(system, f"{root.rstrip('/')}/{env}")


class DirectoryStore:
    """Files of this machine, or of a file system that it shares with others."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def write(self, path: str, data: bytes) -> None:
        target = self._root / path
        part = target.with_name(f"{target.name}.{uuid.uuid4().hex[:8]}{_PART}")
        try:
            fresh = [each for each in (target.parent, *target.parent.parents) if not each.exists()]
            target.parent.mkdir(parents=True, exist_ok=True)
            with open(part, "wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            os.rename(part, target)
            for directory in {target.parent, *(each.parent for each in fresh)}:
                _sync_directory(directory)
        except OSError as error:
            with suppress(OSError):  # it goes as an orphan then
                part.unlink(missing_ok=True)
            raise _failed("written", path, error) from error

    def read(self, path: str) -> bytes:
        try:
            return (self._root / path).read_bytes()
        except FileNotFoundError:
            raise _gone(path) from None
        except OSError as error:
            raise _failed("read", path, error) from error

    def delete(self, path: str) -> None:
        try:
            (self._root / path).unlink(missing_ok=True)
        except OSError as error:
            raise _failed("removed", path, error) from error

    def files(self) -> Iterator[Stored]:
        try:
            for directory in sorted(self._root.iterdir()) if self._root.exists() else ():
                if not directory.is_dir():
                    continue
                for file in sorted(directory.iterdir()):
                    about = file.stat()
                    yield Stored(f"{directory.name}/{file.name}", about.st_mtime_ns // 1_000_000, about.st_size)
        except OSError as error:
            raise _failed("listed", str(self._root), error) from error


class ObjectStore:
    """Objects of a service.  One is there as a whole or not at all, by the service's own word."""

    def __init__(self, system: pafs.FileSystem, root: str) -> None:
        self._system = system
        self._root = root

    def write(self, path: str, data: bytes) -> None:
        try:
            with self._system.open_output_stream(f"{self._root}/{path}") as out:
                out.write(data)
        except (pa.ArrowException, OSError) as error:
            raise _failed("written", path, error) from error

    def read(self, path: str) -> bytes:
        try:
            with self._system.open_input_file(f"{self._root}/{path}") as file:
                return file.read()
        except FileNotFoundError:
            raise _gone(path) from None
        except (pa.ArrowException, OSError) as error:
            raise _failed("read", path, error) from error

    def delete(self, path: str) -> None:
        try:
            self._system.delete_file(f"{self._root}/{path}")
        except FileNotFoundError:
            return
        except (pa.ArrowException, OSError) as error:
            raise _failed("removed", path, error) from error

    def files(self) -> Iterator[Stored]:
        try:
            asked = pafs.FileSelector(self._root, allow_not_found=True, recursive=True)
            for each in self._system.get_file_info(asked):
                if each.type is pafs.FileType.File:
                    path = each.path[len(self._root) :].lstrip("/")
                    yield Stored(path, (each.mtime_ns or 0) // 1_000_000, each.size)
        except (pa.ArrowException, OSError) as error:
            raise _failed("listed", self._root, error) from error


def _sync_directory(path: Path) -> None:
    """So that the names in it survive a power cut, too."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _gone(path: str) -> Gone:
    return Gone(f"file {path} is not in the store")


def _failed(what: str, path: str, error: BaseException) -> Unavailable:
    return Unavailable(f"a file could not be {what}", sqlstate="58030", detail=f"{path}: {error}",
                       hint="is the store there, and has it room?")  # fmt: skip
