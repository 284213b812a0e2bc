"""The checker of topics made anew under sources: histories that must pass, and that must fail."""

from __future__ import annotations

import re

import pytest

from judge.checkers.sources import check
from judge.history import Op
from judge.notation import parse
from judge.verdict import INVALID, UNDECIDED, VALID

S = 1_000_000_000


def history(text: str) -> list[Op]:
    """``p(a,b)`` (produce), ``remake()``, ``reset()``, ``r()=a,b`` (a read: view and source alike), ``r()=a|b`` (the
    view's, the source's); times are seconds."""
    words = []
    for word in text.split():
        head, _, rest = word.partition("(")
        argument, _, rest = rest.partition(")")
        result, _, times = rest.rpartition("[")
        times, _, outcome = times.partition("]")
        times = re.sub(r"\d+", lambda n: str(int(n[0]) * S), times) + "]" + outcome
        process, f = head.split(":")
        if f == "p":
            words.append(f"{process}:produce({_object('ids', argument)})[{times}")
        elif f == "r":
            view, _, query = result[1:].partition("|")
            sides = f'{{"view":{_list(view)},"query":{_list(query if "|" in result else view)}}}'
            words.append(f"{process}:rows(null){'=' + sides if result else ''}[{times}")
        else:
            words.append(f"{process}:{f}(null)[{times}")
    # ``read`` has a notation of its own in the register's histories.
    return [_read(op) for op in parse(" ".join(words), "sources")]


def _read(op: Op) -> Op:
    fields = {name: getattr(op, name) for name in op.__slots__}
    return Op(**fields | {"f": "read"}) if op.f == "rows" else op


def _list(names: str) -> str:
    return "[" + ",".join(f'"{each}"' for each in names.split(",") if each) + "]"


def _object(name: str, names: str) -> str:
    return f'{{"{name}":{_list(names)}}}'


ANEW = "0:p(a,b)[0,1] 1:r()=a,b[2,3] 0:remake()[4,5] 0:p(c,d,e)[6,7] "
RESET = ANEW + "0:reset()[10,11] "

PASS = {
    "nothing is made anew": "0:p(a)[0,1] 1:r()=[2,3] 1:r()=a[4,5] 1:r()=a[20,21]",
    "it shows what it has": ANEW + "1:r()=a,b[8,9]",
    "it refuses what is gone": ANEW + "1:r()[8,40]!58P01 1:r()[41,70]!58P01",
    "it is reset": RESET + "1:r()=[12,13] 1:r()=c[14,15] 1:r()=c,d,e[30,31]",
    "read while it is reset": ANEW + "1:r()=a,b[8,20] 0:reset()[10,11] 1:r()=c,d,e[30,31]",
    "nobody knows whether it was reset": ANEW + "0:reset()[10,] 1:r()=c[12,13] 1:r()=c,d,e[14,15]",
    "nobody knows, and it was not": ANEW + "0:reset()[10,] 1:r()=a,b[12,13] 1:r()=a,b[14,15]",
    "written while it was made anew": "0:p(a)[0,1] 1:r()=a[2,3] 2:p(b)[3,9] 0:remake()[4,5] 1:r()=a,b[10,11] "
    "0:reset()[12,13] 1:r()=b[14,15] 1:r()=b[40,41]",
    "nothing had been read of it": "0:remake()[0,1] 0:p(a)[2,3] 1:r()=a[4,5]",
    "made anew twice": RESET + "1:r()=c[12,13] 0:remake()[14,15] 0:p(f)[16,17] 1:r()=c,d[18,19] 0:reset()[20,21] "
    "1:r()=f[40,41]",
    "nobody knows whether it was made anew": "0:p(a)[0,1] 1:r()=a[2,3] 0:remake()[4,] 2:p(b)[6,7] 1:r()=a,b[8,9]",
    "refused for a moment": RESET + "1:r()[12,13]!42P01 1:r()=c,d,e[30,31]",
}

MUST_FAIL = {
    "two answers": (ANEW + "1:r()=a,b|a[8,9]", "two-answers"),
    "two topics' rows": (ANEW + "1:r()=a,b|c,d,e[8,9]", "two-answers"),
    "the new one behind the old": (ANEW + "1:r()=a,b,e[8,9]", "mixed"),
    "the new one instead of the old": (ANEW + "1:r()=c,d,e[8,9]", "vanished"),
    "it went on by itself": (ANEW + "1:r()=c,d,e[8,9]", "went-on"),
    "the old one is back": (RESET + "1:r()=c,d[12,13] 1:r()=a,b[14,15]", "came-back"),
    "a row is gone": ("0:p(a,b)[0,1] 1:r()=a,b[2,3] 1:r()=a[4,5]", "vanished"),
    "a row is there twice": ("0:p(a,b)[0,1] 1:r()=a,a,b[2,3]", "doubled"),
    "a row that nobody wrote": ("0:p(a,b)[0,1] 1:r()=a,z[2,3]", "phantom"),
    "a row that failed": ("0:p(a)[0,1]! 1:r()=a[2,3]", "phantom"),
    "a row of the future": ("1:r()=a[0,1] 0:p(a)[2,3]", "phantom"),
    "never read": ("0:p(a,b)[0,1] 1:r()=a[20,21]", "lost"),
    "never read after a reset": (RESET + "1:r()=c[30,31]", "lost"),
    "it does not come back": (RESET + "1:r()=c,d[12,13] 1:r()[30,31]!58P01", "not-back"),
}


@pytest.mark.parametrize("text", PASS.values(), ids=PASS)
def test_must_pass(text: str) -> None:
    verdict = check(history(text))
    assert verdict.valid == VALID, verdict


@pytest.mark.parametrize(("text", "kind"), MUST_FAIL.values(), ids=MUST_FAIL)
def test_must_fail(text: str, kind: str) -> None:
    verdict = check(history(text))
    assert verdict.valid == INVALID and kind in verdict.kinds, verdict


@pytest.mark.parametrize("text", ["", "0:p(a)[0,1]", "0:p(a)[0,1] 1:r()=[2,3]", "0:p(a)[0,1] 1:r()[2,3]!57014"])
def test_where_nobody_saw_a_row_it_is_unknown(text: str) -> None:
    verdict = check(history(text))
    assert verdict.valid == UNDECIDED and verdict.reason, verdict
