"""Deltas from a snapshot on: history first, then the live log, without a gap and without a queue in between."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Protocol

from catalog_log import delta
from catalog_log.delta import Delta
from catalog_log.fold import Verdict, VerdictKind
from catalog_log.image import Image


class Source(Protocol):
    @property
    def image(self) -> Image: ...

    def images_between(self, lower: int, upper: int) -> Iterator[Image]: ...

    def subscribe(self, callback: Callable[[Image, Image, Sequence[tuple[Verdict, Image]]], None]) -> Callable: ...


class Tail:
    """Calls ``callback`` with the delta from empty to ``first``, then with one per admitted proposal after it."""

    def __init__(self, source: Source, first: Image, callback: Callable[[Delta], None]) -> None:
        self._source = source
        self._callback = callback
        self._seen = first
        self._live = False
        self._ended = False
        self._lock = threading.Lock()

    def begin(self) -> Callable[[], None]:
        """Replay in this thread, then follow; returns what ends it."""
        self._callback(delta.from_empty(self._seen))
        unsubscribe = self._source.subscribe(self._on_batch)
        while not self._live:
            with self._lock:
                # A batch that is published from here on finds `_live` set, one before it is in the image.
                self._live = self._seen.upper == self._source.image.upper
            if not self._live:
                for image in self._source.images_between(self._seen.upper, self._source.image.upper):
                    self._advance(image)

        def end() -> None:
            self._ended = True
            unsubscribe()

        return end

    def _on_batch(self, _old: Image, _new: Image, steps: Sequence[tuple[Verdict, Image]]) -> None:
        with self._lock:
            if not self._live:
                return
            for verdict, image in steps:
                if verdict.kind is VerdictKind.ACCEPTED and image.upper > self._seen.upper and not self._ended:
                    self._advance(image)

    def _advance(self, image: Image) -> None:
        step = delta.between(self._seen, image)
        self._seen = image
        self._callback(step)
