"""COPY as a conversation: what the client sends until it is done, or what it is sent.

Nobody reads a client's socket while its rows are being taken, so it sends no faster than they are; and nothing is made
for one whose socket is full.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import aclosing
from dataclasses import replace

from adapter.encode.copied import CopyWriter
from adapter.session.connection import Connection, Ended, Outbox
from adapter.session.portals import Portal
from adapter.state.interfaces import Incoming, Outgoing, Prepared
from adapter.state.settings import Settings
from adapter.wire import messages as m
from adapter.wire.machine import Broken, Input
from journal.errors import InvalidUsage, TidemarkError

EVENTS_IN_A_ROW = 64
"""Messages that are taken before others have their turn: a client may send a row in each."""


async def copied_in(
    connection: Connection, out: Outbox, incoming: Incoming, fatal: Callable[[TidemarkError], None]
) -> str:
    """Take everything that the client sends; the command tag.  Raises what taking it raises, and 57014 where the
    client gives up; ``fatal`` is told what ends the connection, and raises :class:`Ended`."""
    machine, handled = connection.machine, 0
    machine.happened(Input.COPY_IN)
    out.send(m.copy_response(b"G", incoming.binary, incoming.columns))
    out.flush()
    try:
        while True:
            event = machine.next_event()
            if event is None:
                if connection.closed:
                    raise Ended
                await connection.received()
                continue
            if type(event) is m.CopyData:
                await incoming.take(event.data)
                handled += 1
                if handled % EVENTS_IN_A_ROW == 0:
                    await asyncio.sleep(0)
            elif type(event) is m.CopyDone:
                return await incoming.done()
            elif type(event) is m.CopyFail:
                await incoming.given_up(event.reason)
            elif type(event) is Broken:
                error = InvalidUsage(event.reason, sqlstate=event.sqlstate)
                if event.fatal:
                    fatal(error)
                raise error
            else:
                raise Ended  # Terminate: there is nobody to tell
    finally:
        await incoming.close()


async def copied_out(out: Outbox, prepared: Prepared, outgoing: Outgoing, settings: Settings) -> str:
    """Send all rows; the command tag."""
    columns = tuple(outgoing.result.columns or ())
    writer = CopyWriter(columns, outgoing.options, settings.zone, settings.extra_float_digits)
    portal = Portal("", replace(prepared, columns=columns), (), (), settings.zone)
    progress = outgoing.progress
    try:
        portal.start(outgoing.result, settings)
        out.send(m.copy_response(b"H", writer.binary, len(columns)))
        async with aclosing(portal.batches(None)) as batches:
            async for batch in batches:
                for piece, rows in writer.pieces(batch):
                    out.send(piece)
                    progress.rows += rows
                    progress.bytes += len(piece)
                    await out.flush_if_large()
        out.send(writer.end())
        out.send(m.COPY_DONE)
    finally:
        outgoing.copying.end(progress)
        await portal.close()
    return f"COPY {progress.rows}"
