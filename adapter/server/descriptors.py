"""Room for connections: a process may hold so many file descriptors, and every session is one.

Where the limit is met, a new client gets no answer at all.  So the limit of sessions is brought below it beforehand,
and then whoever comes too many is told so (53300).
"""

from __future__ import annotations

import logging
import resource

log = logging.getLogger(__name__)

OTHERS = 256
"""Descriptors that are no client's: the clients of Kafka hold a few for each broker, and large fleets have thirty."""


def sessions_that_fit(sessions_max: int, strangers_max: int) -> int:
    """How many sessions there is room for, at most ``sessions_max``; raises this process's soft limit as needed."""
    wanted = sessions_max + strangers_max + OTHERS
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        soft = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    if soft == resource.RLIM_INFINITY or soft >= wanted:
        return sessions_max
    fit = max(1, soft - strangers_max - OTHERS)
    log.warning("fewer sessions than asked for", extra={"sessions": fit, "asked": sessions_max, "descriptors": soft})
    return fit
