"""The table of a sink into Iceberg, in a REST catalog.

Promises: as :class:`controllers.storage.iceberg.sinking.Table`.  Which timestamp a snapshot is of is in its summary, by
:data:`TS`, and how far the table is complete is its property :data:`THROUGH`; both are set by the commit of the
snapshot, and a commit asserts which snapshot it was made for.  Where nothing changed the property alone moves.

What others may do: rewrite files, manifests and the list of snapshots (``replace``, and expiring old ones).  A snapshot
of theirs that adds or removes rows ends the sink, since nobody could tell any more what the rows are of.

Files of a commit whose outcome nobody knows are deleted once it can happen no more: when the snapshot that it was made
for is not the newest any more.  Those of a process that died are left.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import pyarrow as pa
import pydantic
import requests
from pyiceberg import exceptions
from pyiceberg.catalog.rest import RestCatalog
from pyiceberg.io.pyarrow import PyArrowFileIO
from pyiceberg.manifest import ManifestContent
from pyiceberg.schema import Schema
from pyiceberg.table import Table
from pyiceberg.table.snapshots import Operation, Snapshot, ancestors_of
from pyiceberg.table.update import (
    AssertCurrentSchemaId,
    AssertRefSnapshotId,
    AssertTableUUID,
    RemoveSnapshotsUpdate,
    SetPropertiesUpdate,
)
from pyiceberg.typedef import EMPTY_DICT, Properties
from pyiceberg.types import (
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IcebergType,
    IntegerType,
    ListType,
    LongType,
    NestedField,
    StringType,
    TimestampType,
    TimestamptzType,
    TimeType,
    UUIDType,
)
from requests.adapters import HTTPAdapter

from catalog_log.objects import Sink
from catalog_log.objects.sink import NONE
from controllers.storage.iceberg.columns import DECIMAL, Columns
from controllers.storage.iceberg.data_files import DataFiles
from controllers.storage.iceberg.files import Changing, File
from controllers.storage.iceberg.snapshot import NewSnapshot, only_of
from controllers.storage.sinking import SinkRefused
from journal.errors import TidemarkError, Unavailable

log = logging.getLogger(__name__)

TS, SINK, THROUGH, NEWEST, INTERVAL, FIELDS = (
    "tidemark.ts", "tidemark.sink", "tidemark.through", "tidemark.newest", "tidemark.interval-ms", "tidemark.fields",
)  # fmt: skip
"""Of a snapshot: the timestamp that it is of, and who made it.  Of the table: who makes its snapshots, through when it
is complete, the id of the newest of them then, of what all of these timestamps are multiples, and the ids of its
columns: one that is dropped and made anew has another id, and none of the values that are in files."""

ANSWER_S = 30.0
"""For one request: a catalog commits within a second, and one over a database that is locked answers then."""

SNAPSHOTS_MAX, EXPIRED_AT_ONCE = 1_000, 100
"""Snapshots that a table keeps: nearly three hours of one with ten seconds between them, each half a kilobyte in what a
catalog writes anew for every commit; and how many more there are when the oldest go, which reads their metadata."""

MAIN = "main"

_CODE = ("write.py-location-provider.impl",)
"""Properties by which pyiceberg imports what they name."""

_TYPES: dict[str, IcebergType] = {
    "boolean": BooleanType(), "int": IntegerType(), "long": LongType(), "float": FloatType(), "double": DoubleType(),
    "string": StringType(), "uuid": UUIDType(), "date": DateType(), "time": TimeType(), "timestamp": TimestampType(),
    "timestamptz": TimestamptzType(), "binary": BinaryType(),
}  # fmt: skip

_NEW_TABLE = {
    "format-version": "2", "write.metadata.delete-after-commit.enabled": "true",
    "write.metadata.previous-versions-max": "100",
}  # fmt: skip
"""Of a table that is made here: an older file of metadata is needed by nobody once there are a hundred newer ones."""


class _Attempt(NamedTuple):
    """A commit of which it is not known whether it happened."""

    snapshot_id: int
    parent: int | None
    data: list[str]
    metadata: list[str]


class IcebergTable:
    """For one thread; close it."""

    def __init__(
        self, sink: Sink, of_log: str, columns: Columns, key: Sequence[int], settings: Callable[[], dict[str, str]],
        stopping: Callable[[], bool],
    ) -> None:  # fmt: skip
        """``key``: the places of its columns; ``settings``: as pyiceberg has a catalog's, asked for anew each time that
        one is opened, since secrets may change."""
        self._sink = sink
        self._owner = f"{of_log}/{sink.id}"
        self._name = (*sink.namespace.split("."), sink.table)
        self._columns = columns
        self._key = key
        self._settings = settings
        self._stopping = stopping
        self._catalog: RestCatalog | None = None
        self._table: Table | None = None
        self._files: DataFiles | None = None
        self._changing: Changing | None = None
        self._attempts: list[_Attempt] = []
        self._ours: int | None = None
        """The newest snapshot of ours that is there."""
        self.bytes = 0
        """Of the files of the newest snapshot."""

    def claim(self) -> int | None:
        """As :meth:`controllers.storage.iceberg.sinking.Table.claim`.  Raises ``Unavailable``."""
        try:
            return self._claim()
        except Exception as error:
            raise self._told(error) from None

    def stage(self, changes: pa.Table) -> None:
        """As :meth:`controllers.storage.iceberg.sinking.Table.stage`.  Raises ``Unavailable``."""
        assert self._changing is not None, "claim it first"
        try:
            self._changing.stage(self._columns.written(changes))
        except Exception as error:
            raise self._told(error) from None

    def commit(self, through: int) -> int:
        """As :meth:`controllers.storage.iceberg.sinking.Table.commit`.  Raises ``Unavailable``."""
        assert self._changing is not None and self._table is not None, "claim it first"
        try:
            changing = self._changing
            changing.settle()
            if changing.added or changing.removed or self._table.metadata.snapshot_by_name(MAIN) is None:
                kind = Operation.OVERWRITE if changing.added and changing.removed else Operation.APPEND
                self._snapshot(Operation.DELETE if changing.removed and not changing.added else kind, through)
            else:
                self._note(through)
            if self._changing.merge():
                self._snapshot(Operation.REPLACE, through)
            return changing.rows
        except Exception as error:
            raise self._told(error) from None

    def note(self, through: int) -> None:
        """As :meth:`controllers.storage.iceberg.sinking.Table.note`.  Raises ``Unavailable``."""
        try:
            self._note(through)
        except Exception as error:
            raise self._told(error) from None

    def close(self) -> None:
        """Give up what is staged, with its files."""
        self._drop_staged()
        if self._catalog is not None:
            self._catalog.close()
            self._catalog = None

    def _claim(self) -> int | None:
        self.close()
        self._catalog = _Catalog("tidemark", **self._settings())
        self._table = table = self._opened(self._catalog)
        self._check(table)
        found = self._through(table)
        self._begin(table, self._live(table))
        self._forget_attempts(table)
        return found

    def _opened(self, catalog: RestCatalog) -> Table:
        try:
            return catalog.load_table(self._name)
        except exceptions.NoSuchTableError:
            pass
        namespace = self._name[:-1]
        for parts in range(1, len(namespace) + 1):
            if not catalog.namespace_exists(namespace[:parts]):
                try:
                    catalog.create_namespace(namespace[:parts])
                except exceptions.NamespaceAlreadyExistsError:
                    pass
        columns = enumerate(zip(self._columns.names, self._columns.iceberg, strict=True), 1)
        fields = [NestedField(place, name, _type(kind, 1000 + place), required=False)
                  for place, (name, kind) in columns]  # fmt: skip
        try:
            return catalog.create_table(self._name, Schema(*fields), properties=_NEW_TABLE | self._its_properties())
        except exceptions.TableAlreadyExistsError:
            return catalog.load_table(self._name)

    def _its_properties(self) -> dict[str, str]:
        return {SINK: self._owner, INTERVAL: str(self._sink.interval_ms)}

    def _check(self, table: Table) -> None:
        told = self._sink.target
        owner = table.metadata.properties.get(SINK, self._owner)
        if owner != self._owner:
            raise SinkRefused(f"table {told} is another sink's: drop it there, or say another TABLE")
        wanted = list(zip(self._columns.names, self._columns.iceberg, strict=True))
        if [(field.name, str(field.field_type)) for field in table.schema().fields] != wanted:
            raise SinkRefused(f"table {told} has other columns than this sink writes")
        known = table.metadata.properties.get(FIELDS)
        if known is not None and table.metadata.snapshot_by_name(MAIN) is not None:
            anew = [field.name for field, its in zip(table.schema().fields, known.split(","), strict=False)
                    if str(field.field_id) != its]  # fmt: skip
            if anew:
                raise SinkRefused(f"table {told} has a column that somebody made anew: {anew[0]}")
        if any(each in table.metadata.properties for each in _CODE):
            raise SinkRefused(f"table {told} has a property that names code to run: {', '.join(_CODE)}")
        if not table.spec().is_unpartitioned():
            raise SinkRefused(f"table {told} is partitioned, which a sink does not write")
        if table.metadata.format_version < 2:
            raise SinkRefused(f"table {told} is of version 1 of Iceberg's format, and a sink writes version 2")

    def _through(self, table: Table) -> int | None:
        """Through when the table is complete: by the newest snapshot of ours, with only rewriting behind it."""
        metadata = table.metadata
        newest = metadata.snapshot_by_name(MAIN)
        found: Snapshot | None = newest
        while found is not None and not _is_of(found, self._owner):
            if found.summary is None or found.summary.operation is not Operation.REPLACE:
                by = "" if found.summary is None else f" ({found.summary.operation.value})"
                raise SinkRefused(
                    f"table {self._sink.target} has rows that this sink did not write: snapshot {found.snapshot_id}{by}"
                )
            parent = found.parent_snapshot_id
            found = None if parent is None else metadata.snapshot_by_id(parent)
        noted = metadata.properties.get(THROUGH)
        self._ours = found and found.snapshot_id
        if found is None:
            if newest is None:
                return None
            if noted is None:
                raise SinkRefused(f"table {self._sink.target} has rows that this sink did not write")
            return int(noted)  # ours is expired, below what was rewritten since
        ts = int(found.summary[TS])
        if noted is not None and metadata.properties.get(NEWEST) == str(found.snapshot_id):
            return max(ts, int(noted))
        return ts

    def _live(self, table: Table) -> list[File]:
        files = DataFiles(table, self._columns.schema, self._stopping)
        newest = table.metadata.snapshot_by_name(MAIN)
        found = []
        for manifest in () if newest is None else newest.manifests(table.io):
            entries = manifest.fetch_manifest_entry(table.io, discard_deleted=True)
            if entries and manifest.content != ManifestContent.DATA:
                raise SinkRefused(f"table {self._sink.target} has files of deletes, which this sink did not write")
            found += [files.known(entry.data_file) for entry in entries]
        return found

    def _begin(self, table: Table, live: Sequence[File]) -> None:
        self._files = DataFiles(table, self._columns.schema, self._stopping)
        self._changing = Changing(live, self._files, self._sink.envelope == NONE, self._key)

    def _snapshot(self, operation: Operation, through: int) -> None:
        """Commit what became of the files."""
        table, changing = self._table, self._changing
        added, removed = changing.added, changing.removed
        made = NewSnapshot(table, operation, [each.its for each in added], [each.its for each in removed],
                           {TS: str(through), SINK: self._owner})  # fmt: skip
        parent = table.metadata.snapshot_by_name(MAIN)
        attempt = _Attempt(made.snapshot_id, parent and parent.snapshot_id, [each.path for each in added],
                           made.metadata_files())  # fmt: skip
        self._attempts.append(attempt)
        gone, kept = self._too_many()
        updates, requirements = made.made()
        if gone:
            updates = (*updates, RemoveSnapshotsUpdate(snapshot_ids=[each.snapshot_id for each in gone]))
        self._attempts[-1] = attempt._replace(metadata=made.metadata_files())
        self._ask(requirements, (*updates, self._told_through(through, made.snapshot_id)))
        self._attempts.pop()
        self._ours = made.snapshot_id
        if gone:
            for path in only_of(gone, kept, table.io):
                self._files.discard(path)
        self.bytes = sum(each.bytes for each in added)
        self._begin(self._table, list(changing.files.values()))

    def _too_many(self) -> tuple[list[Snapshot], Snapshot | None]:
        """The oldest snapshots where there are too many, and the first that stays.  None of a table that somebody has
        given other branches or tags, whose those snapshots may be."""
        if len(self._table.metadata.snapshots) < SNAPSHOTS_MAX + EXPIRED_AT_ONCE:
            return [], None
        metadata = self._catalog.load_table(self._name).metadata  # a tag is nothing that a commit would fail for
        if set(metadata.refs) != {MAIN}:
            return [], None
        chain = [*ancestors_of(metadata.snapshot_by_name(MAIN), metadata)][::-1]
        many = max(0, len(chain) - SNAPSHOTS_MAX)
        return chain[:many], chain[many]

    def _note(self, through: int) -> None:
        newest = self._table.metadata.snapshot_by_name(MAIN)
        ours = newest.snapshot_id if self._ours is None else self._ours
        on_it = AssertRefSnapshotId(ref=MAIN, snapshot_id=newest.snapshot_id)
        self._ask((on_it,), (self._told_through(through, ours),))
        self.bytes = 0

    def _told_through(self, through: int, snapshot_id: int) -> SetPropertiesUpdate:
        return SetPropertiesUpdate(
            updates=self._its_properties() | {
                THROUGH: str(through), NEWEST: str(snapshot_id),
                FIELDS: ",".join(str(field.field_id) for field in self._table.schema().fields),
            }  # fmt: skip
        )

    def _ask(self, requirements: tuple, updates: tuple) -> None:
        table = self._table
        its = AssertCurrentSchemaId(current_schema_id=table.metadata.current_schema_id)
        requirements = (AssertTableUUID(uuid=table.metadata.table_uuid), its, *requirements)
        answer = self._catalog.commit_table(table, requirements, updates)
        table.metadata, table.metadata_location = answer.metadata, answer.metadata_location

    def _drop_staged(self) -> None:
        """Files that were written for a snapshot of which no catalog was asked yet."""
        changing, self._changing = self._changing, None
        asked = {path for each in self._attempts for path in each.data}
        for file in changing.added if changing is not None else ():
            if file.path not in asked:
                self._files.discard(file.path)

    def _forget_attempts(self, table: Table) -> None:
        newest = table.metadata.snapshot_by_name(MAIN)
        kept, live = [], set(self._changing.files)
        for each in self._attempts:
            if table.metadata.snapshot_by_id(each.snapshot_id) is not None:
                continue  # it happened
            if (newest and newest.snapshot_id) == each.parent:
                kept.append(each)  # it may happen yet
                continue
            for path in (*each.data, *each.metadata):
                if path not in live:
                    self._files.discard(path)
        self._attempts = kept

    def _told(self, error: Exception) -> Exception:
        """What is said of ``error``, without what a catalog or a store may have put there of secrets."""
        if isinstance(error, (SinkRefused, TidemarkError)):
            return error
        name = self._sink.target
        if isinstance(error, exceptions.CommitFailedException):
            return Unavailable(f"somebody else changed table {name} at the same time")
        if isinstance(error, (exceptions.UnauthorizedError, exceptions.ForbiddenError, exceptions.OAuthError)):
            return Unavailable("its catalog does not take us in")
        if isinstance(error, exceptions.RESTError):
            return Unavailable(f"its catalog answers with an error: {type(error).__name__}")
        if isinstance(error, pydantic.ValidationError):  # whose text has what was answered, keys of a store included
            return Unavailable("its catalog's answer is none of Iceberg's protocol")
        if isinstance(error, requests.RequestException):
            return Unavailable("its catalog does not answer")
        if isinstance(error, (OSError, pa.ArrowException)):
            return Unavailable(f"a file of table {name} cannot be read or written: {str(error)[:200]}")
        return error


class _Timed(HTTPAdapter):
    """Requests that end."""

    def send(self, request: Any, **how: Any) -> Any:
        return super().send(request, **{**how, "timeout": ANSWER_S})


class _Catalog(RestCatalog):
    """Of which nothing that a catalog answers has code of its choice run here."""

    def _load_file_io(self, properties: Properties = EMPTY_DICT, location: str | None = None) -> PyArrowFileIO:
        return PyArrowFileIO({**self.properties, **properties})

    def _create_session(self) -> requests.Session:
        session = super()._create_session()
        for scheme in ("http://", "https://"):
            session.mount(scheme, _Timed())
        return session


def _is_of(snapshot: Snapshot, owner: str) -> bool:
    return snapshot.summary is not None and snapshot.summary[SINK] == owner


def _type(kind: str, element_id: int) -> IcebergType:
    if kind.startswith("list<"):
        return ListType(element_id, _type(kind[5:-1], 0), element_required=False)
    decimal = DECIMAL.fullmatch(kind)
    return DecimalType(int(decimal[1]), int(decimal[2])) if decimal else _TYPES[kind]
