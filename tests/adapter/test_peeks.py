"""Peeks over a real Flight server: batches, errors in their family, another node, a cancel, a deadline."""

from __future__ import annotations

import asyncio
import json
import threading
import time

import pyarrow as pa
import pyarrow.flight as flight
import pytest

from adapter.execute import peeks as module
from adapter.execute.lookup_line import LookupLine
from adapter.execute.peeks import FlightPeeks
from catalog_log import model, records
from catalog_log.log import CatalogLog
from catalog_log.model import Node
from controllers.compute.lookup_server import LookupServer
from controllers.peeks.lookup_codec import Asked, Found
from controllers.peeks.peek import Considered, Lookup, Peek
from controllers.peeks.peek_codec import decode_peek, encode_error
from embedded.ports import free_ports
from journal.aio import Bridge
from journal.errors import InvalidUsage, TidemarkError, Unavailable
from journal.memory import MemoryTransport
from journal.timestamps import DataTs
from tests.adapter.world import GENESIS, World
from tests.finishing import finished

SCHEMA = pa.schema([pa.field("a", pa.int64())], metadata={b"as_of": b"41"})


COUNTED = Considered(12, 11, 400, 0, 3)


class Controller(flight.FlightServerBase):
    """Answers ``rows N``, ``hang``, ``fail``."""

    def __init__(self) -> None:
        super().__init__("grpc://127.0.0.1:0")
        self.asked: list[Peek] = []
        self.cancelled: list[str] = []
        self.looked_up: list[list[int]] = []
        self.hanging = threading.Event()
        self.stuck = threading.Semaphore(0)
        self.over = threading.Event()
        self.go_on = threading.Event()
        self.lookup_server = LookupServer("127.0.0.1", 0, self)
        self.lookups_at = str(self.lookup_server.port).encode()

    def lookups(self, question, keys):
        """In place of the desk: each key's row is the key; a negative one breaks the controller."""
        self.looked_up.append([key[0] for key in keys])
        if (-1,) in keys:
            self.lookup_server.close()
        return Found(pa.record_batch({"a": self.looked_up[-1]}, SCHEMA.remove_metadata()), DataTs(41), [1] * len(keys))

    def do_get(self, context, ticket):
        peek = decode_peek(ticket.ticket)
        self.asked.append(peek)
        word, _, rest = peek.sql.partition(" ")
        if word == "fail":
            raise flight.FlightServerError(
                encode_error(InvalidUsage("division by zero", sqlstate="22012", hint="do not"))
            )
        if word == "stuck":
            self.stuck.release()
            self.over.wait(30)
        if word == "hang":
            self.hanging.set()
            self.go_on.wait(20)
        count = int(rest or 0)
        batches = (pa.record_batch([pa.array([n], pa.int64())], schema=SCHEMA) for n in range(count))
        return flight.GeneratorStream(SCHEMA, batches)

    def do_action(self, context, action):
        if action.type == "lookups":
            return [self.lookups_at]
        if action.type == "considered":
            asked = decode_peek(action.body.to_pybytes())
            if asked.sql == "fail":
                raise flight.FlightServerError(encode_error(InvalidUsage("no", sqlstate="08P01")))
            return [json.dumps({"u1": COUNTED._asdict(), "u2": None} if asked.sql == "count" else [1]).encode()]
        self.cancelled.append(action.body.to_pybytes().decode())
        self.go_on.set()
        return [json.dumps({}).encode()]


def node(address: str, incarnation: str):
    return records.put(model.NODES, "compute/default", Node("compute", "default", address, incarnation, 0))


def run(story):
    async def bounded():
        world = World()
        catalog = CatalogLog(MemoryTransport(world.catalog_topic), "test", expected=GENESIS)
        bridge = Bridge(asyncio.get_running_loop())
        controller = Controller()
        peeks = FlightPeeks(catalog, bridge)

        async def register(address, incarnation):
            await bridge.wait(
                catalog.compare_and_append(catalog.upper(), catalog.upper() + 1, [node(address, incarnation)])
            )

        try:
            await bridge.wait(catalog.when_upper(1, 10))
            await story(peeks, controller, register)
        finally:
            controller.go_on.set()
            controller.over.set()
            peeks.close()
            controller.lookup_server.close()
            controller.shutdown()
            catalog.close()

    finished(bounded())


def peek(sql: str, peek_id: str = "p") -> Peek:
    return Peek(peek_id, sql, (), 1, 41)


def soon(seconds: float = 20) -> float:
    return time.monotonic() + seconds


