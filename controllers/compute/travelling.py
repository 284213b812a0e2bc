"""What executors elsewhere are given for their Python: our own modules, and the packages that these import.

Promises: an executor needs Spark and a bare Python of the minor version that runs here, on the same kind of machine;
whatever else may be installed there is passed over.  The packages are one archive, made of what is installed here and
kept under ``packages/`` of a directory, by a name that says which versions are in it, so it is made once; Spark's
driver hands it to each executor once, which unpacks it.  Executors on this machine have its Python, with what is
installed for it, so they are given our modules alone; those in this process need nothing.

The archive is stored, not compressed: 177 MB that are made in four seconds on two busy cores and unpacked in one.
Deflated they are 66, but take twenty to make, and machines of a cluster are a fast network apart.
"""

from __future__ import annotations

import hashlib
import os
import re
import sys
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path, PurePosixPath

from pyspark.sql import SparkSession

import catalog_log
import collection
import controllers
import functions
import journal
import oracle
import schemas
import segments
import values
from controllers.spark_masters import in_this_process, on_this_machine
from journal.errors import InvalidUsage

OURS = (functions, journal, values, catalog_log, collection, controllers, oracle, schemas, segments)
"""What functions are in, and what tasks run that write what is many (``sending.py``)."""

DISTRIBUTIONS = ("pyarrow", "numpy", "confluent-kafka", "fastavro", "protobuf")
"""What these import, and PySpark's worker with them."""

PYTHON = f"python{sys.version_info.major}.{sys.version_info.minor}"
"""What executors elsewhere start: plans and functions are sent in a form that only the same minor version reads."""

PYTHON_ENV = "TIDEMARK_SPARK_PYTHON"
"""Names another program or path for that, where their Python is called otherwise."""

PLACE = "tidemark-packages"
"""Where executors find it, below the directory that they work in."""

_LEFT_OUT = re.compile(
    r"(^|/)(tests?|include|benchmarks|f2py|schema_registry|__pycache__)/"  # of no use to a task
    r"|flight|gandiva|_s3fs|_gcsfs|_azurefs|libarrow_s3"  # doors to the outside that no task goes through
    r"|\.(h|hpp|pyi|pxd|pyx|a|lib)$"
)
"""Of the packages' files: half of their bytes."""

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


def settings(master: str) -> dict[str, str]:
    """Of a session of ``master``, by which executors find what they are given."""
    return {} if on_this_machine(master) else {"spark.executorEnv.PYTHONPATH": PLACE}


def python(master: str, environment: Mapping[str, str] = os.environ) -> str:
    """What executors of ``master`` run."""
    return sys.executable if on_this_machine(master) else environment.get(PYTHON_ENV) or PYTHON


def give(spark: SparkSession, scratch: Path, kept: Path) -> None:
    """Have all executors of ``spark`` find it; ``kept`` is a directory that outlives this process."""
    context = spark.sparkContext
    if in_this_process(context.master):
        return
    context.addPyFile(str(our_modules(scratch / "tidemark.zip")))
    if not on_this_machine(context.master):
        context.addArchive(f"{packages(kept)}#{PLACE}")


def our_modules(path: Path) -> Path:
    """Our modules, as the zip file ``path``."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        for package in OURS:
            root = Path(package.__file__).parent
            for source in sorted(root.rglob("*.py")):
                file.write(source, source.relative_to(root.parent))
    return path


def packages(kept: Path) -> Path:
    """The archive of the packages, made where ``kept`` has none of these very versions; others go.

    Raises ``InvalidUsage`` for a package that nobody knows the files of.
    """
    found = [*_closure(DISTRIBUTIONS)]
    path = kept / "packages" / f"{_digest(found)}.zip"
    if path.exists():
        return path
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f"{path.stem}.{os.getpid()}.part")
    try:
        with zipfile.ZipFile(part, "w", zipfile.ZIP_STORED) as file:
            for name, source in _files(found):
                file.write(source, name)
        for other in path.parent.glob("*.zip"):  # whoever is sending one has it open, or makes its own again
            other.unlink(missing_ok=True)
        os.replace(part, path)
    finally:
        part.unlink(missing_ok=True)
    return path


def _closure(names: Iterable[str]) -> Iterator[Distribution]:
    """The distributions called so and what these require, where it is installed: what is not was ruled out by a
    condition (another Python's, another system's) when they were."""
    waiting, seen = [*names], set()
    while waiting:
        name = waiting.pop(0)
        if name.lower() in seen:
            continue
        seen.add(name.lower())
        try:
            found = distribution(name)
        except PackageNotFoundError:
            if name in names:
                raise InvalidUsage(f"{name} is not installed", hint="install what requirements.lock names") from None
            continue
        yield found
        waiting += [
            _NAME.match(required)[0] for required in found.requires or () if "extra ==" not in required
        ]  # fmt: skip


def _digest(found: Iterable[Distribution]) -> str:
    """Which files these are, by their own lists of digests."""
    digest = hashlib.sha256(f"{sys.version_info[:2]} {_LEFT_OUT.pattern}".encode())
    for each in found:
        digest.update(f"{each.metadata['Name']} {each.version} {each.read_text('RECORD')}".encode())
    return digest.hexdigest()[:32]


def _files(found: Iterable[Distribution]) -> Iterator[tuple[str, Path]]:
    for each in found:
        if each.files is None:
            raise InvalidUsage(
                f"nobody knows which files belong to {each.metadata['Name']}, so they cannot be sent to executors",
                hint="install it by pip, as requirements.lock has it",
            )
        for file in each.files:
            name, source = str(PurePosixPath(file)), Path(each.locate_file(file))
            if not name.startswith("..") and not _LEFT_OUT.search(name) and source.is_file():
                yield name, source
