"""Sixteen writers in four adapter processes, all appending to one catalog: what contention for one upper costs.

Each process is an adapter's executor without its socket.  A writer executes CREATE TABLE after CREATE TABLE, so every
one that counts was admitted by the log and is in force for everybody.  Writers of one process share proposals (group
commit); the processes compete.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import time
import uuid
from dataclasses import replace

import uvloop

from adapter.execute.build import open_executor
from adapter.execute.ddl_commit import Asked
from adapter.system.schemas import RELATIONS
from bench.figure import Figure
from bench.peers import Absent, etcd_sets
from catalog_log.bootstrap import create_environment
from journal.names import TopicNames
from sql.objects.names import Names
from sql.syntax.parse import parse
from sql.syntax.statements import Name

NAME = "appends of 16 writers in 4 processes, one upper"
PROCESSES, WRITERS = 4, 4
SECONDS = 5
START_S = 8
"""From starting the processes until all begin at once: importing takes 2 s, four times that on two busy cores."""


def figure(bootstrap: str) -> Figure:
    """On an environment of its own."""
    names = TopicNames(f"bench-{uuid.uuid4().hex[:8]}")
    create_environment(bootstrap, names, 1)
    alone = _admitted_per_s(bootstrap, names, processes=1, writers=1)
    together = _admitted_per_s(bootstrap, names, PROCESSES, WRITERS)
    what, note = "etcd's compare-and-set on one key, 16 callers", ""
    try:
        limit = etcd_sets(PROCESSES * WRITERS, SECONDS).sets_per_s
    except Absent as error:
        limit, what, note = alone, "one writer of ours alone", f"{error}; "
    note += f"one writer alone: {alone:.0f}/s"
    return Figure(NAME, together, limit, what, "1/s", "more", int(together * SECONDS), note, "≥ 10")


def _admitted_per_s(bootstrap: str, names: TopicNames, processes: int, writers: int) -> float:
    begin = time.time() + START_S
    command = [sys.executable, "-m", "bench.writers", bootstrap, names.env, str(begin), str(writers)]
    running = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(processes)]
    counts = []
    for process in running:
        out, _ = process.communicate(timeout=START_S + SECONDS + 60)
        if process.returncode:
            raise RuntimeError(f"a writer process ended with code {process.returncode}")
        counts.append(json.loads(out)["admitted"])
    return sum(counts) / SECONDS


async def write(bootstrap: str, env: str, begin: float, writers: int) -> int:
    """Statements acknowledged within ``SECONDS`` from ``begin`` (seconds since the epoch)."""
    template = parse("CREATE TABLE t (a int)")
    asked = Asked("CREATE TABLE t (a int)", "bench")
    session, mine, done = Names(system=RELATIONS), uuid.uuid4().hex[:8], 0
    async with open_executor(bootstrap, TopicNames(env), f"bench-{mine}") as executor:
        late = time.time() - begin
        if late > 0:
            raise RuntimeError(f"opening took {late:.1f} s longer than the {START_S} s it was given")

        async def writer(number: int) -> None:
            nonlocal done
            count = 0
            while time.time() < begin + SECONDS:
                count += 1
                name = Name((f"w{mine}_{number}_{count}",))
                await executor.execute_ddl(replace(template, name=name), session, asked)
                done += time.time() < begin + SECONDS

        await asyncio.sleep(begin - time.time())  # not a wait for an event: all processes begin at one moment
        await asyncio.gather(*(writer(number) for number in range(writers)))
    return done


if __name__ == "__main__":
    _bootstrap, _env, _begin, _writers = sys.argv[1:]
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        found = runner.run(write(_bootstrap, _env, float(_begin), int(_writers)))
    print(json.dumps({"admitted": found}))
