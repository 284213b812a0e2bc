"""``python -m fleet.bucket --store URL``: make the bucket of a store that speaks S3, or find it made.

Done once, before the processes that need it; running it again changes nothing.
"""

from __future__ import annotations

import argparse
import json
import logging

from journal.errors import InvalidUsage, TidemarkError
from journal.process import leave, setup_logging
from segments.store import make_bucket

log = logging.getLogger("fleet.bucket")


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(prog="python -m fleet.bucket", description=__doc__)
    made.add_argument("--store", required=True, metavar="URL", help="as of the controllers: s3://bucket/prefix?…")
    return made


def main(arguments: list[str] | None = None) -> int:
    options = parser().parse_args(arguments)
    setup_logging("bucket")
    try:
        made = make_bucket(options.store)
    except TidemarkError as error:
        log.error(error.message, extra={"detail": error.detail, "hint": error.hint})
        return 2 if isinstance(error, InvalidUsage) else 1
    print(json.dumps({"event": "done", "store": options.store, "made": made}), flush=True)
    return 0


if __name__ == "__main__":
    leave(main())
