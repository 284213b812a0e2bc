"""Outputs of one expression that are grouped by each on its own: ``SELECT k AS a, k AS b … GROUP BY a, ROLLUP (b)``.

To Postgres a name or a number in GROUP BY is that output, however equal another one is; to an engine equal
expressions are one key.  The second output becomes ``COALESCE(k, k)``, which is another key of the same value.
"""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot import exp

from trees.nodes import unnest

OUTPUT = "output"
"""Where an output's expression notes its number, which goes along when a name is replaced by it."""

_SETS = ("cube", "rollup", "grouping_sets")


def has_sets(select: exp.Select) -> bool:
    group = select.args.get("group")
    return group is not None and group.find(exp.Rollup, exp.Cube, exp.GroupingSets) is not None


def number_outputs(select: exp.Select) -> None:
    """Before names in GROUP BY are replaced by what they name."""
    if has_sets(select):
        for number, each in enumerate(select.expressions):
            each.unalias().meta[OUTPUT] = number


def keep_apart(select: exp.Select) -> None:
    """After that: make the outputs distinct that are grouped by under names or numbers of their own."""
    if not has_sets(select):
        return
    values = [unnest(each.unalias()) for each in select.expressions]
    meant: dict[int, list[exp.Expression]] = {}
    for key in group_keys(select.args["group"]):
        number = _output(key, values)
        if number is not None:
            meant.setdefault(number, []).append(key)
    keys: list[exp.Expression] = []
    changed: list[tuple[exp.Expression, exp.Expression]] = []
    for number in sorted(meant):
        value = values[number]
        if isinstance(value, (exp.Literal, exp.Null)):
            continue  # a number would mean another output
        same = keys.count(value)
        made = value.copy()
        if same:
            made = exp.Coalesce(this=made, expressions=[value.copy() for _ in range(same)])
        keys.append(value.copy())
        changed += [(each, made) for each in meant[number]]
        if same:
            changed.append((values[number], made))
    order = {id(key): place for place, key in enumerate(group_keys(select.args["group"]))}
    first = sorted(((order[id(node)], made) for node, made in changed if id(node) in order), key=lambda each: each[0])
    if any(isinstance(made, exp.Coalesce) for _, made in first):
        for call in list(select.find_all(exp.Grouping)):
            for argument in list(call.expressions):
                found = [made for _, made in first if made == argument or made.this == argument]
                if found:
                    argument.replace(found[0].copy())
    for node, made in changed:
        node.replace(made.copy())


def group_keys(group: exp.Group) -> Iterator[exp.Expression]:
    """Everything that is grouped by, also inside ROLLUP, CUBE and GROUPING SETS, in its order."""
    stack = [*group.expressions, *(each for key in _SETS for each in group.args.get(key) or ())][::-1]
    while stack:
        each = unnest(stack.pop())
        if isinstance(each, (exp.Rollup, exp.Cube, exp.GroupingSets, exp.Tuple)):
            stack.extend(reversed(each.expressions))
        else:
            yield each


def _output(key: exp.Expression, values: list[exp.Expression]) -> int | None:
    """The output that ``key`` means: the one of its number or name, or the first that is equal."""
    if isinstance(key, exp.Literal):
        place = int(key.this) - 1 if not key.is_string and key.this.isdigit() else -1
        return place if 0 <= place < len(values) else None
    number = key.meta.get(OUTPUT)
    if number is not None and number < len(values) and values[number] == key:
        return number
    return next((place for place, value in enumerate(values) if value == key), None)
