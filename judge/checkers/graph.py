"""Strongly connected components, for checkers that look for cycles.  Pure.

Tarjan's algorithm (R. Tarjan, "Depth-first search and linear graph algorithms", 1972), without recursion: a history is
longer than Python's stack.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence


def components(targets: Sequence[Sequence[int]], nodes: Collection[int] | None = None) -> list[list[int]]:
    """The components of more than one node of the graph ``node -> targets[node]``, or of its part on ``nodes``.

    Linear in the edges looked at.  An edge from a node to itself does not make a component.
    """
    count = len(targets)
    done = count + 1
    # 0: not seen.  A node's number falls to the smallest that it reaches on the stack, and ends as `done`.
    low = [0] * count
    if nodes is not None:
        low = [done] * count
        for node in nodes:
            low[node] = 0
    found: list[list[int]] = []
    stack: list[int] = []
    number = 0
    for root in range(count) if nodes is None else nodes:
        if low[root]:
            continue
        number += 1
        low[root] = number
        stack.append(root)
        path = [(root, number, iter(targets[root]))]
        while path:
            node, mine, ahead = path[-1]
            for target in ahead:
                seen = low[target]
                if not seen:
                    number += 1
                    low[target] = number
                    stack.append(target)
                    path.append((target, number, iter(targets[target])))
                    break
                if seen < low[node]:
                    low[node] = seen
            else:
                path.pop()
                lowest = low[node]
                if path and lowest < low[path[-1][0]]:
                    low[path[-1][0]] = lowest
                if lowest == mine:
                    start = len(stack) - 1
                    while stack[start] != node:
                        start -= 1
                    members = stack[start:]
                    del stack[start:]
                    for member in members:
                        low[member] = done
                    if len(members) > 1:
                        found.append(members)
    return found
