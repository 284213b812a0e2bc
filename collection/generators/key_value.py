"""KEY VALUE: keys that are written again and again, with random bytes as values.  Pure.

Event *n* writes key *n* mod KEYS; the key's partition is the key mod PARTITIONS, as in Materialize.  The value is
VALUE SIZE bytes by the seed and *n*.  Under ENVELOPE UPSERT what the key had, the value of event *n* - KEYS, goes as it
comes.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from catalog_log.objects import Column, Generator
from collection.generators.core import batch_of, blobs, changes_of
from collection.generators.mixed import drawn

KEYS, PARTITIONS, VALUE_SIZE, SEED, OFFSET, UPSERT, ROUNDS = (
    "keys", "partitions", "value size", "seed", "include offset", "upsert", "snapshot rounds"
)  # fmt: skip

COLUMNS = (Column("key", "int8", False), Column("partition", "int8", False), Column("value", "bytea", False))
OFFSET_COLUMN = Column("offset", "int8", False)

_VALUES = 1
"""What is drawn."""


def snapshot(generator: Generator) -> int:
    """How many events write each key so often as it is to be written at first."""
    return generator.option(ROUNDS) * generator.option(KEYS)


class KeyValue:
    def __init__(self, generator: Generator) -> None:
        self._keys, self._partitions = generator.option(KEYS), generator.option(PARTITIONS)
        self._size, self._seed = generator.option(VALUE_SIZE), generator.option(SEED)
        self._upsert, self._offset = bool(generator.option(UPSERT)), bool(generator.option(OFFSET))
        self._columns = (*COLUMNS, OFFSET_COLUMN) if self._offset else COLUMNS
        self.batch = batch_of((1 + self._upsert) * (self._size + 32))

    def changes(self, lower: int, upper: int) -> pa.Table:
        numbers = np.arange(lower, upper, dtype=np.int64)
        diffs = None
        if self._upsert:
            numbers = np.stack([numbers - self._keys, numbers], axis=1).reshape(-1)
            diffs = np.tile(np.array([-1, 1], np.int64), upper - lower)
            there = numbers >= 0
            numbers, diffs = numbers[there], diffs[there]
        keys = numbers % self._keys
        arrays: list[object] = [keys, keys % self._partitions, self._values(numbers)]
        return changes_of(self._columns, [*arrays, numbers] if self._offset else arrays, diffs)

    def _values(self, numbers: np.ndarray) -> pa.Array:
        words = -(-self._size // 8)
        places = numbers[:, None].astype(np.uint64) * np.uint64(words) + np.arange(words, dtype=np.uint64)
        found = drawn(self._seed, _VALUES, places.reshape(-1)).astype("<u8").view(np.uint8)
        return blobs(found.reshape(len(numbers), 8 * words), np.full(len(numbers), self._size, np.int64))
