"""``python -m tests.collection.clock_set_back BOOTSTRAP ENV FILE ID ID``: rows for two topics, a clock set back.

The process reads its clock through the judge's shim, which ``FILE`` tells.  Prints how long the second write took.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

from catalog_log.objects import Column
from collection.writer import CollectionWriter
from journal.names import TopicNames
from judge.live.clock import HOUR_MS, replace_text

WAITING_S = 0.5
"""Five polls: by then everybody waits until some moment of the hour ahead."""


def main(bootstrap: str, env: str, shift: str, *ids: str) -> None:
    names, file = TopicNames(env), Path(shift)
    writer = CollectionWriter(bootstrap, names)
    columns = [Column("a", "int4")]
    first, second = ids
    writer.write(first, columns, [(1,)], "x").result(30)
    replace_text(file, str(HOUR_MS))
    time.sleep(WAITING_S)
    before = time.time()
    replace_text(file, "0")
    assert before - time.time() > HOUR_MS / 2000, "the clock was not set back"
    began = time.monotonic()
    writer.write(second, columns, [(2,)], "y").result(30)
    print(time.monotonic() - began)
    writer.close()
    print("closed")


if __name__ == "__main__":
    main(*sys.argv[1:])
