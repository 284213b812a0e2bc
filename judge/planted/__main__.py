"""``python -m judge.planted BUG[,BUG…] -- MODULE ARGS…``: run ``python -m MODULE ARGS…`` with bugs planted.

A bug that does not concern this kind of process is left out, so a whole stack may be started with one word.  What was
planted is the first line on standard error.
"""

from __future__ import annotations

import json
import runpy
import sys

from judge.planted.registry import chosen, kind_of


def main(arguments: list[str]) -> int:
    if len(arguments) < 3 or arguments[1] != "--":
        print("usage: python -m judge.planted BUG[,BUG...] -- MODULE ARGS...", file=sys.stderr)
        return 2
    names, _, module, *rest = arguments
    try:
        bugs = [bug for bug in chosen(names) if kind_of(module) in bug.processes]
    except ValueError as error:
        print(error, file=sys.stderr)
        return 2
    for bug in bugs:
        bug.apply()  # never undone: the process ends with it
    print(json.dumps({"event": "planted", "bugs": [bug.name for bug in bugs], "module": module}), file=sys.stderr,
          flush=True)  # fmt: skip
    sys.argv = [module, *rest]
    runpy.run_module(module, run_name="__main__", alter_sys=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
