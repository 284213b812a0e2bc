"""The parts of a relation that are files: chunks of its own, and files of the store as they are.

Promises: :meth:`Part.tables` gives the changes of a part in the relation's shape, a piece at a time; :meth:`Part.show`
has Spark know them as a view of that shape, which Spark's executors read by themselves: none of it passes through this
process.  What nobody reads any more goes by :meth:`Part.forget`, the files with it (a file of the store is another name
of the store's own, or a copy).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark import StorageLevel
from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

from collection.columns import DIFF, Columns, sql_type
from collection.rows import missing_values
from controllers.changes import TS, canonical, insertions, physical_schema, stamp
from controllers.compute.fetching import FetchedFile
from controllers.compute.handing import Handing, schema_sql
from controllers.compute.sought import Sought
from controllers.peeks.peek import Considered
from segments.parquet import DIFF_FIELD, LocalFile
from segments.pruning import Predicate, SegmentIndex
from segments.statistics import column_keys
from values.types import SqlType, carried, spark_type

CACHED_BYTES_MAX = 64 << 20
"""Of settled rows as Arrow has them, up to which Spark keeps them in its cache: a sixteenth of the least heap there is.
More are read from their files, of which Spark takes the columns and the groups of rows that a query asks for."""

BIGINT = SqlType("int8")


class Shape:
    """How changes of a collection with ``columns`` lie in a relation: columns by their places, timestamp and diff."""

    def __init__(self, columns: Columns) -> None:
        self.columns = columns
        self.types: list[SqlType] = [carried(sql_type(c.type)) for c in columns]
        self.schema: pa.Schema = physical_schema(self.types)
        self.columns_sql = [(f"c{i}", t) for i, t in enumerate(self.types)]
        self.sql = schema_sql([*self.columns_sql, (TS, BIGINT), (DIFF, BIGINT)])


@dataclass
class TempView:
    """Something that a query may be reading: it goes when it is both retired and unpinned."""

    name: str
    pins: int = 0
    retired: bool = False

    def forget(self, handing: Handing) -> None:
        """Nobody reads it any more."""
        handing.take_back(self.name)


@dataclass
class Part(TempView, ABC):
    """``rows`` changes with timestamps from ``min_ts`` to ``max_ts``; ``plain``: every diff is +1."""

    rows: int = 0
    net: int = 0
    min_ts: int = 0
    max_ts: int = 0
    plain: bool = True
    frame: DataFrame | None = None
    """What Spark reads it by; made when first needed."""

    @property
    @abstractmethod
    def paths(self) -> Sequence[Path]:
        """Its files, which are nobody else's."""

    @property
    @abstractmethod
    def cached(self) -> bool:
        """Whether Spark's executors keep it in their cache (memory first, disk when that is short)."""

    @cached_property
    def insertions(self) -> int:
        """The rows that came by its changes, or more."""
        return self.rows if self.plain else sum(map(insertions, self.diffs()))

    @abstractmethod
    def diffs(self) -> Iterator[pa.Table]:
        """Of its changes how often each row came or went."""

    @abstractmethod
    def tables(self) -> Iterator[pa.Table]: ...

    @abstractmethod
    def read(self, handing: Handing) -> DataFrame:
        """Its changes as Spark finds them in the files."""

    def show(self, handing: Handing) -> None:
        """Have Spark know it; its first reader fills the cache."""
        if self.frame is None:
            frame = self.read(handing)
            self.frame = frame.persist(StorageLevel.MEMORY_AND_DISK) if self.cached else frame
            handing.call(self.frame, self.name)

    def forget(self, handing: Handing) -> None:
        if self.frame is not None:
            if self.cached:
                self.frame.unpersist()
            super().forget(handing)
        for path in self.paths:
            path.unlink(missing_ok=True)


@dataclass
class Chunk(Part):
    """A file of the relation's own."""

    path: Path = Path()
    shape: Shape = field(kw_only=True)
    merged_through: int = 0
    """Through when its changes were told as one, and what cancels out left out."""
    cached = True

    @property
    def paths(self) -> Sequence[Path]:
        return (self.path,)

    def diffs(self) -> Iterator[pa.Table]:
        yield pq.read_table(self.path, columns=[DIFF])

    def tables(self) -> Iterator[pa.Table]:
        with pq.ParquetFile(self.path) as file:
            for group in range(file.num_row_groups):
                yield file.read_row_group(group)

    def read(self, handing: Handing) -> DataFrame:
        return handing.frame([self.path], self.shape.sql)


class Adopted(NamedTuple):
    """A file of the relation's directory that somebody else has written, and what it holds."""

    path: Path
    of: FetchedFile


@dataclass
class Fetched(Chunk):
    """One that tasks of Spark's have written: it is not read here for the sake of there being fewer."""