async def values(answer) -> list[int]:
    return [v async for batch in answer.batches() for v in batch.column(0).to_pylist()]


def test_a_cluster_says_which_files_it_would_read():
    async def story(peeks, controller, register):
        with pytest.raises(Unavailable, match='cluster "default" is away'):
            await peeks.considered(peek("count"), "default")
        await register(f"127.0.0.1:{controller.port}", "one")
        assert await peeks.considered(peek("count"), "default") == {"u1": COUNTED, "u2": None}
        with pytest.raises(InvalidUsage, match="no"):
            await peeks.considered(peek("fail"), "default")
        with pytest.raises(TidemarkError, match="what nobody here knows"):
            await peeks.considered(peek("odd"), "default")

    run(story)


def test_batches_arrive_in_order_with_their_timestamp():
    async def story(peeks, controller, register):
        await register(f"127.0.0.1:{controller.port}", "one")
        answer = await peeks.peek(peek("rows 50"), "default", soon())
        assert answer.as_of == 41
        assert await values(answer) == list(range(50))
        answers = await asyncio.gather(*(peeks.peek(peek("rows 3"), "default", soon()) for _ in range(20)))
        assert [await values(a) for a in answers] == [[0, 1, 2]] * 20

    run(story)


def test_lookups_of_readers_who_ask_at_once_go_together_and_where_they_cannot_they_are_asked_by_themselves():
    async def story(peeks, controller, register):
        asked = [peek("")._replace(lookup=Lookup("u2", "u1", (key,), "{}")) for key in (1, 2, 2)]
        assert await peeks.lookup(asked[0], "default") is None, "there is no node yet"
        await register(f"127.0.0.1:{free_ports(1)[0]}", "dead")
        assert await peeks.lookup(asked[0], "default") is None
        await register(f"127.0.0.1:{controller.port}", "one")
        answers = await asyncio.gather(*(peeks.lookup(each, "default") for each in asked))
        assert [(a.as_of, await values(a)) for a in answers] == [(41, [1]), (41, [2]), (41, [2])]
        assert controller.looked_up == [[1, 2]]

    run(story)


def test_lookups_whose_line_breaks_are_asked_by_themselves_and_the_next_find_the_new_port():
    async def story(peeks, controller, register):
        def look_up(key):
            return peeks.lookup(peek("")._replace(lookup=Lookup("u2", "u1", (key,), "{}")), "default")

        await register(f"127.0.0.1:{controller.port}", "one")
        assert await values(await look_up(1)) == [1]
        assert await look_up(-1) is None, "it hung up instead of answering"
        assert await look_up(2) is None, "nobody listens there any more"
        controller.lookups_at = b"no port"
        assert await look_up(3) is None
        controller.lookup_server = LookupServer("127.0.0.1", 0, controller)
        controller.lookups_at = str(controller.lookup_server.port).encode()
        assert await values(await look_up(4)) == [4]
        assert controller.looked_up == [[1], [-1], [4]]

    run(story)


@pytest.mark.parametrize("sent", (b"\xff\xff\xff\xff", b"\0\0\0\x05short"[:7], b"\0\0\0\x04what", b""))
def test_what_is_no_answer_to_lookups_ends_the_line(sent):
    async def story():
        async def serve(reader, writer):
            heard.append(await reader.readexactly(4))
            writer.write(sent)
            writer.close()

        heard = []
        server = await asyncio.start_server(serve, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]

        async def place():
            return "127.0.0.1", port

        line = LookupLine(place)
        asked = [Asked(peek("")._replace(lookup=Lookup("u2", "u1", (1,), "{}")).question(), [(1,), (2,)])]
        assert [await line.ask(asked) for _ in range(2)] == [[None], [None]]
        assert len(heard) == 2, "it connected anew"
        server.close()

    finished(story())


def test_an_error_keeps_its_family_and_sqlstate():
    async def story(peeks, controller, register):
        await register(f"127.0.0.1:{controller.port}", "one")
        with pytest.raises(InvalidUsage) as caught:
            await peeks.peek(peek("fail"), "default", soon())
        assert (caught.value.sqlstate, caught.value.message, caught.value.hint) == (
            "22012",
            "division by zero",
            "do not",
        )

    run(story)


