"""docs/generators.md, made from the tables in the code.  Pure.

``TIDEMARK_REWRITE=1 pytest tests/docs/test_generators_page.py`` writes the page; read that diff like code.
"""

from __future__ import annotations

from collection.generators.kinds import KINDS, MOMENT, THOUSANDTHS, Kind, Option
from tests.docs.sql_page import ROOT

HEAD = """\
# Load generators

A source need not read anything: it can make up its rows. That is for demonstrations, for tests, and for benchmarks that
somebody else is to repeat. Names and options are Materialize's where it has them. This page is made from the tables in
the code (`tests/docs/test_generators_page.py`).

    CREATE SOURCE counter FROM LOAD GENERATOR COUNTER
    CREATE SOURCE bids FROM LOAD GENERATOR NEXMARK (TABLE bid, RATE 1000, EVENTS 1000000)
    CREATE SOURCE auctions FROM LOAD GENERATOR NEXMARK (TABLE auction, AS FAST AS POSSIBLE)
    CREATE SOURCE items FROM LOAD GENERATOR TPCH (SCALE FACTOR 0.1, TABLE lineitem, TICK INTERVAL '1s')
    CREATE SOURCE kv FROM LOAD GENERATOR KEY VALUE (KEYS 100, TICK INTERVAL '1s') INCLUDE OFFSET ENVELOPE UPSERT

**Events have numbers**, 0, 1, 2 and so on, and the rows of an event are a function of its number and of the options:
the same on every machine and in every run. The storage controller makes those that are due and binds each exactly once,
as it does with messages of a topic; the number that comes next is in the bindings and nowhere else. So contents at a
timestamp never change, and after a restart, a kill, or beside a second controller no event comes twice and none is
left out.

**A source has the rows of one relation.** A generator of several is several sources, in one of two ways.

    CREATE SOURCE house FROM LOAD GENERATOR AUCTION (TICK INTERVAL '1s') FOR ALL TABLES
    CREATE SOURCE house FROM LOAD GENERATOR AUCTION (TICK INTERVAL '1s') FOR TABLES (auctions, bids AS offers)

`FOR ALL TABLES` and `FOR TABLES (… [AS name])` make **parts that advance by one commit: at each timestamp all of them
have the rows of the same events**, so no bid is there without its auction. The source itself, `house`, has one row: in
`"offset"`, how many events those are, which joins with its parts at one timestamp (it is what Materialize calls the
progress, which there is a subsource of its own). What is there from the start comes with the first event. Parts are in
the source's schema and are listed by `SHOW SOURCES` as `subsource`; they go with the source (`DROP SOURCE house`; what
reads one of them wants `CASCADE`), begin anew and move with it, and not by themselves (2BP01, 0A000); each may be
renamed, indexed, clustered, and kept for longer. `pg_depend` has them as depending on it (`a`). `SHOW CREATE SOURCE`
of a part shows what made the whole. In `tm_internal.source_status` a part has what is told of the whole. They are kept
by catalogs of format 12.

With `TABLE` each relation is a source by itself. With the same options they fit together: all of them count the same
events, and each has the rows of those that are of its relation. They are bound by commits of their own, so at one
timestamp one source may be some events ahead of another.

**Events are due by time.** Event *n* is due *n* / rate after the start, which is when the statement was run, unless
`START TIMESTAMP` says so. What was missed while no storage controller was there is made up for, as fast as it goes.

| option | of all generators |
|---|---|
| `TICK INTERVAL '1s'` | an event a tick |
| `RATE n` | so many events a second, up to a million, spread evenly; instead of `TICK INTERVAL` |
| `AS FAST AS POSSIBLE` | all events are due from the start on; say `EVENTS`, too, or it goes on until disks are full |
| `EVENTS n`, `UP TO n` | it has the events below *n* and no more; 10^12 where neither is said |
| `AS OF n` | the events up to number *n* are due at the start, as if so many ticks were over |
| `START TIMESTAMP '…'` | a timestamptz, or milliseconds since 1970, without which it starts now |

Where event times would go past the year 9999 there are fewer events, and `EVENTS` of more is refused (22008).

`SHOW CREATE SOURCE` shows the options with what they were taken for, and makes the same source again: the same rows,
due at the same times. Rows that come are in `tm_internal.source_status` as messages are: `positions` has the number of
the next event, `ends` how many are due, and `status` is `finished` where all of them are there. A generator has no
errors relation, and needs catalog format 10, TPCH 12. `ALTER SOURCE … RESET` begins with event 0 again. `LOAD GENERATOR
MARKETING` is not here (0A000).
"""

