"""``tidemark judge``: hands over to ``judge/``, which no part of the product imports and no installation holds."""

from __future__ import annotations

import argparse
from importlib import import_module
from pathlib import Path

from embedded.layout import ROOT
from journal.errors import InvalidUsage

EPILOG = """\
Exit codes: 0 valid, and every limit kept; 1 invalid: something was answered, lost or doubled that must not be (or it
could not run); 2 asked for wrongly (also: this machine does not permit the network namespaces that layer 3 needs);
3 unknown: nothing is known to be wrong, and not everything could be judged; 4 the data are valid, a limit of the
figures was not kept.
Layers: 1 a simulation of the pure cores, from a seed; 2 one broker and real processes; 3 three brokers in network
namespaces.  Without --layer and --quick it is layer 3 for 30 minutes, and on to 200,000 operations and 20 leaders
lost, an hour at most."""


def configure(parser: argparse.ArgumentParser) -> None:
    """Only the standard library is needed for ``--help``."""
    parser.epilog = EPILOG
    parser.add_argument("rundir", nargs="?", type=Path, metavar="RUNDIR", help="judge this recorded run again")
    parser.add_argument("--quick", action="store_true", help="layer 1 for some seconds and layer 2 for two minutes")
    parser.add_argument("--layer", type=int, choices=(1, 2, 3), help="this layer alone")
    parser.add_argument("--exam", type=int, nargs="?", const=100_000, metavar="N",
                        help="the internal-consistency exam alone: N transfers (default 100,000), every version of "
                             "views over them, under kills")  # fmt: skip
    parser.add_argument("--minutes", type=float, metavar="M", help="how long layers 2 and 3 run")
    parser.add_argument("--operations", type=int, metavar="N",
                        help="layers 2 and 3: at least so many, within twice the time; layer 1: steps")  # fmt: skip
    parser.add_argument("--seed", type=int, metavar="S", help="replay the same plan (default: a new one, printed)")
    parser.add_argument("--workload", action="append", default=[], metavar="W[,…]", help="only these workloads")
    parser.add_argument("--fault", action="append", default=[], metavar="KIND[,…]", help="only these; or none")
    parser.add_argument("--partitions", type=int, metavar="N",
                        help="of each collection's topic (default: one to three, as the seed chooses)")  # fmt: skip
    parser.add_argument("--stand-by", action="store_true", help="a second compute stands by (layers 2 and 3)")
    parser.add_argument("--bug", default="", metavar="NAME[,…]", help="plant a bug that must be found")
    parser.add_argument("--out", type=Path, metavar="DIR", help="where to record (default: .tidemark/judge/…)")


def run(arguments: argparse.Namespace) -> int:
    if not (ROOT / "judge").is_dir():
        raise InvalidUsage("the judge is not part of an installation", hint="run it from a checkout")
    return import_module("judge.command").run(arguments)
