"""Which class archive Spark's JVM is to start with, or to write: said by the environment, since whoever starts the
controller made it (``embedded/archives.py``).  Pure."""

from __future__ import annotations

from collections.abc import Mapping

ARCHIVE_ENV = "TIDEMARK_SPARK_ARCHIVE"
"""Names the archive that Spark's JVM starts with, if there is one."""

RECORD_ENV = "TIDEMARK_SPARK_ARCHIVE_RECORD"
"""Names the archive that Spark's JVM writes when it ends."""


def use_archive(path: object) -> list[str]:
    """The JVM's options for starting with ``path``.  One that does not fit this JVM is left aside without a word."""
    return [f"-XX:SharedArchiveFile={path}", "-Xlog:cds*=off", "-Xlog:class+path=off"]


def record_archive(path: object) -> list[str]:
    """The JVM's options for writing ``path`` when it ends."""
    return [f"-XX:ArchiveClassesAtExit={path}", "-Xlog:cds*=off"]


def of_environment(environment: Mapping[str, str]) -> list[str]:
    """The options that the environment asks for."""
    if record := environment.get(RECORD_ENV):
        return record_archive(record)
    archive = environment.get(ARCHIVE_ENV)
    return use_archive(archive) if archive else []
