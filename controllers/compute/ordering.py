"""Which views a tick evaluates, and in which order.  Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping


def levels(inputs_of: Mapping[str, Collection[str]]) -> list[list[str]]:
    """The views (keys) in levels: each reads only views of earlier levels (and things that are no view here).

    Ids are given out upwards and a definition names what existed before it, so there is no cycle; one is refused.
    """
    level: dict[str, int] = {}
    open_: set[str] = set()

    for start in sorted(inputs_of):
        stack = [(start, iter(sorted(i for i in inputs_of[start] if i in inputs_of)))]
        open_.add(start)
        while stack:
            view, rest = stack[-1]
            following = next((i for i in rest if i not in level), None)
            if following is None:
                stack.pop()
                open_.discard(view)
                below = [level[i] for i in inputs_of[view] if i in inputs_of]
                level[view] = max(below, default=-1) + 1
            else:
                assert following not in open_, f"views read each other: {sorted(open_)}"
                open_.add(following)
                stack.append((following, iter(sorted(i for i in inputs_of[following] if i in inputs_of))))
    found: list[list[str]] = [[] for _ in range(max(level.values(), default=-1) + 1)]
    for view in sorted(level):
        found[level[view]].append(view)
    return found


def some_first(
    inputs_of: Mapping[str, Collection[str]], held: Collection[str], new_max: int, awaited: Collection[str] = ()
) -> list[str]:
    """The views (keys) that go now where at most ``new_max`` may that are not ``held`` yet: each after what it reads.

    What is held goes in any case, unless it reads something that does not.  Of the others those go first that are
    ``awaited`` (a key or not), with all that they read.
    """
    chosen: dict[str, None] = {}
    room = new_max
    for view in _by_need(inputs_of, awaited):
        if any(i in inputs_of and i not in chosen for i in inputs_of[view]):
            continue
        if view not in held:
            if not room:
                continue
            room -= 1
        chosen[view] = None
    return list(chosen)


def first_of(
    inputs_of: Mapping[str, Collection[str]], some: Collection[str], prime: Collection[str] = (),
    awaited: Collection[str] = (),
) -> str:  # fmt: skip
    """Which of ``some`` (keys, not none) goes where only one may: one that reads no other of them.

    Those that are ``prime`` go before the rest, and among equals those that are ``awaited``, each with what it reads.
    """
    early = _with_what_they_read(inputs_of, prime)
    order = [view for view in _by_need(inputs_of, awaited) if view in some]
    return next((view for view in order if view in early), order[0])


def _with_what_they_read(inputs_of: Mapping[str, Collection[str]], views: Collection[str]) -> set[str]:
    found = {v for v in views if v in inputs_of}
    stack = list(found)
    while stack:
        more = [i for i in inputs_of[stack.pop()] if i in inputs_of and i not in found]
        found.update(more)
        stack += more
    return found


def _by_need(inputs_of: Mapping[str, Collection[str]], awaited: Collection[str]) -> list[str]:
    """The views (keys), what is ``awaited`` with all that it reads first, each after what it reads."""
    urgent = _with_what_they_read(inputs_of, awaited)
    return sorted((v for level in levels(inputs_of) for v in level), key=lambda v: v not in urgent)
