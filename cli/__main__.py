"""``python -m cli COMMAND``, which is what ``./tidemark COMMAND`` hands over to.

Exit codes: 0 it worked, 1 it failed, 2 it was asked for wrongly (bad option, no Java, a taken port), 130 on Ctrl-C
where that does not simply end the command well.  A command's module is imported only when it is used.
"""

from __future__ import annotations

import argparse
import importlib
import signal
import sys

from journal.version import VERSION

COMMANDS = {
    "up": "run everything in the foreground: broker, adapters, subscribers, controllers",
    "demo": "replay New York's flights of 2013 and watch two views stay exact",
    "sql": "a SQL shell on a running stack",
    "status": "what runs, its objects, frontiers and lag",
    "retry": "let a cluster work again on what it put into quarantine",
    "log": "read the catalog log: offset, verdict, timestamp, changes",
    "test": "lint, import contracts and all tests",
    "judge": "try to break it: record histories under faults, and judge them",
    "bench": "measure, each figure with its limit in the same run",
    "setup": "fetch everything that is needed, so that all else works without a network",
}
PASS_ON = {"test": ("--json", "--unit", "-h", "--help"), "bench": ("--json", "-h", "--help")}
"""Commands that hand every word but these to another program, in order."""
INTERRUPTED = 130


def make_parser(command: str | None) -> argparse.ArgumentParser:
    """The parser with the arguments of ``command`` (of the others only the names)."""
    parser = argparse.ArgumentParser(
        prog="tidemark", description="A SQL catalog as a changelog in Kafka, views on Spark."
    )
    parser.add_argument("--version", action="version", version=f"tidemark {VERSION}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for name, text in COMMANDS.items():
        sub = commands.add_parser(name, help=text, description=text[0].upper() + text[1:] + ".")
        sub.add_argument("--json", action="store_true", help="print one JSON object at the end")
        if name == command:
            importlib.import_module(f"cli.{name}_command").configure(sub)
    return parser


def main(argv: list[str] | None = None) -> int:
    argv = sys.argv[1:] if argv is None else argv
    command = next((word for word in argv if not word.startswith("-")), None)
    passed_on: list[str] = []
    if command in PASS_ON:
        at = argv.index(command) + 1
        passed_on = [word for word in argv[at:] if word not in (*PASS_ON[command], "--")]
        argv = [*argv[:at], *(word for word in argv[at:] if word in PASS_ON[command])]
    arguments = make_parser(command if command in COMMANDS else None).parse_args(argv)
    arguments.passed_on = passed_on
    # Everything above needs the standard library only, so --help is quick.
    from cli.output import FAILED, USAGE, print_error
    from journal.errors import InvalidUsage, TidemarkError

    def interrupt(_signum: int, _frame: object) -> None:
        raise KeyboardInterrupt

    signal.signal(signal.SIGTERM, interrupt)
    try:
        return importlib.import_module(f"cli.{arguments.command}_command").run(arguments)
    except InvalidUsage as error:
        print_error(error)
        return USAGE
    except TidemarkError as error:
        print_error(error)
        return FAILED
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        # Whoever read us has seen enough; the interpreter would complain once more while closing.
        sys.stderr.close()
        return FAILED


if __name__ == "__main__":
    sys.exit(main())
