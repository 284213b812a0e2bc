"""Histories and logs in one line, so that a test can say what must pass and what must fail.  Pure.

A history is words apart by blanks, one an operation::

    0:cas(0>5,w0-1)[0,3]          process 0: it ended well
    0:cas(0>5,w0-1)[0,3]!         it failed (with ``Conflict``; ``!42P01`` names another code)
    0:cas(0>5,w0-1)[0,3]?         an answer came that says that nobody knows
    0:cas(0>5,w0-1)[0,]           no answer ever came
    1:read()=5,w0-1[4,6]          what stands after ``=`` is the result
    0:x({"id":1})={"rows":2}[0,1] arguments and results that no notation below knows are JSON

``f`` decides how arguments and results are written (``_FORMS`` has them all, each with an example); its workload
follows from ``f`` too, or is given.  Times are numbers of any clock; operations are in the order of their starts, as
everywhere.  A process must not act again after an unknown outcome, as everywhere.

A catalog's log is words as well, one a record, at offsets from 0::

    0>1:genesis 1>5:w0-1 5>7:+t,-u 7>9:#r1+v x

``expected>new``, then changes: ``+t``/``-t`` puts or removes item t (``+t@2`` under another id), ``#r`` executes
request r, anything else is a token of the register (``w0-1`` at key ``w0``); ``x`` is garbage.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from catalog_log import model
from judge.history import FAIL, INFO, INVOKE, OK, Event, Op, operations
from judge.witness import GARBAGE, GENESIS, PROPOSAL, CatalogRecord, Change


class BadNotation(ValueError):
    """The text is not in the notation."""


# -- histories


def parse(text: str, workload: str = "") -> list[Op]:
    """The operations that ``text`` tells of.  Raises :class:`BadNotation`, ``MalformedHistory``."""
    return operations(events(text, workload))


def events(text: str, workload: str = "") -> list[Event]:
    """The events that ``text`` tells of, as a recorder would have written them."""
    found = [event for word in _words(text) for event in _events(word, workload)]
    return sorted(found, key=lambda event: event.time)


def _words(text: str) -> list[str]:
    """``text`` cut at blanks that stand in no bracket and no string."""
    words = [""]
    for char, outside in _outside(text):
        if outside and char.isspace():
            words.append("")
        else:
            words[-1] += char
    return [word for word in words if word]


def _outside(text: str) -> Iterator[tuple[str, bool]]:
    """Each character, and whether it stands outside of brackets and strings."""
    depth, quoted = 0, False
    for char in text:
        if char == '"':
            quoted = not quoted
        elif not quoted:
            depth += (char in "([{") - (char in ")]}")
        yield char, depth == 0 and not quoted


def _events(word: str, workload: str) -> list[Event]:
    try:
        head, _, after = word.rpartition("[")
        times, _, outcome = after.partition("]")
        process, _, call = head.partition(":")
        call, result = _split_result(call)
        f, _, arguments = call.partition("(")
        arguments = arguments.removesuffix(")")
        start, _, end = times.partition(",")
        default_workload, value_of, result_of = _FORMS.get(f, ("", _json, _json))
        about = (workload or default_workload, f)
        value = value_of(arguments)
        # A transaction's reads are written with their results: ``rx12`` is invoked as ``["r", "x", null]``.
        invoked = _unread(value) if f == "txn" else value
        found = [Event(int(start), int(process), INVOKE, *about, invoked)]
        if not end:
            return found
        if outcome.startswith("!"):
            error = (outcome[1:] or ("Conflict" if f == "cas" else "XX000"), "")
            return [*found, Event(int(end), int(process), FAIL, *about, None, "", error)]
        if outcome == "?":
            return [*found, Event(int(end), int(process), INFO, *about, None)]
        if outcome:
            raise BadNotation(f"after the times: {outcome!r}")
        answered = result_of(result) if result is not None else _default_result(f, value)
        return [*found, Event(int(end), int(process), OK, *about, answered)]
    except BadNotation as error:
        raise BadNotation(f"{word!r}: {error}") from error
    except (ValueError, IndexError, KeyError) as error:
        raise BadNotation(f"{word!r}: {error}") from error


def _split_result(call: str) -> tuple[str, str | None]:
    """``f(…)=result`` at the ``=`` outside of brackets."""
    for place, (char, outside) in enumerate(_outside(call)):
        if char == "=" and outside:
            return call[:place], call[place + 1 :]
    return call, None


def _default_result(f: str, value: Any) -> Any:
    """What an operation without a written result answers."""
    if f == "cas":
        return {"upper": value["new"]}
    if f == "apply_write":
        return value["ts"]
    if f == "txn":
        return value
    if f == "request":
        return {"status": "ok", "message": "CREATE TABLE"}
    return None


def _json(text: str) -> Any:
    return json.loads(text) if text else None


def _cas(text: str) -> dict[str, Any]:
    uppers, token = text.split(",")
    expected, new = uppers.split(">")
    return {"expected": int(expected), "new": int(new), "token": token}


def _state(text: str) -> dict[str, Any]:
    upper, _, token = text.partition(",")
    return {"upper": int(upper), "token": token or None}


def _upper(text: str) -> dict[str, Any]:
    return {"upper": int(text)}


def _name(text: str) -> dict[str, Any]:
    return {"name": text}


def _names(text: str) -> dict[str, Any]:
    return {"names": _list(text)}


def _image(text: str) -> dict[str, Any]:
    upper, _, names = text.partition(":")
    return {"upper": int(upper), "names": _list(names)}


def _list(text: str) -> list[str]:
    return [each for each in text.split(",") if each]


def _timeline(text: str) -> dict[str, Any]:
    timeline, _, ts = text.partition(",")
    return {"timeline": timeline or "g", **({"ts": int(ts)} if ts else {})}


def _request(text: str) -> dict[str, Any]:
    request_id, _, name = text.partition(",")
    return {"id": request_id, "sql": f"CREATE TABLE {name} (v int)", "name": name}


def _reply(text: str) -> dict[str, Any]:
    status, _, message = text.partition(",")
    return {"status": status, "message": message or ("CREATE TABLE" if status == "ok" else "no")}


def _txn(text: str) -> list[list[Any]]:
    """``ax1`` appends 1 to x; ``rx`` reads x; ``rx12`` read [1, 2], ``rx1.23`` [1, 23]; ``rx-`` read the empty list."""
    found = []
    for each in _list(text):
        op, key, rest = each[0], each[1], each[2:]
        if op not in "ar":
            raise BadNotation(f"{each!r} neither appends nor reads")
        if op == "a":
            found.append(["append", key, int(rest)])
        elif rest == "":
            found.append(["r", key, None])
        else:
            digits = rest.split(".") if "." in rest else list(rest.strip("-"))
            found.append(["r", key, [int(digit) for digit in digits if digit]])
    return found


def _unread(value: Sequence[Sequence[Any]]) -> list[list[Any]]:
    return [["r", each[1], None] if each[0] == "r" else list(each) for each in value]


def _transfer(text: str) -> dict[str, Any]:
    accounts, _, rest = text.partition(",")
    giver, taker = accounts.split(">")
    amount, _, transfer_id = rest.partition(",")
    return {"id": transfer_id, "from": giver, "to": taker, "amount": int(amount)}


def _sums(text: str) -> dict[str, int]:
    return {name: int(total) for name, _, total in (each.partition(":") for each in _list(text))}


_FORMS: dict[str, tuple[str, Callable[[str], Any], Callable[[str], Any]]] = {
    "cas": ("register", _cas, _upper),  # cas(0>5,w0-1)=5
    "read": ("register", _json, _state),  # read()=5,w0-1
    "create": ("set", _name, _json),  # create(t)
    "drop": ("set", _name, _json),  # drop(t)
    "names": ("set", _json, _names),  # names()=t,u
    "image": ("set", _json, _image),  # image()=7:t,u
    "read_ts": ("oracle", _timeline, int),  # read_ts(g)=5
    "write_ts": ("oracle", _timeline, int),  # write_ts(g)=5
    "apply_write": ("oracle", _timeline, int),  # apply_write(g,5)
    "request": ("requests", _request, _reply),  # request(r1,t)=ok  request(r1,t)=error,no
    "txn": ("append", _txn, _txn),  # txn(ax1,ry12)
    "transfer": ("bank", _transfer, _json),  # transfer(a>b,5)
    "sums": ("bank", _json, _sums),  # sums()=tables:10,view:10
}


# -- logs


def log(text: str) -> list[CatalogRecord]:
    """The records that ``text`` tells of.  Raises :class:`BadNotation`."""
    return [_record(offset, word) for offset, word in enumerate(text.split())]


def _record(offset: int, word: str) -> CatalogRecord:
    if word == "x":
        return CatalogRecord(offset, None, GARBAGE, flaw="garbage")
    uppers, _, changes = word.partition(":")
    expected, _, new = uppers.partition(">")
    kind = GENESIS if changes == "genesis" else PROPOSAL
    updates = [] if kind == GENESIS else [_change(each) for each in _list(changes.replace("+", ",+"))]
    try:
        return CatalogRecord(offset, None, kind, f"p{offset}", "w", int(expected), int(new), tuple(updates))
    except ValueError as error:
        raise BadNotation(f"{word!r}: {error}") from error


def _change(text: str) -> Change:
    if text[0] == "+":
        return Change(model.ITEMS, f"id-{text[1:]}", json.dumps({"name": text[1:].partition("@")[0]}))
    if text[0] == "-":
        return Change(model.ITEMS, f"id-{text[1:]}", None)
    if text[0] == "#":
        return Change(model.REQUESTS, text[1:], json.dumps({"status": "ok", "message": "CREATE TABLE"}))
    return Change(model.SETTINGS, text.partition("-")[0], text)
