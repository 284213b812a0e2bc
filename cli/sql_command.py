"""``tidemark sql``: psql where there is one, else a small shell; ``-c`` for one go."""

from __future__ import annotations

import argparse
import os
import shutil
import sys

import psycopg

from cli.output import FAILED, OK, print_json
from cli.stack_options import find_run
from embedded.ports import HOST
from journal.doors import password_from
from journal.errors import Unavailable

PORT = 6875
CONNECT_TIMEOUT_S = 10


def configure(parser: argparse.ArgumentParser) -> None:
    from pathlib import Path

    parser.add_argument("-c", dest="statements", action="append", metavar="SQL", help="run this and end (repeatable)")
    parser.add_argument("--data", type=Path, metavar="DIR", help="the running stack's data directory")
    parser.add_argument("--host", help="adapter's address (default: the running stack's)")
    parser.add_argument("--port", type=int, help="adapter's port (default: the running stack's)")
    parser.add_argument("--password-file", type=Path, metavar="FILE",
                        help="the password's (default: TIDEMARK_PASSWORD_FILE, TIDEMARK_PASSWORD)")  # fmt: skip
    parser.add_argument("--no-psql", action="store_true", help="use the small shell even where psql is installed")


def run(arguments: argparse.Namespace) -> int:
    found = None if arguments.host and arguments.port else find_run(arguments.data)
    host = arguments.host or (found or {}).get("host") or HOST
    port = arguments.port or ((found or {}).get("ports") or [PORT])[0]
    password = password_from(arguments.password_file)
    if not arguments.statements and not arguments.no_psql and sys.stdin.isatty() and (psql := shutil.which("psql")):
        given = {} if password is None else {"PGPASSWORD": password}
        command = ["psql", "-h", host, "-p", str(port), "-U", "tidemark", "-d", "tidemark"]
        os.execve(psql, command, {**os.environ, **given})
    try:
        connection = psycopg.connect(
            host=host, port=port, user="tidemark", dbname="tidemark", connect_timeout=CONNECT_TIMEOUT_S,
            autocommit=True, application_name="tidemark sql", password=password,
        )  # fmt: skip
    except psycopg.OperationalError as error:
        hint = "start one with `tidemark up`, or name it with --host and --port"
        raise Unavailable(f"no adapter answers on {host}:{port}", detail=str(error).strip(), hint=hint) from error
    connection.add_notice_handler(
        lambda notice: print(f"{notice.severity}:  {notice.message_primary}", file=sys.stderr)
    )
    with connection:
        if arguments.statements:
            return run_statements(connection, arguments.statements, arguments.json)
        return shell(connection, sys.stdin)


def results_of(cursor: psycopg.Cursor) -> list[dict]:
    """Every result of what was executed: tag, and columns and rows where it has them."""
    results = []
    while True:
        result: dict = {"tag": cursor.statusmessage}
        if cursor.description is not None:
            result["columns"] = [column.name for column in cursor.description]
            result["rows"] = cursor.fetchall()
        results.append(result)
        if not cursor.nextset():
            return results


def run_statements(connection: psycopg.Connection, statements: list[str], as_json: bool) -> int:
    """Run them in order up to the first that fails."""
    results: list[dict] = []
    for text in statements:
        try:
            results += results_of(connection.execute(text))
        except psycopg.Error as error:
            if as_json:
                print_json({"results": results, "error": {"sqlstate": error.sqlstate, "message": message_of(error)}})
            else:
                print_results(results)
                print_sql_error(error)
            return FAILED
    print_json({"results": results}) if as_json else print_results(results)
    return OK


def message_of(error: psycopg.Error) -> str:
    return error.diag.message_primary or str(error).strip()


def print_sql_error(error: psycopg.Error) -> None:
    """As psql prints it."""
    lines = [f"ERROR:  {message_of(error)}" + (f" ({error.sqlstate})" if error.sqlstate else "")]
    lines += [f"DETAIL:  {error.diag.message_detail}"] if error.diag.message_detail else []
    lines += [f"HINT:  {error.diag.message_hint}"] if error.diag.message_hint else []
    print("\n".join(lines), file=sys.stderr, flush=True)


def format_table(columns: list[str], rows: list[tuple]) -> str:
    """Columns aligned as psql does it: text left, numbers right, NULL empty."""
    texts = [["" if value is None else str(value) for value in row] for row in rows]
    widths = [max([len(name), *(len(row[i]) for row in texts)]) for i, name in enumerate(columns)]
    right = [
        any(isinstance(row[i], int | float) and not isinstance(row[i], bool) for row in rows)
        for i in range(len(columns))
    ]
    lines = [" | ".join(name.center(width) for name, width in zip(columns, widths, strict=True)).rstrip()]
    lines.append("-+-".join("-" * width for width in widths))
    for row in texts:
        cells = (t.rjust(w) if r else t.ljust(w) for t, w, r in zip(row, widths, right, strict=True))
        lines.append(" | ".join(cells).rstrip())
    return "\n".join(f" {line}" if i != 1 else f"-{line}-" for i, line in enumerate(lines))


def print_results(results: list[dict]) -> None:
    for result in results:
        if "columns" in result:
            count = len(result["rows"])
            print(format_table(result["columns"], result["rows"]))
            print(f"({count} row{'' if count == 1 else 's'})")
        elif result["tag"]:
            print(result["tag"])
    sys.stdout.flush()


def shell(connection: psycopg.Connection, source) -> int:
    """Read statements that end with ``;`` and run them.  Piped input stops at the first error, as a script should."""
    interactive = source.isatty()
    if interactive:
        import readline  # noqa: F401 (gives input() its line editing)

        print("tidemark: end a statement with ;  leave with \\q")
    buffer = ""
    while True:
        try:
            line = input("tidemark-> " if buffer else "tidemark=> ") if interactive else source.readline()
        except EOFError:
            return OK
        except KeyboardInterrupt:
            print()
            buffer = ""
            continue
        if not interactive and not line:
            if not buffer.strip():
                return OK
            line = ";"
        if line.strip() in ("\\q", "exit", "quit"):
            return OK
        buffer += line + ("\n" if interactive else "")
        if not buffer.rstrip().endswith(";"):
            continue
        statement, buffer = buffer, ""
        if not statement.strip().strip(";").strip():
            continue
        try:
            print_results(results_of(connection.execute(statement)))
        except KeyboardInterrupt:
            connection.cancel()
            print("cancelled", file=sys.stderr)
        except psycopg.Error as error:
            print_sql_error(error)
            if not interactive or connection.closed:
                return FAILED
