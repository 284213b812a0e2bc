"""What the names of anomalies mean, for who has not read the papers.  A name without a meaning is shown bare."""

from __future__ import annotations

_MEANINGS = {
    "G0": "Dirty write: transactions overwrote each other in an order that no one of them can have been first in.",
    "G1a": "Aborted read: somebody saw what a transaction wrote that certainly did not happen.",
    "G1b": "Intermediate read: somebody saw what a transaction had written half way.",
    "G1c": "Circular information flow: transactions that each saw, or overwrote, what the next one did.",
    "G-single": "Read skew: a transaction saw part of another's effects and missed the rest.",
    "G2": "Write skew: each of several transactions missed what another did, so no order explains them all.",
    "G2-item": "Write skew: each of several transactions missed what another did, so no order explains them all.",
    "lost": "What was acknowledged is gone.",
    "lost-write": "An acknowledged write is gone.",
    "lost-append": "An acknowledged append is in no list.",
    "lost-update": "Two transactions read the same state and both wrote over it: one of them is lost.",
    "stale-read": "A read answered with less than had been acknowledged before it began.",
    "stale-timestamp": "A timestamp is older than one that had been given, or applied, before it was asked for.",
    "stale-image": "An image is older than what had been acknowledged before it was asked for.",
    "future-read": "A read answered with what was only begun after it ended.",
    "phantom": "Something is there that nobody put there.",
    "phantom-write": "Something is in the log that nobody wrote.",
    "doubled": "Something that was done once is there twice.",
    "double-apply": "One write took effect twice.",
    "doubled-write": "One write is in the log as admitted twice.",
    "dirty-read": "A read saw what certainly did not happen.",
    "resurrected": "What had been dropped came back.",
    "vanished": "Something was there, nobody dropped it, and it is gone.",
    "torn-write": "Of one atomic write a part is there and a part is not.",
    "not-linearizable": "No order explains the operations, each taking effect once between its beginning and its end.",
    "divergent-images": "Two readers hold different catalogs at the same upper.",
    "wrong-count": "A counter is not what the increments that were acknowledged make it.",
    "went-back": "A counter went down, or an increment did not see one that had ended before it.",
    "starved": "Somebody was refused again and again while others came through.",
    "wrong-sum": "Money appeared or went: a sum that never changes was another.",
    "view-differs": "A view's answer is not that of its query over its inputs at the same timestamp.",
    "refused": "A view that nothing was done to is refused for good.",
    "stopped": "Nobody is answered any more: a process ends again and again.",
    "hidden": "A view answered though one of its rows keeps it from having an answer.",
    "blamed": "Something was refused for what was done to another, or to nobody yet.",
    "two-answers": "One statement got two answers to one question: from a view, and from what the view is of.",
    "mixed": "Records of a topic and of the one that took its name are in one answer.",
    "went-on": "A source went on with another topic of the same name, and nobody had told it to.",
    "came-back": "What was of a topic that is gone is there again, after the source had begun anew.",
    "not-back": "A source was reset to a topic that is there, and cannot be read all the same.",
    "untold": "Whoever asked for what cannot be had waited in vain and was not told why.",
    "executed-twice": "One request was executed twice.",
    "answers-differ": "One request was answered in two ways that cannot both be true.",
    "table-missing": "After an acknowledged CREATE somebody was told that the table does not exist.",
    "missing-row": "A read lacks a row that had been acknowledged before it began.",
    "index-missing": "An index is in the catalog and its controller does not know it.",
}


def meaning(kind: str) -> str:
    """In a sentence, or nothing."""
    return _MEANINGS.get(kind.removesuffix("-realtime"), "")
