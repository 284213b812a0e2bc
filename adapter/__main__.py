"""``python -m adapter``: a SQL front on the Postgres wire.  Stateless: run as many as you like on one environment."""

from __future__ import annotations

import argparse
import asyncio
import logging
import sys
import uuid
from contextlib import AsyncExitStack

import uvloop

import journal.without_pandas  # noqa: F401 - before anything makes an array
from adapter.ddl_topic.topic import DdlTopic
from adapter.execute.build import open_executor
from adapter.execute.executor import TidemarkExecutor
from adapter.execute.planning import Planner
from adapter.server.collecting import LOOK_S, Collector
from adapter.server.descriptors import sessions_that_fit
from adapter.server.server import Limits, Server
from adapter.webhooks.listener import Webhooks
from adapter.webhooks.posting import Posting
from collection.topic_keeper import add_partitions
from journal import process
from journal.doors import SQL_HINT, add_insecure, check_address, is_loopback, password_from
from journal.errors import InvalidUsage, TidemarkError, Unavailable
from journal.names import TopicNames

log = logging.getLogger(__name__)

PORT = 6875


def parser() -> argparse.ArgumentParser:
    made = process.common_arguments(argparse.ArgumentParser(prog="python -m adapter", description=__doc__))
    made.add_argument("--host", default="127.0.0.1", help="address to listen on (default: %(default)s)")
    made.add_argument("--port", type=int, default=PORT, help="0 takes any free port (default: %(default)s)")
    made.add_argument("--webhook-port", type=int, metavar="PORT",
                      help="take rows over HTTP on this port, 0 takes any free one (default: off)")  # fmt: skip
    made.add_argument("--password-file", metavar="FILE",
                      help="ask for the password in its first line (SCRAM-SHA-256); else trust")  # fmt: skip
    add_insecure(made)
    made.add_argument("--max-connections", type=int, default=Limits.connections_max, metavar="N",
                      help="sessions at once; the next one is refused with 53300 (default: %(default)s)")  # fmt: skip
    add_partitions(made)
    made.add_argument("--no-ddl-topic", action="store_true", help="do not execute requests of the ddl topic")
    return made


def main() -> int:
    """Serve until told to stop.  Exit code 0 when told to, 1 when it could not start or its logs failed, 2 when it was
    asked for wrongly."""
    arguments = parser().parse_args()
    process.setup_logging("adapter")
    try:
        password = password_from(arguments.password_file)
        check_address(arguments.host, password, arguments.insecure, SQL_HINT)
    except InvalidUsage as error:
        print(f"adapter: {error.message}" + (f" ({error.hint})" if error.hint else ""), file=sys.stderr)
        return 2
    # Never closed: closing a runner joins the threads of its executor without a bound.  The process ends instead.
    runner = asyncio.Runner(loop_factory=uvloop.new_event_loop)
    try:
        return runner.run(serve(arguments, password))
    except TidemarkError as error:
        log.error("stopped: %s", error.message, extra={"sqlstate": error.sqlstate, "detail": error.detail})
        print(f"adapter: {error.message}" + (f" ({error.hint})" if error.hint else ""), file=sys.stderr)
        return 2 if isinstance(error, InvalidUsage) else process.TRY_AGAIN if isinstance(error, Unavailable) else 1
    except Exception:
        log.exception("stopped by an error of ours")
    return 1


async def serve(arguments: argparse.Namespace, password: str | None) -> int:
    """One adapter, from opening its logs to closing them: at most 10 s after it was told to stop."""
    # Signals and the parent's pipe may come while the logs are still being opened.
    stopped = process.stop_event()
    told = asyncio.ensure_future(asyncio.to_thread(stopped.wait))
    names = TopicNames(arguments.env)
    async with AsyncExitStack() as stack:
        opening = asyncio.ensure_future(
            stack.enter_async_context(open_executor(
                arguments.kafka, names, f"adapter-{uuid.uuid4().hex[:12]}", arguments.partitions
            ))
        )
        await asyncio.wait((opening, told), return_when=asyncio.FIRST_COMPLETED)
        if not opening.done():
            return 0  # opening may wait for a broker for minutes, and nobody is served yet
        executor = opening.result()
        limits = Limits(connections_max=sessions_that_fit(arguments.max_connections, Limits.strangers_max))
        server = Server(executor, password=password, limits=limits)
        executor.serves(server.session_states)
        host, port = await server.start(arguments.host, arguments.port)
        webhooks, told_webhooks = None, {}
        if arguments.webhook_port is not None:
            everybody = not (arguments.insecure or is_loopback(arguments.host))
            webhooks = Webhooks(Posting(executor), everybody=everybody)
            stack.push_async_callback(webhooks.stop)
            at, on = await webhooks.start(arguments.host, arguments.webhook_port)
            told_webhooks = {"webhooks": f"{at}:{on}"}
        ddl = None if arguments.no_ddl_topic else DdlTopic(arguments.kafka, names, executor)
        stack.push_async_callback(stop, server, ddl)
        if ddl is not None:
            ddl.start()
        collector = Collector()
        executor.planner.at_rest = collector.at_rest
        collector.start()
        looks = asyncio.ensure_future(collecting(executor.planner))
        stack.callback(looks.cancel)
        process.announce_ready(address=f"{host}:{port}", **told_webhooks)
        await until(told, executor)
    return 0


async def stop(server: Server, ddl: DdlTopic | None) -> None:
    """Both at once, so that sessions hear of it though the DDL topic waits for a broker."""
    await asyncio.gather(server.stop(), *([] if ddl is None else [ddl.close()]))


async def collecting(planner: Planner) -> None:
    """Between long statements collections come with the next one; this is for when there is none."""
    while True:
        await asyncio.sleep(LOOK_S)
        planner.rest()


async def until(told: asyncio.Future, executor: TidemarkExecutor) -> None:
    """Until ``told`` to stop.  Raises what stopped the catalog's or the oracle's log, if that comes first: a stopped
    process beats one that answers from a log that it can no longer follow."""
    loop = asyncio.get_running_loop()
    over: asyncio.Future[None] = loop.create_future()

    def finish(error: BaseException | None) -> None:
        if not over.done():
            over.set_result(None) if error is None else over.set_exception(error)

    for failure in executor.failures:
        failure.add_done_callback(lambda done: loop.call_soon_threadsafe(finish, done.result()))
    told.add_done_callback(lambda _done: finish(None))
    await over


if __name__ == "__main__":
    process.leave(main())