@dataclass
class Settled(Part):
    """Files of the store that were written with the same columns, all of their rows at one timestamp."""

    files: Sequence[LocalFile] = ()
    names: Sequence[str | None] = ()
    """What each column is called in them; ``None`` of one that was added later."""
    shape: Shape = field(kw_only=True)

    @property
    def paths(self) -> Sequence[Path]:
        return [file.path for file in self.files]

    @cached_property
    def cached(self) -> bool:
        return sum(file.segment.loaded for file in self.files) <= CACHED_BYTES_MAX

    @cached_property
    def _index(self) -> SegmentIndex:
        return SegmentIndex([file.segment for file in self.files])

    @property
    def prunes(self) -> bool:
        """Whether some of the files may be passed over: where Spark has them in its cache it reads that."""
        return len(self.files) > 1 and not self.cached

    def chosen(self, sought: Sequence[Sought]) -> Sequence[LocalFile]:
        """Those of the files that are read where nobody has any use for a row for which not all of ``sought`` are
        true."""
        if not sought or not self.prunes:
            return self.files
        places = {column.name: n for n, column in enumerate(self.shape.columns)}
        keys = column_keys(self.shape.columns)
        asked = [
            Predicate(keys[n], self.shape.columns[n].type, each.op, each.values)
            for each in sought if (n := places.get(each.column)) is not None
        ]  # fmt: skip
        found = self._index.may_match(asked)
        return [file for file, may in zip(self.files, found, strict=True) if may]

    def diffs(self) -> Iterator[pa.Table]:
        for file in self.files:
            yield pq.read_table(file.path, columns=[DIFF_FIELD]).rename_columns([DIFF])

    def tables(self) -> Iterator[pa.Table]:
        for file in self.files:
            for table in file.chunks(self.shape.columns):
                yield stamp(table, self.max_ts, self.shape.types)

    def read(self, handing: Handing) -> DataFrame:
        return self.read_some(self.files, handing)

    def read_some(self, files: Sequence[LocalFile], handing: Handing) -> DataFrame:
        """As :meth:`read`, of some of the files."""
        names, types = self.names, self.shape.types
        known = [(name, t) for name, t in zip(names, types, strict=True) if name is not None]
        frame = handing.frame([file.path for file in files], schema_sql([*known, (DIFF_FIELD, BIGINT)]))
        given = self._given()
        if given.num_columns:
            frame = frame.crossJoin(sf.broadcast(handing.spark.createDataFrame(given)))
            names = [f"given{i}" if f"given{i}" in given.column_names else name for i, name in enumerate(names)]
        outputs = [
            (sf.lit(None).cast(spark_type(t)) if name is None else sf.col(name)).alias(f"c{i}")
            for i, (name, t) in enumerate(zip(names, types, strict=True))
        ]
        return frame.select(*outputs, sf.lit(self.max_ts).cast("bigint").alias(TS), sf.col(DIFF_FIELD).alias(DIFF))

    def _given(self) -> pa.Table:
        """One row with what rows have in columns that were added since with a default."""
        later = {
            f"given{i}": missing_values(column, 1)
            for i, (column, name) in enumerate(zip(self.shape.columns, self.names, strict=True)) if name is None
        }  # fmt: skip
        return canonical(pa.table({name: value for name, value in later.items() if not value.null_count}))


@dataclass
class Some(TempView):
    """Some files of ``of``, for one reader."""

    files: Sequence[LocalFile] = ()
    of: Settled = field(kw_only=True)

    def show(self, handing: Handing) -> None:
        """Have Spark know them; there is at least one."""
        handing.call(self.of.read_some(self.files, handing), self.name)


def settled(name: str, files: Iterable[LocalFile], shape: Shape, ts: int) -> tuple[list[Settled], list[LocalFile]]:
    """``files`` as parts whose names begin with ``name``; and those that only their reader can bring into ``shape``,
    since a type was carried otherwise when they were written.

    Raises :class:`~collection.rows.Undecodable` for a column of another type.
    """
    found, other = [], []
    for file in files:
        fields = file.fields(shape.columns)
        if all(each is None or each.type == shape.schema.field(i).type for i, each in enumerate(fields)):
            found.append(([None if each is None else each.name for each in fields], file))
        else:
            other.append(file)
    parts = []
    for names, group in groupby(sorted(found, key=lambda each: str(each[0])), key=lambda each: each[0]):
        alike = [file for _, file in group]
        segments = [file.segment for file in alike]
        parts.append(Settled(
            f"{name}_{len(parts)}", rows=sum(each.changes for each in segments), net=sum(each.net for each in segments),
            min_ts=ts, max_ts=ts, plain=all(each.plain for each in segments), files=alike, names=names, shape=shape,
        ))  # fmt: skip
    return parts, other


def considered(parts: Iterable[Part], rows: int, sought: Sequence[Sought]) -> Considered:
    """What is read of a relation with ``rows`` changes in all, ``parts`` of it in files, where ``sought`` is sought."""
    settled_parts = [part for part in parts if isinstance(part, Settled)]
    chosen = [part.chosen(sought) for part in settled_parts]
    files, read = sum(len(part.files) for part in settled_parts), sum(map(len, chosen))
    return Considered(
        files=files,
        pruned=files - read,
        bytes_read=sum(file.segment.size for some in chosen for file in some),
        cached=sum(len(some) for part, some in zip(settled_parts, chosen, strict=True) if part.cached),
        beside=rows - sum(part.rows for part in settled_parts),
    )
