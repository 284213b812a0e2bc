"""The records of ``<env>.views`` as values and as bytes, with every rule that one must keep to be folded.  Pure."""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple

from collection.binding import Run
from journal.errors import InvalidUsage
from oracle.model import BINDINGS_MAX, TS_MAX, Token, check_name, check_run, check_ts
from oracle.records import Malformed, decode_in_format, run_from_dict, run_to_dict, token_of
from schemas import codec

VIEWS_RECORD = "views_record"

ERROR_LENGTH_MAX = 4096
"""Characters kept of a view's error: enough for Spark's message without its Java stack."""


class ViewsKind(StrEnum):
    CLAIM = "claim"
    """The sender maintains a cluster's views from now on, under a new epoch."""
    COMMIT = "commit"
    """One tick's outputs, of all views of a cluster that it touched: all or nothing."""
    DROP = "drop"
    """These views are gone."""
    COMPACT = "compact"
    """History below ``ts`` need not be told apart any more: ``since`` moves."""
    FENCE = "fence"
    """Nothing but its number: no record of its writer with a smaller one counts from here on (as after any record)."""


class ViewCommit(NamedTuple):
    """One view's share of a tick: what its output became at the commit's ``ts``.

    ``runs`` are rows that changed then (none: nothing changed), ``error`` why it has no contents from ``ts`` on
    (``None``: it has).
    """

    view_id: str
    expected_upper: int
    runs: tuple[Run, ...] = ()
    error: str | None = None


class Tick(NamedTuple):
    """The outputs of one tick.  Admitted iff ``epoch`` is the cluster's, and every view is where it was expected."""

    cluster: str
    epoch: int
    ts: int
    views: tuple[ViewCommit, ...]


class ViewsRecord(NamedTuple):
    """A record of the topic.  Only the fields of its kind are set."""

    token: Token
    kind: ViewsKind
    cluster: str = ""
    expected_epoch: int = 0
    epoch: int = 0
    ts: int = 0
    views: tuple[ViewCommit, ...] = ()
    names: tuple[str, ...] = ()


def check_tick(tick: Tick) -> None:
    """Raises ``InvalidUsage`` where ``tick`` breaks the rules that every reader checks."""
    check_name("cluster", tick.cluster)
    check_ts(tick.ts)
    if not 1 <= tick.epoch <= TS_MAX:
        raise InvalidUsage(f"invalid epoch {tick.epoch}")
    if not tick.views:
        raise InvalidUsage("a tick without views is nothing to commit")
    if len({view.view_id for view in tick.views}) != len(tick.views):
        raise InvalidUsage("a tick names a view twice")
    for view in tick.views:
        check_name("view id", view.view_id)
        check_ts(view.expected_upper)
        if len(view.runs) > BINDINGS_MAX:
            raise InvalidUsage(f"too many runs in one commit: {len(view.runs)}", sqlstate="54000",
                               hint=f"at most {BINDINGS_MAX}")  # fmt: skip
        if view.error is not None and len(view.error) > ERROR_LENGTH_MAX:
            raise InvalidUsage(f"error of {len(view.error)} characters", hint=f"at most {ERROR_LENGTH_MAX}")
        for run in view.runs:
            check_run(run)


def encode_views_record(record: ViewsRecord) -> bytes:
    """``record`` as bytes of the topic."""
    token = record.token
    return codec.encode(
        VIEWS_RECORD,
        {
            "writer": token.writer,
            "incarnation": token.incarnation,
            "seq": token.seq,
            "kind": record.kind.value,
            "cluster": record.cluster,
            "expected_epoch": record.expected_epoch,
            "epoch": record.epoch,
            "ts": record.ts,
            "views": [
                {
                    "view_id": view.view_id,
                    "expected_upper": view.expected_upper,
                    "runs": [run_to_dict(run) for run in view.runs],
                    "error": view.error,
                }
                for view in record.views
            ],
            "names": record.names,
        },
    )


def decode_views_record(value: bytes) -> ViewsRecord:
    """The record in ``value``.  Raises :class:`~oracle.records.Malformed` and nothing else."""
    raw = decode_in_format(VIEWS_RECORD, value)
    token = token_of(raw)
    try:
        views = tuple(
            ViewCommit(v["view_id"], v["expected_upper"], tuple(map(run_from_dict, v["runs"])), v["error"])
            for v in raw["views"]
        )
        record = ViewsRecord(token, ViewsKind(raw["kind"]), raw["cluster"], raw["expected_epoch"], raw["epoch"],
                             raw["ts"], views, tuple(raw["names"]))  # fmt: skip
        _check(record)
    except InvalidUsage as error:
        raise Malformed(error.message, token) from error
    except ValueError as error:
        raise Malformed(str(error), token) from error
    return record


def _check(record: ViewsRecord) -> None:
    match record.kind:
        case ViewsKind.COMMIT:
            check_tick(Tick(record.cluster, record.epoch, record.ts, record.views))
        case ViewsKind.CLAIM:
            check_name("cluster", record.cluster)
            if not 0 <= record.expected_epoch < record.epoch <= TS_MAX:
                raise InvalidUsage(f"epoch {record.epoch} cannot follow {record.expected_epoch}")
        case ViewsKind.DROP:
            for name in record.names:
                check_name("view id", name)
        case ViewsKind.COMPACT:
            check_ts(record.ts)
        case ViewsKind.FENCE:
            pass
