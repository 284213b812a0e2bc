"""One snapshot of an Iceberg table, made of the files that are added and those that go.

pyiceberg's own, but for three things: rewriting files without changing rows is ``replace``, which says to whoever reads
changes that there are none; manifests of which nothing is left are not carried on; and those there are are merged as it
merges them for appends alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from pyiceberg.io import FileIO
from pyiceberg.manifest import DataFile, ManifestEntryStatus, ManifestFile
from pyiceberg.table import Table, Transaction
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.snapshots import Operation, Snapshot, Summary
from pyiceberg.table.update import TableRequirement, TableUpdate
from pyiceberg.table.update.snapshot import _ManifestMergeManager, _OverwriteFiles
from pyiceberg.typedef import EMPTY_DICT

MANIFESTS_MAX = 50
"""Manifests, each of one snapshot's files, after which they are merged: what a reader opens before it reads a row."""

MANIFEST_BYTES = 8 << 20
"""As Iceberg has it (``commit.manifest.target-size-bytes``)."""


class _AsItIs(Transaction):
    """One of a single change: pyiceberg's copies all that a table has had a dozen times for each."""

    @property
    def table_metadata(self) -> TableMetadata:
        return self._table.metadata


class NewSnapshot(_OverwriteFiles):
    """Made on the newest snapshot that ``table`` knows; whether that is the newest one still the catalog says."""

    def __init__(
        self, table: Table, operation: Operation, added: Iterable[DataFile], removed: Iterable[DataFile],
        summary: Mapping[str, str],
    ) -> None:  # fmt: skip
        super().__init__(operation, _AsItIs(table), table.io, snapshot_properties=dict(summary))
        for each in added:
            self.append_data_file(each)
        for each in removed:
            self.delete_data_file(each)

    def made(self) -> tuple[tuple[TableUpdate, ...], tuple[TableRequirement, ...]]:
        """Its files of metadata are written; what a catalog is asked for."""
        return self._commit()

    def metadata_files(self) -> list[str]:
        """That were written for it."""
        return [*self._written_manifests, *self._written_manifest_lists]

    def _existing_manifests(self) -> list[ManifestFile]:
        return [each for each in super()._existing_manifests() if each.has_added_files() or each.has_existing_files()]

    def _process_manifests(self, manifests: list[ManifestFile]) -> list[ManifestFile]:
        merging = _ManifestMergeManager(MANIFEST_BYTES, MANIFESTS_MAX, True, self)
        return merging.merge_manifests(manifests)

    def _summary(self, snapshot_properties: dict[str, str] = EMPTY_DICT) -> Summary:
        own, self._operation = self._operation, Operation.OVERWRITE  # of no other kind has it sums
        try:
            found = super()._summary(snapshot_properties)
        finally:
            self._operation = own
        return Summary(own, **found.additional_properties)


def only_of(gone: Sequence[Snapshot], kept: Snapshot, io: FileIO) -> list[str]:
    """Files that nobody needs once ``gone`` are: the oldest of a table that has no other branch, of which ``kept`` is
    the next.  Data files, that is, which went from the table before or with ``kept``, and of metadata what it has not.
    """
    still = {manifest.manifest_path for manifest in kept.manifests(io)}
    found = dict.fromkeys(each.manifest_list for each in gone)
    for each in (*gone, kept):
        for manifest in each.manifests(io):
            if manifest.added_snapshot_id == each.snapshot_id and manifest.deleted_files_count:
                found |= {entry.data_file.file_path: None
                          for entry in manifest.fetch_manifest_entry(io, discard_deleted=False)
                          if entry.status == ManifestEntryStatus.DELETED}  # fmt: skip
            if manifest.manifest_path not in still:
                found[manifest.manifest_path] = None
    return list(found)
