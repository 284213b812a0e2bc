"""Which operator or function a call means: Postgres's way of choosing (``parse_oper.c``, ``parse_func.c``).  Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from journal.errors import InvalidUsage
from sql.system.signatures import FUNCTIONS, OPERATORS
from sql.system.types import ROWS, array_of, becomes, by_head, common, element_of, shown
from sql.system.types import PgType as T
from trees.errors import no_function, no_operator

ARGUMENTS_MAX = 100
"""Of one call, as in Postgres (``FUNC_MAX_ARGS``)."""


@dataclass(frozen=True, slots=True)
class Signature:
    arguments: tuple[str, ...]
    result: str
    rows: bool = False
    variadic: bool = False
    defaults: int = 0

    def of(self, count: int) -> Signature | None:
        """The same as it takes ``count`` arguments."""
        if self.variadic and count >= len(self.arguments):
            last = self.arguments[-1]
            item = {"any": "any", "anycompatiblearray": "anycompatible"}.get(last) or element_of(last) or last
            more = (item,) * (count - len(self.arguments) + 1)
            return replace(self, arguments=(*self.arguments[:-1], *more))
        if self.variadic or not len(self.arguments) - self.defaults <= count <= len(self.arguments):
            return None
        return replace(self, arguments=self.arguments[:count])


_SIGNATURE = re.compile(r"\(([^)=.]*)(\.\.\.)?(?:=(\d+))?\)(\*?)(\w+)")


def _functions() -> dict[str, tuple[Signature, ...]]:
    lines = [" ".join(part.split()) for part in re.split(r"\n(?! )", FUNCTIONS.strip())]
    found = {}
    for name, _, rest in (line.partition(" ") for line in lines):
        found[name] = tuple(
            Signature(tuple(args.split(",")) if args else (), result, bool(rows), bool(more), int(defaults or 0))
            for args, more, defaults, rows, result in _SIGNATURE.findall(rest)
        )
    return found


BY_NAME: dict[str, tuple[Signature, ...]] = _functions()

_BY_SIGN: dict[str, list[Signature]] = {}
for _head, _pairs in by_head(OPERATORS).items():
    _sign, _result = _head.split()
    _BY_SIGN.setdefault(_sign, []).extend(Signature(tuple(pair.split(",")), _result) for pair in _pairs)


def operator(sign: str, left: T, right: T) -> tuple[T, tuple[str, str]]:
    """What ``left sign right`` gives, and the types that both become.  42883 where there is none, 42725 of several."""
    found = _operator(sign, left.name, right.name)
    if found is None:
        raise no_operator(shown(left.name), sign, shown(right.name))
    if isinstance(found, str):
        raise InvalidUsage(
            f"operator is not unique: {shown(left.name)} {sign} {shown(right.name)}", sqlstate="42725",
            hint="add explicit type casts",
        )
    result, arguments = _made(found, (left.name, right.name))
    return T(result), arguments


@lru_cache(4096)
def _operator(sign: str, left: str, right: str) -> Signature | str | None:
    candidates = _BY_SIGN.get(sign, [])
    given = (left, right)
    exact = (right if left == "unknown" else left, left if right == "unknown" else right)
    for tried in (exact, given):
        for each in candidates:
            if each.arguments == tried:
                return each
    return _chosen([each for each in candidates if _takes(each, given)], given)


def function(name: str, given: Sequence[T]) -> tuple[T, tuple[str, ...], bool]:
    """What a call gives, the types that its arguments become, and whether it makes rows.  42883 where there is none."""
    types = tuple(each.name for each in given)
    found = _function(name, types) if len(types) <= ARGUMENTS_MAX else None
    if found is None:
        told = f"{name}({', '.join(map(shown, types))})"
        raise no_function(told, hint="docs/sql.md lists the functions that there are")
    if isinstance(found, str):
        told = f"function {name}({', '.join(map(shown, types))}) is not unique"
        raise InvalidUsage(told, sqlstate="42725", hint="add explicit type casts")
    result, arguments = _made(found, types)
    return T(result), arguments, found.rows


@lru_cache(4096)
def _function(name: str, given: tuple[str, ...]) -> Signature | str | None:
    candidates = [made for each in BY_NAME.get(name, ()) if (made := each.of(len(given))) is not None]
    for each in candidates:
        if each.arguments == given:
            return each
    return _chosen([each for each in candidates if _takes(each, given)], given)


def _takes(each: Signature, given: tuple[str, ...]) -> bool:
    if not all(becomes(got, wanted) for got, wanted in zip(given, each.arguments, strict=True)):
        return False
    return not any(wanted.startswith("any") for wanted in each.arguments) or _bound(each, given) is not None


def _bound(each: Signature, given: tuple[str, ...]) -> str | None:
    """What the items of a polymorphic signature are; ``None`` where its arguments disagree."""
    exact: set[str] = set()
    alike: list[T] = []
    for got, wanted in zip(given, each.arguments, strict=True):
        if got in ("unknown", "record"):
            continue
        if wanted in ("anyelement", "anynonarray"):
            exact.add(got)
        elif wanted == "anyarray":
            exact.add(element_of(got) or got)
        elif wanted == "anycompatible":
            alike.append(T(got))
        elif wanted == "anycompatiblearray":
            alike.append(T(element_of(got) or got))
    if len(exact) > 1:
        return None
    if exact:
        return exact.pop()
    try:
        return common(alike, "").name
    except InvalidUsage:
        return None


def _made(found: Signature, given: tuple[str, ...]) -> tuple[str, tuple[str, ...]]:
    """The result and the arguments with the polymorphic types filled in."""
    item = _bound(found, given) if any(each.startswith("any") for each in found.arguments) else None

    def filled(wanted: str, got: str) -> str:
        if wanted in ("anyarray", "anycompatiblearray"):
            return got if element_of(got) is not None else array_of(item or "text") or got
        if wanted in ("anyelement", "anynonarray", "anycompatible"):
            return item or got
        return got if wanted == "any" else wanted

    arguments = tuple(filled(wanted, got) for wanted, got in zip(found.arguments, given, strict=True))
    if found.result in ("anyarray", "anycompatiblearray"):
        arrays = [got for got, wanted in zip(given, found.arguments, strict=True) if wanted == found.result]
        kept = next((each for each in arrays if element_of(each) == item and each.startswith("_")), None)
        return kept or array_of(item or "text") or "_text", arguments
    if found.result in ("anyelement", "anynonarray", "anycompatible"):
        return item or "text", arguments
    return found.result, arguments


def _chosen(candidates: list[Signature], given: tuple[str, ...]) -> Signature | str | None:
    """``func_select_candidate``: the best of several, a ``str`` where none is."""
    if len(candidates) < 2:
        return candidates[0] if candidates else None

    def best(score) -> list[Signature]:
        most = max(map(score, candidates))
        return [each for each in candidates if score(each) == most]

    candidates = best(lambda each: sum(w == g for w, g in zip(each.arguments, given, strict=True) if g != "unknown"))
    if len(candidates) == 1:
        return candidates[0]
    candidates = best(
        lambda each: sum(
            w == g or (ROWS[w].category == ROWS[g].category and ROWS[w].preferred)
            for w, g in zip(each.arguments, given, strict=True)
            if g != "unknown"
        )
    )
    if len(candidates) == 1:
        return candidates[0]
    places = [at for at, each in enumerate(given) if each == "unknown"]
    if not places:
        plain = [each for each in candidates if not any(wanted.startswith("any") for wanted in each.arguments)]
        return plain[0] if len(plain) == 1 else "several"
    narrowed = _by_category(candidates, places)
    if narrowed is not None:
        candidates = narrowed
        if len(candidates) == 1:
            return candidates[0]
    known = {each for each in given if each != "unknown"}
    if len(known) == 1:
        (only,) = known
        fitting = [each for each in candidates if all(becomes(only, each.arguments[at]) for at in places)]
        if len(fitting) == 1:
            return fitting[0]
    of_arrays = ("anycompatiblearray", "anycompatiblearray")  # ``array || '{1}'``: what is untyped is of the same type
    return next((each for each in candidates if each.arguments == of_arrays), "several")


def _by_category(candidates: list[Signature], places: list[int]) -> list[Signature] | None:
    """Those that fit the category that what is untyped is taken to be of: text, where one of them takes that."""
    wanted: dict[int, tuple[str, bool]] = {}
    for at in places:
        categories = {ROWS[each.arguments[at]].category for each in candidates}
        category = "S" if "S" in categories else categories.pop() if len(categories) == 1 else None
        if category is None:
            return None
        preferred = any(
            ROWS[each.arguments[at]].category == category and ROWS[each.arguments[at]].preferred for each in candidates
        )
        wanted[at] = category, preferred
    kept = [
        each
        for each in candidates
        if all(
            ROWS[each.arguments[at]].category == category and (not preferred or ROWS[each.arguments[at]].preferred)
            for at, (category, preferred) in wanted.items()
        )
    ]
    return kept or None
