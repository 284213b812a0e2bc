"""The store: files of one environment under a URL, written whole or not at all.

Promises: a file is there under its path only once all of it is durable, and never changes; two writers never share a
path (paths have an id that was never used).  ``file://`` (or a plain path) is a directory of this machine;
``s3://bucket/prefix?region=…&endpoint_override=host:port&scheme=http`` is a bucket of a service that speaks S3, with
the credentials where the AWS libraries look for them; any other URL is what pyarrow's file systems know.

No process makes its bucket: :func:`make_bucket` does.  Whoever we are must be allowed to list it: without that a
service says "forbidden" of what is not there.  A writer that died leaves parts of an upload that no listing shows, so a
bucket needs a rule that ends unfinished uploads; and where files were removed, pyarrow leaves an empty object called as
their directory.

What does not answer is given up by the bounds below for S3 alone: file systems of other URLs have their libraries' own.
"""

from __future__ import annotations

import errno
import hashlib
import os
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO, NamedTuple, Protocol
from urllib.parse import parse_qsl, unquote, urlsplit

import pyarrow as pa
import pyarrow.fs as pafs

from journal.errors import InvalidUsage, Unavailable
from segments.model import place_of

_PART = ".part"
"""The ending of what is being written.  Nobody reads it; a writer that died leaves it, and it goes as an orphan."""

CONNECT_S = 2.0
"""For a connection to S3: SDKs wait for 1 s, and a first SYN that was lost is sent again after 1 s (RFC 6298)."""
SILENT_S = 5.0
"""For S3 to say anything: SDKs wait for 3 s, and S3's own advice is to ask again after 2 s, then after 4 more.  It
counts from the last byte, so a large file over a slow line is not cut short.  curl counts whole seconds."""
ATTEMPTS = 3
"""Of a request that got a 5xx, or no answer, or no connection: pyarrow's default.  Before the second one up to 1 s goes
by, before the third up to 2 (AWS's standard strategy: at random, doubled, 20 s at most).

So who is not there is given up after 3 s, who lets nobody in after ``ATTEMPTS * CONNECT_S + 3`` = 9, who says nothing
after ``ATTEMPTS * (SILENT_S + 1) + 3`` = 21.  Who falls silent while a file is written is noticed later, as curl looks
at its last 5 s and counts what the kernel still takes: measured, 37 s for a small file, 96 s for one of 30 MB.  There
is no knob for that.  The first request that fails decides, or two (a read that broke off asks whether the file is
there).  Callers try again at their own pace."""

BLOCK_BYTES = 4 << 20
"""Of a file, in memory at once while it is copied.  Of S3 a request each, which takes as long as its first megabyte."""

_S3_OPTIONS = {"region", "scheme", "endpoint_override"}


class Gone(Unavailable):
    """There is no such file: its rows are in others by now, or it was taken out of the store by somebody else."""

    sqlstate = "58P01"


class Unreadable(Unavailable):
    """The directory is there, and yet this file cannot be read: its disk is broken, or we may not.  Waiting for it does
    not help, and nobody else's files are like that."""

    sqlstate = "58P01"


class NoRoom(Unavailable):
    """This machine's disk is full.  Of all collections it is this one that does not fit: the others go on as they are,
    and waiting with them, for as long as that takes, would make no room."""

    sqlstate = "53100"


class Stored(NamedTuple):
    """A file that is there: when it was last written, in milliseconds, and its bytes."""

    path: str
    at_ms: int
    size: int


class Store(Protocol):
    """Paths are ``<directory>/<file>``, below the environment's own directory; what is read may be a part of a file
    (:func:`segments.model.part_path`).  Any thread may call it.

    Everything raises ``Unavailable`` 58030 where the store does not answer, or has no room.
    """

    def write(self, path: str, data: bytes, begun: bool = False) -> None:
        """Durable once this returns.  ``begun``: there are files here already, so where there is no place for them the
        store is away, and nobody makes another in its place."""
        ...

    def read(self, path: str) -> bytes:
        """Raises :class:`Gone` where there is no such file, :class:`Unreadable` where it alone is in trouble."""
        ...

    def fetch(self, path: str, target: Path) -> None:
        """The file as one of this machine's, at ``target``, which stays when the store's own is deleted: another name
        of the same bytes where that can be.  Raises as :meth:`read`, and leaves nothing then; :class:`NoRoom`, too."""
        ...

    def delete(self, path: str) -> None:
        """No effect where there is no such file."""
        ...

    def files(self) -> Iterator[Stored]:
        """All that there is, what is being written included."""
        ...

    def below(self, directory: str) -> Store:
        """The files in ``directory`` of this one, as a store of its own."""
        ...


def directory_of(topic_id: str) -> str:
    """Where files of the environment are whose log has that identity: another cluster may have one of the same name,
    or this one had, and neither may sweep the other's."""
    return hashlib.sha256(topic_id.encode()).hexdigest()[:16]