def test_a_dead_node_is_waited_for_until_another_takes_its_place():
    async def story(peeks, controller, register):
        await register(f"127.0.0.1:{free_ports(1)[0]}", "dead")
        told: asyncio.Queue[str] = asyncio.Queue()
        asked = asyncio.create_task(peeks.peek(peek("rows 1"), "default", soon(), told.put_nowait))
        assert await told.get() == 'cluster "default" is away: the statement waits for its controller to come back'
        assert not asked.done()
        await register(f"127.0.0.1:{controller.port}", "alive")
        assert await values(await asked) == [0]
        assert told.empty(), "it is said once"

    run(story)


def test_without_a_node_a_peek_waits_for_one_and_then_says_so():
    async def story(peeks, controller, register):
        asked = asyncio.create_task(peeks.peek(peek("rows 1"), "default", soon()))
        await asyncio.sleep(0.05)
        await register(f"127.0.0.1:{controller.port}", "one")
        assert await values(await asked) == [0]
        with pytest.raises(Unavailable) as caught:
            await peeks.peek(peek("rows 1"), "elsewhere", soon(0.2))
        assert "no running controller" in caught.value.message

    run(story)


def test_a_dead_node_ends_with_the_deadline():
    async def story(peeks, controller, register):
        await register(f"127.0.0.1:{free_ports(1)[0]}", "dead")
        with pytest.raises(TidemarkError) as caught:
            await peeks.peek(peek("rows 1"), "default", soon(0.5))
        assert caught.value.sqlstate in ("57P03", "57014")

    run(story)


def test_a_cancelled_peek_is_cancelled_at_its_node():
    async def story(peeks, controller, register):
        await register(f"127.0.0.1:{controller.port}", "one")
        asked = asyncio.create_task(peeks.peek(peek("hang", "to-cancel"), "default", soon()))
        await asyncio.to_thread(controller.hanging.wait, 10)
        asked.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asked
        await asyncio.to_thread(controller.go_on.wait, 10)
        assert controller.cancelled == ["to-cancel"]

    run(story)


def test_an_answer_that_is_left_is_cancelled():
    async def story(peeks, controller, register):
        await register(f"127.0.0.1:{controller.port}", "one")
        answer = await peeks.peek(peek("rows 10000", "left"), "default", soon())
        batches = answer.batches()
        assert (await anext(batches)).num_rows == 1
        await batches.aclose()
        await asyncio.to_thread(controller.go_on.wait, 10)
        assert controller.cancelled == ["left"]

    run(story)


def test_peeks_that_hang_free_their_places_when_they_are_cancelled_though_nobody_answers(monkeypatch):
    monkeypatch.setattr(module, "THREADS_MAX", 2)

    async def story(peeks, controller, register):
        await register(f"127.0.0.1:{controller.port}", "one")
        for round in range(3):
            hanging = [
                asyncio.create_task(peeks.peek(peek("stuck", f"p{round}.{i}"), "default", soon(30))) for i in range(2)
            ]
            for _ in hanging:
                assert await asyncio.to_thread(controller.stuck.acquire, timeout=20)
            for each in hanging:
                each.cancel()
            await asyncio.gather(*hanging, return_exceptions=True)
        assert await values(await peeks.peek(peek("rows 3"), "default", soon())) == [0, 1, 2]

    run(story)


def test_who_waits_behind_peeks_that_hang_is_told_so_and_indexes_answer_meanwhile(monkeypatch):
    monkeypatch.setattr(module, "THREADS_MAX", 2)
    monkeypatch.setattr(module, "SLOT_WAIT_S", 0.2)

    async def story(peeks, controller, register):
        await register(f"127.0.0.1:{controller.port}", "one")
        hanging = [asyncio.create_task(peeks.peek(peek("stuck", f"p{i}"), "default", soon(30))) for i in range(2)]
        for _ in hanging:
            assert await asyncio.to_thread(controller.stuck.acquire, timeout=20)
        with pytest.raises(TidemarkError) as caught:
            await peeks.peek(peek("rows 1"), "default", soon())
        assert caught.value.sqlstate == "53300"
        with pytest.raises(TidemarkError) as caught:
            await peeks.peek(peek("rows 1"), "default", soon(0.1))
        assert caught.value.sqlstate == "57014"
        looked_up = peek("rows 2")._replace(lookup=Lookup("u2", "u1", (7,), "{}"))
        assert (await values(await peeks.lookup(looked_up, "default"))) == [7]
        assert await values(await peeks.peek(looked_up, "default", soon())) == [0, 1]
        for each in hanging:
            each.cancel()
        await asyncio.gather(*hanging, return_exceptions=True)
        assert await values(await peeks.peek(peek("rows 1"), "default", soon())) == [0]

    run(story)
