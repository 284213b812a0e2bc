"""``python -m fleet.health KIND …``: does this process serve?  Exit code 0 if it does, else 1 and why, in one line.

Each kind is asked by a request of the sort it is there for: an adapter runs a statement, a broker tells who is in the
cluster, a controller tells its catalog frontier or that it stands by, Spark's master and workers tell how they are, and
of a subscriber, whom nobody can ask, the brokers tell that it is in its group.  Meant to be called every few seconds
beside the process, on its own host.
"""

from __future__ import annotations

import argparse
import json
import signal
import socket
import sys

from journal.errors import TidemarkError, Unavailable
from journal.names import TopicNames

TIMEOUT_S = 4.0
"""For an answer: twice the gap after losing a broker, during which nobody can write, and below ``END_S``."""

END_S = 9
"""When a check ends whatever it waits for, just before the 10 s after which whoever runs it counts it as failed.  An
engine may count it and let it run on: on a machine that was too busy to answer, eight at once per broker were seen, and
kept it busy."""


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(prog="python -m fleet.health", description=__doc__)
    kinds = made.add_subparsers(dest="kind", required=True)
    adapter_ = kinds.add_parser("adapter", help="runs SELECT 1")
    adapter_.add_argument("address", metavar="HOST:PORT")
    adapter_.add_argument("--password-file", metavar="FILE", help="as the adapter's")
    broker_ = kinds.add_parser("broker", help="asks who is in the cluster")
    broker_.add_argument("address", metavar="HOST:PORT")
    controller_ = kinds.add_parser("controller", help="asks for its catalog frontier")
    controller_.add_argument("address", metavar="HOST:PORT")
    spark_ = kinds.add_parser("spark", help="asks a master of Spark's whether it leads, a worker whether it has one")
    spark_.add_argument("address", metavar="HOST:PORT", help="where it says how it is (--web-port)")
    subscriber_ = kinds.add_parser("subscriber", help="asks the brokers whether this host is in its group")
    subscriber_.add_argument("--kafka", required=True, metavar="HOST:PORT[,…]")
    subscriber_.add_argument("--env", default="tidemark")
    subscriber_.add_argument("--controller", required=True, metavar="NAME")
    return made


# Each imports what it needs itself: a check runs every few seconds, and its imports are most of what it costs.


def adapter(address: str, password: str | None = None) -> str:
    """It takes a session and answers a statement, which needs a barrier of the oracle.  Raises ``Unavailable``."""
    import psycopg

    host, _, port = address.rpartition(":")
    try:
        with psycopg.connect(
            host=host, port=port, user="tidemark", dbname="tidemark", password=password, connect_timeout=int(TIMEOUT_S),
            application_name="health",
        ) as session:  # fmt: skip
            found = session.execute("SELECT 1").fetchall()
    except psycopg.Error as error:
        raise Unavailable(f"adapter at {address}: {error}") from None
    if found != [(1,)]:
        raise Unavailable(f"adapter at {address} says {found}")
    return "answers"


def broker(address: str) -> str:
    """It answers, and is a member of the cluster as it knows it.  Raises ``Unavailable``."""
    from journal import clients

    admin = clients.make_admin(address)
    found = clients.reach(address, lambda timeout_s: admin.list_topics(timeout=timeout_s), TIMEOUT_S)
    members = {f"{each.host}:{each.port}" for each in found.brokers.values()}
    if address not in members:
        raise Unavailable(f"broker at {address} is no member yet: it knows {', '.join(sorted(members)) or 'none'}")
    return f"one of {len(members)}"


def controller(address: str) -> str:
    """It answers, and has heard of the catalog from its subscriber, or stands by.  Raises ``Unavailable``."""
    import pyarrow as pa
    import pyarrow.flight as flight

    try:
        with flight.FlightClient(f"grpc://{address}") as client:
            options = flight.FlightCallOptions(timeout=TIMEOUT_S)
            answer = b"".join(r.body.to_pybytes() for r in client.do_action(flight.Action("status", b""), options))
    except (pa.ArrowException, OSError) as error:
        raise Unavailable(f"controller at {address}: {str(error).splitlines()[0]}") from None
    status = json.loads(answer)
    if status.get("standing_by"):
        return f"{status['controller']} stands by"
    if status["catalog_frontier"] <= 0:
        raise Unavailable(f"{status['controller']} has heard nothing of the catalog yet")
    return f"{status['controller']} at catalog frontier {status['catalog_frontier']}"


def spark(address: str) -> str:
    """A master leads, or a worker is known to one.  Raises ``Unavailable``."""
    from urllib.request import urlopen

    try:
        with urlopen(f"http://{address}/json/", timeout=TIMEOUT_S) as answer:
            found = json.load(answer)
    except (OSError, ValueError) as error:
        raise Unavailable(f"spark at {address}: {error}") from None
    if "workers" in found:
        if found["status"] != "ALIVE":
            raise Unavailable(f"master at {address} is {found['status']}")
        return f"master of {sum(each['state'] == 'ALIVE' for each in found['workers'])}"
    if not found["masterwebuiurl"]:
        raise Unavailable(f"worker at {address} has no master yet: it looks for {found['masterurl'] or 'one'}")
    return f"worker of {found['masterurl']}"


def subscriber(bootstrap: str, names: TopicNames, of: str, hosts: frozenset[str]) -> str:
    """A worker on one of ``hosts`` is a member of the group, acting or standing by.  Raises ``Unavailable``."""
    from journal import clients
    from subscribers.worker import app_id

    admin = clients.make_admin(bootstrap)
    group = app_id(names, of)

    def ask(timeout_s: float) -> object:
        return admin.describe_consumer_groups([group], request_timeout=timeout_s)[group].result()

    found = clients.reach(bootstrap, ask, TIMEOUT_S)
    members = {member.host.lstrip("/") for member in found.members}
    if not members & hosts:
        raise Unavailable(f"group {group} has nobody from here: {', '.join(sorted(members)) or 'it is empty'}")
    return f"one of {len(found.members)} in {group}"


def own_addresses() -> frozenset[str]:
    """What the brokers may see a process of this host come from."""
    try:
        return frozenset({"127.0.0.1", *socket.gethostbyname_ex(socket.gethostname())[2]})
    except OSError:
        return frozenset({"127.0.0.1"})


def check(options: argparse.Namespace) -> str:
    """What is well.  Raises ``Unavailable`` with what is not."""
    match options.kind:
        case "adapter":
            from journal.doors import password_from

            return adapter(options.address, password_from(options.password_file))
        case "broker":
            return broker(options.address)
        case "controller":
            return controller(options.address)
        case "spark":
            return spark(options.address)
        case _:
            return subscriber(options.kafka, TopicNames(options.env), options.controller, own_addresses())


def main() -> int:
    signal.alarm(END_S)
    try:
        print(check(parser().parse_args()))
    except TidemarkError as error:
        print(error.message, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