def open_store(url: str, env: str) -> Store:
    """The store at ``url``, for ``env``.  Raises ``InvalidUsage`` for a URL that means nothing."""
    scheme = urlsplit(url).scheme
    if scheme in ("", "file"):
        path = unquote(urlsplit(url).path) if scheme else url
        if not path.startswith("/"):
            raise InvalidUsage(f"the store needs a whole path: {url}", hint="file:///var/lib/tidemark/store")
        return DirectoryStore(Path(path) / env)
    if scheme == "s3":
        return _s3_store(url, env)
    try:
        system, root = pafs.FileSystem.from_uri(url)
    except (pa.ArrowException, OSError, ValueError) as error:
        raise InvalidUsage(f"the store {url!r} cannot be opened", detail=str(error)) from error
    return ObjectStore(system, f"{root.rstrip('/')}/{env}")


def make_bucket(url: str) -> bool:
    """Make the bucket of a store whose URL is of S3; whether it was not there.  Raises ``InvalidUsage`` for any other
    URL, ``Unavailable`` 58030 where the service does not answer or does not let us."""
    if urlsplit(url).scheme != "s3":
        raise InvalidUsage(f"a store that has no bucket: {url}", hint="s3://bucket/prefix?region=eu-central-1")
    system, bucket, _ = _s3_system(url, allow_bucket_creation=True)
    try:
        there = system.get_file_info(bucket).type is not pafs.FileType.NotFound
        if not there:
            system.create_dir(bucket)
    except (pa.ArrowException, OSError) as error:
        raise _failed("made", bucket, error) from error
    return not there


def _s3_store(url: str, env: str) -> ObjectStore:
    system, bucket, prefix = _s3_system(url)
    return ObjectStore(system, "/".join(each for each in (bucket, prefix, env) if each))


def _s3_system(url: str, allow_bucket_creation: bool = False) -> tuple[pafs.S3FileSystem, str, str]:
    """The service at ``url``, the bucket, and what paths in it begin with.  Asks nobody yet.

    pyarrow's own reading of such a URL takes no bounds, and asks the network for the region.
    """
    parts = urlsplit(url)
    example = "s3://bucket/prefix?region=eu-central-1"
    if not parts.netloc or "@" in parts.netloc:
        raise InvalidUsage(
            "the store's URL needs a bucket, and no credentials",
            hint=f"{example}, with AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY in the environment",
        )
    options = dict(parse_qsl(parts.query, keep_blank_values=True))
    if unknown := options.keys() - _S3_OPTIONS:
        raise InvalidUsage(f"the store's URL has an option that S3 does not take: {min(unknown)}",
                           hint="region, endpoint_override, scheme")  # fmt: skip
    region = options.pop("region", None) or os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION")
    if region is None and "endpoint_override" not in options:
        raise InvalidUsage("the store's URL names no region", hint=example)
    try:
        system = pafs.S3FileSystem(
            **options,
            region=region or "us-east-1",  # what services of other makers are called where they have one region
            connect_timeout=CONNECT_S,
            request_timeout=SILENT_S,
            retry_strategy=pafs.AwsStandardS3RetryStrategy(max_attempts=ATTEMPTS),
            allow_bucket_creation=allow_bucket_creation,
        )
    except (pa.ArrowException, OSError, ValueError) as error:
        raise InvalidUsage(f"the store {url!r} cannot be opened", detail=str(error)) from error
    return system, parts.netloc, unquote(parts.path).strip("/")


