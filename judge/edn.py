"""Histories as Jepsen writes them: EDN, one map a line, for its checkers and for Elle.  Pure but for :func:`main`.

Promises: every event becomes one map with ``:index :type :process :workload :f :value :time`` (and ``:node``,
``:error`` where there are), in the order of time; ``:time`` counts nanoseconds from the first event.  Jepsen repeats
the invocation's value in the completion, ours does not, so:

* ``fail`` and ``info`` have the invocation's value;
* an ``ok`` has its result; where invocation and result are maps, the one with the other added; where the invocation is
  a map and the result is not, the map with ``:result`` added; where there is no result, the invocation's value;
* operations in a transaction begin with a keyword, as Elle wants: ``[[:append "x" 1] [:r "y" [1 2]]]``.

    python -m judge.edn RUN [WORKLOAD] > history.edn
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from judge.history import INVOKE, OK, Event, load

_KEYWORD = re.compile(r"[A-Za-z][A-Za-z0-9_-]*")

MICRO_OPERATIONS = frozenset({"append", "r", "w"})


class Keyword(str):
    """Written as ``:keyword``."""


def to_edn(events: Iterable[Event], workload: str = "") -> Iterator[str]:
    """A line for each of ``events``, or for those of one workload."""
    invocations: dict[int, Event] = {}
    wanted = [event for event in events if workload in ("", event.workload)]
    wanted.sort(key=lambda event: event.time)
    for index, event in enumerate(wanted):
        if event.type == INVOKE:
            invocations[event.process] = event
            value = event.value
        else:
            value = _completed(invocations.pop(event.process, event).value, event)
        fields: dict[str, Any] = {
            "index": index,
            "type": Keyword(event.type),
            "process": event.process,
            "workload": Keyword(event.workload),
            "f": Keyword(event.f),
            "value": _transaction(value) if event.f == "txn" else value,
            "time": event.time - wanted[0].time,
        }
        if event.node:
            fields["node"] = event.node
        if event.error is not None:
            fields["error"] = list(event.error)
        yield text(fields)


def _completed(invoked: Any, event: Event) -> Any:
    result = event.value
    if event.type != OK or result is None:
        return invoked
    if not isinstance(invoked, dict):
        return result
    return {**invoked, **result} if isinstance(result, dict) else {**invoked, "result": result}


def _transaction(value: Any) -> Any:
    if not isinstance(value, list):
        return value
    return [
        [Keyword(each[0]), *each[1:]] if isinstance(each, list) and each and each[0] in MICRO_OPERATIONS else each
        for each in value
    ]


def text(value: Any) -> str:
    """A JSON value (or :class:`Keyword`) as EDN.  Keys of maps become keywords where they can be."""
    if value is None:
        return "nil"
    if value is True or value is False:
        return "true" if value else "false"
    if isinstance(value, Keyword):
        return f":{value}" if _KEYWORD.fullmatch(value) else json.dumps(str(value))
    if isinstance(value, str):
        return json.dumps(value)  # JSON's escapes are all EDN's too
    if isinstance(value, dict):
        return "{" + ", ".join(f"{text(Keyword(key))} {text(each)}" for key, each in value.items()) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + " ".join(text(each) for each in value) + "]"
    if isinstance(value, int):
        # Beyond 64 bits EDN wants to be told.
        return str(value) if -(2**63) <= value < 2**63 else f"{value}N"
    if isinstance(value, float):
        return json.dumps(value) if value == value and abs(value) != float("inf") else _odd(value)
    raise TypeError(f"{type(value).__name__} is no JSON value")


def _odd(value: float) -> str:
    return "##NaN" if value != value else "##Inf" if value > 0 else "##-Inf"


def main(arguments: list[str]) -> int:
    """Print the history of the run in a directory."""
    if not 1 <= len(arguments) <= 2:
        print("usage: python -m judge.edn RUN [WORKLOAD]", file=sys.stderr)
        return 2
    for line in to_edn(load(Path(arguments[0])).events, *arguments[1:]):
        print(line)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