WORDS = {
    "counter": """\
Event *n* is the number *n* + 1. With `MAX CARDINALITY m` there are at most *m* rows: as one comes the oldest goes.""",
    "key value": """\
Event *n* writes key *n* mod `KEYS` with `VALUE SIZE` bytes that hang on `SEED` and *n*; the partition is the key mod
`PARTITIONS`. The first `SNAPSHOT ROUNDS` (1) times over all keys are due at the start, and become visible at one
timestamp, up to ten million events, unless `TRANSACTIONAL SNAPSHOT false` is said. After that `BATCH SIZE` (1) times
`PARTITIONS` events are due a tick, or `RATE` a second; without either the snapshot is all that there is. With `INCLUDE
OFFSET [AS name]` the event's number is a column, too; under `ENVELOPE UPSERT` each key has its newest row alone.""",
    "auction": """\
Twenty organizations with an account each and 4,000 users are there from the start. Of auctions and bids one is due a
tick: eight auctions with two to nine bids each, in an order drawn for every eight, by `SEED`. Event times begin at
`BASE TIME` and are a tick apart (a second, `AS FAST AS POSSIBLE`); an auction ends ten ticks after it begins, behind
its last bid. It has Materialize's relations and columns, and not its rows, which hang on its clock.""",
    "nexmark": """\
People, auctions and bids **equal to those of Apache Beam's generator, event for event** (1, 3 and 46 of fifty), where
its configuration is the same: `BASE TIME` is its base time, `EVENT RATE` (as `RATE` where that is said) its first and
next event rate per second, by which event times are apart, and the other options are its fields. Not here are rates
that change, several generators side by side (`numEventGenerators` is 1), and its source's late events. A price may
differ by a cent in one of some 10^9, where a Java's `Math.pow` is off by its last bit. With `SEED 0` events are Beam's;
any other seed gives other ones. `RATE` is 10,000 where nothing is said.""",
    "tpch": """\
The eight tables of TPC-H, **equal to those that dbgen writes, row for row**. `SCALE FACTOR` has up to three decimals
(dbgen takes whole numbers from 1 on; between them rows are what its formulas give). The snapshot is regions, nations,
suppliers, customers, parts with their four offers each, and orders with their lines: each row is an event, an offer
is its part's and a line its order's, so no row names one that comes later. It is due at the start and becomes visible
at one timestamp, up to ten million events (`SCALE FACTOR 5`), unless `TRANSACTIONAL SNAPSHOT false` is said.

Without `TICK INTERVAL` or `RATE` the snapshot is all that there is. With one, each event replaces the oldest order
and its lines by a new one: an order at a time what dbgen writes with `-U` as refresh sets (RF1 and RF2 of the
specification), for 999 of them, in which all orders but a thousandth are replaced. After that the rule goes on: new
orders are the next that dbgen's streams give, and each takes the next of four keys that its place has, so no two
orders that are there have one key, and keys do not grow. (Materialize replaces an order that is drawn, under the same
key, by a row that is no dbgen's.) Keys are int8; `char(n)` and `varchar(n)` of the specification are text, `decimal`
is `numeric(15,2)`. A storage controller takes some ten seconds, once, to make the 300 MiB of text that comments are
cut from; it is kept in a temporary file. Some two million lines a second and core are made.""",
}


def _option(name: str, option: Option) -> str:
    if option.kind == MOMENT:
        return f"| `{name.upper()}` | `'2015-07-15 00:00:00+00'` | a moment from 1970 on |"
    if option.kind == THOUSANDTHS:
        least, most = (f"{each / 1000:g}" for each in (option.least, option.most))
        return f"| `{name.upper()}` | {option.default / 1000:g} | {least} to {most} |"
    default = "must be said" if option.default is None else str(option.default)
    if option.default == 0 < option.least:
        default = "none"
    return f"| `{name.upper()}` | {default} | {option.least} to {option.most} |"


def _kind(name: str, kind: Kind) -> list[str]:
    said = [f"\n## {name.upper()}\n", WORDS[name], "\n| relation | columns |", "|---|---|"]
    for table, columns in kind.tables.items():
        listed = ", ".join(f"`{each.name}` {each.type}" for each in columns)
        said.append(f"| {f'`{table}`' if table else 'the one'} | {listed} |")
    said += ["\n| option | where it is not said | values |", "|---|---|---|"]
    return [*said, *(_option(option, each) for option, each in kind.options.items())]


def page() -> str:
    """The whole of docs/generators.md."""
    return "\n".join([HEAD.rstrip("\n"), *(line for name, kind in KINDS.items() for line in _kind(name, kind)), ""])


PAGE = ROOT / "docs" / "generators.md"