class DirectoryStore:
    """Files of this machine, or of a file system that it shares with others."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def write(self, path: str, data: bytes, begun: bool = False) -> None:
        target = self._root / path
        part = target.with_name(f"{target.name}.{uuid.uuid4().hex[:8]}{_PART}")
        try:
            fresh = [each for each in (target.parent, *target.parent.parents) if not each.exists()]
            # What is written where a disk should be mounted is nowhere once it is.
            target.parent.mkdir(parents=not begun, exist_ok=True)
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
        with self._reading(path) as file:
            return file.read()

    def fetch(self, path: str, target: Path) -> None:
        with self._reading(path) as file:
            try:
                if isinstance(file, _Part):
                    raise OSError("a part of a file has no name of its own")
                os.link(self._root / path, target)
            except OSError:  # another disk, one that knows no links, or a file of somebody else's
                _copy(file, target)

    @contextmanager
    def _reading(self, path: str) -> Iterator[BinaryIO | _Part]:
        place = place_of(path)
        try:
            with open(self._root / place.file, "rb") as file:
                yield file if place.part is None else _Part(file, *place.part)
        except FileNotFoundError as error:
            if not self._answers():  # a disk that is not mounted has no files, and none of them is gone
                raise _failed("read", path, error) from error
            raise _gone(path) from None
        except OSError as error:
            if self._answers():
                raise _unreadable(path, error) from error
            raise _failed("read", path, error) from error

    def _answers(self) -> bool:
        try:
            with os.scandir(self._root):
                return True
        except OSError:
            return False

    def below(self, directory: str) -> DirectoryStore:
        return DirectoryStore(self._root / directory)

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

    def write(self, path: str, data: bytes, begun: bool = False) -> None:
        try:
            with self._system.open_output_stream(f"{self._root}/{path}") as out:
                out.write(data)
        except (pa.ArrowException, OSError) as error:
            raise _failed("written", path, error) from error

    def read(self, path: str) -> bytes:
        with self._reading(path) as file:
            return file.read()

    def fetch(self, path: str, target: Path) -> None:
        with self._reading(path) as file:
            _copy(file, target)

    @contextmanager
    def _reading(self, path: str) -> Iterator[pa.NativeFile | _Part]:
        place = place_of(path)
        whole = f"{self._root}/{place.file}"
        try:
            with self._system.open_input_file(whole) as file:  # asks for its size
                try:
                    yield file if place.part is None else _Part(file, *place.part)
                except (pa.ArrowException, OSError):
                    # Removed since?  The error does not say: the service's words do not fit into a buffer of that size,
                    # and the SDK calls it an internal failure.  Then there is nothing to open any more.
                    with self._system.open_input_file(whole):
                        raise
        except FileNotFoundError:
            self._need_bucket("read", path)
            raise _gone(path) from None
        except (pa.ArrowException, OSError) as error:  # a service that fails now may answer the next time
            raise _failed("read", path, error) from error

    def below(self, directory: str) -> ObjectStore:
        return ObjectStore(self._system, f"{self._root}/{directory}")

    def delete(self, path: str) -> None:
        try:
            self._system.delete_file(f"{self._root}/{path}")
        except FileNotFoundError:
            self._need_bucket("removed", path)
        except (pa.ArrowException, OSError) as error:
            raise _failed("removed", path, error) from error

    def files(self) -> Iterator[Stored]:
        try:
            asked = pafs.FileSelector(self._root, allow_not_found=True, recursive=True)
            found = self._system.get_file_info(asked)
        except (pa.ArrowException, OSError) as error:
            raise _failed("listed", self._root, error) from error
        if not found:
            self._need_bucket("listed", self._root)
        for each in found:
            if each.type is pafs.FileType.File:
                path = each.path[len(self._root) :].lstrip("/")
                yield Stored(path, (each.mtime_ns or 0) // 1_000_000, each.size)

    def _need_bucket(self, what: str, path: str) -> None:
        """Raises ``Unavailable`` where the bucket is not there.

        A service says of a file in it only that there is none.  Taken for that, a wrong address would be a store whose
        files are gone for good: readers would look for others, and files "removed" there would stay where they are.
        """
        bucket = self._root.split("/", 1)[0]
        try:
            missing = bool(bucket) and self._system.get_file_info(bucket).type is pafs.FileType.NotFound
        except (pa.ArrowException, OSError) as error:
            raise _failed(what, path, error) from error
        if missing:
            raise _failed(what, path, FileNotFoundError(f"there is no bucket {bucket}"))


class _Part:
    """A file that is a part of another.  Where that ends before, it is shorter: its check sum will tell."""

    def __init__(self, file: BinaryIO | pa.NativeFile, offset: int, size: int) -> None:
        self._file = file
        self._left = size
        file.seek(offset)

    def read(self, size: int | None = None) -> bytes:
        if size is None:  # by and by: a path may say that it is of any size
            return b"".join(iter(lambda: self.read(BLOCK_BYTES), b""))
        found = self._file.read(min(size, self._left))
        self._left -= len(found)
        return found


def _copy(file: BinaryIO | pa.NativeFile | _Part, target: Path) -> None:
    """What is in ``file`` to ``target``, or nothing; raises what reading does, :class:`NoRoom`, and ``Unavailable`` for
    what else keeps it from being written."""
    def write(block: memoryview) -> None:
        try:
            while block:
                block = block[out.write(block) :]
        except OSError as error:
            if error.errno in (errno.ENOSPC, errno.EDQUOT):
                raise NoRoom("a file has no room on this machine", detail=f"{target}: {error}",
                             hint="the disk with the controller's data directory is full") from error  # fmt: skip
            raise _failed("kept on this machine", str(target), error) from error

    try:
        with open(target, "wb", buffering=0) as out:
            while block := file.read(BLOCK_BYTES):
                write(memoryview(block))
    except BaseException:
        target.unlink(missing_ok=True)
        raise


def _sync_directory(path: Path) -> None:
    """So that the names in it survive a power cut, too."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _gone(path: str) -> Gone:
    return Gone(f"file {path} is not in the store")


def _unreadable(path: str, error: BaseException) -> Unreadable:
    return Unreadable(f"file {path} cannot be read", detail=str(error))


def _failed(what: str, path: str, error: BaseException) -> Unavailable:
    return Unavailable(f"a file could not be {what}", sqlstate="58030", detail=f"{path}: {error}",
                       hint="is the store there, has it room, and may we write to it?")  # fmt: skip
