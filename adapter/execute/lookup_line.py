"""One node's lookups, over its own socket (``controllers/compute/lookup_server.py``), connected to when first asked.

No thread and no gRPC between the loop and the index: those cost three times what the look-up does.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence

import pyarrow as pa

from controllers.peeks.lookup_codec import (
    LENGTH,
    RESPONSE_BYTES_MAX,
    Answer,
    Asked,
    decode_answers,
    encode_lookups,
    framed,
)
from journal.errors import TidemarkError

log = logging.getLogger(__name__)

TIMEOUT_S = 5.0
"""A request of lookups waits for nothing, so this is for a controller that hangs or is gone."""

Place = Callable[[], Awaitable[tuple[str, int]]]
"""Finds the host and port to connect to.  Raises ``TidemarkError`` or ``OSError`` where nobody says."""


class LookupLine:
    """One request at a time (:class:`adapter.execute.lookups.Lookups` sees to that).  Lives on one event loop."""

    def __init__(self, place: Place) -> None:
        self._place = place
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def ask(self, asked: Sequence[Asked]) -> Sequence[Answer]:
        """The answers; where the node cannot be asked, each is "not now", and the next request connects anew.

        Each of those is then asked by itself, which tells its reader what is wrong if it still is.
        """
        try:
            async with asyncio.timeout(TIMEOUT_S):
                body = await self._exchange(framed(encode_lookups(asked)))
            return decode_answers(body, asked)
        except (OSError, EOFError, TidemarkError, pa.ArrowException) as error:
            log.info("lookups were not answered together", extra={"why": f"{type(error).__name__}: {error}"[:200]})
            self.close()
            return [None] * len(asked)
        except BaseException:
            self.close()  # what is on its way would be taken for the next request's answer
            raise

    async def _exchange(self, request: bytes) -> bytes:
        if self._streams is None:
            self._streams = await asyncio.open_connection(*await self._place())
        reader, writer = self._streams
        writer.write(request)
        (size,) = LENGTH.unpack(await reader.readexactly(LENGTH.size))
        if size > RESPONSE_BYTES_MAX:
            raise TidemarkError(f"a response to lookups of {size} bytes", detail=f"at most {RESPONSE_BYTES_MAX}")
        return await reader.readexactly(size)

    def close(self) -> None:
        """Hang up."""
        streams, self._streams = self._streams, None
        if streams is not None:
            streams[1].transport.abort()
