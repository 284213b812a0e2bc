"""The checkers of claims (ON CONFLICT DO NOTHING) and of sequences: histories that must pass and fail."""

from __future__ import annotations

import json
from typing import Any

import pytest

from judge.checkers import claims, draws
from judge.history import Op
from judge.notation import parse
from judge.shrink import shrink
from judge.verdict import INVALID, UNDECIDED, VALID


def claimed(text: str) -> list[Op]:
    """``claim(1,a)=won`` (or ``lost``) claims 1 by a; ``see()=1a,2b`` reads who has 1 and 2."""
    words = []
    for word in text.split():
        head, _, rest = word.partition(":")
        f, _, rest = rest.partition("(")
        about, _, rest = rest.partition(")")
        told, bracket, times = rest.partition("[")
        if f == "claim":
            k, token = about.split(",")
            answer = f'={{"won":{json.dumps(told == "=won")}}}' if told else ""
            words.append(f'{head}:claim({{"k":{k},"token":"{token}"}}){answer}{bracket}{times}')
        else:
            rows = json.dumps(
                [[int(each[:-1]), each[-1]] for each in told[1:].split(",") if each], separators=(",", ":")
            )
            words.append(f'{head}:claims({{"lower":0,"upper":9}})={{"rows":{rows}}}{bracket}{times}')
    return parse(" ".join(words), "upserts")


CLAIMS_PASS = {
    "one": "0:claim(1,a)=won[0,1] 1:claim(1,b)=lost[2,3] 0:see()=1a[4,5]",
    "two at once": "0:claim(1,a)=lost[0,9] 1:claim(1,b)=won[0,9] 0:see()=1b[10,11]",
    "lost to an unknown one": "0:claim(1,a)[0,] 1:claim(1,b)=lost[2,3] 1:see()=1a[4,5]",
    "an unknown one that lost": "0:claim(1,a)[0,] 1:claim(1,b)=won[2,3] 1:see()=1b[4,5]",
    "an unknown one that comes late": "0:claim(1,a)[0,] 1:claim(2,b)=won[2,3] 1:see()=2b[4,5] 1:see()=1a,2b[6,7]",
    "read while it is claimed": "0:claim(1,a)=won[0,9] 1:see()=1a[1,2] 1:claim(1,b)=lost[3,4] 1:see()=1a[5,6]",
    "one that failed": "0:claim(1,a)[0,1]! 1:claim(1,b)=won[2,3] 1:see()=1b[4,5]",
}

CLAIMS_FAIL = {
    "two won": ("0:claim(1,a)=won[0,9] 1:claim(1,b)=won[0,9] 0:see()=1a[10,11]", "two-winners"),
    "one won and another is there": ("0:claim(1,a)=won[0,1] 1:claim(1,b)[2,] 0:see()=1b[4,5]", "two-winners"),
    "two are there": ("0:claim(1,a)[0,] 1:claim(1,b)=won[0,9] 1:see()=1a,1b[10,11]", "two-winners"),
    "two unknown ones, one after the other": (
        "0:claim(1,a)[0,] 1:claim(1,b)[0,] 2:claim(2,c)=won[1,2] 2:see()=1a,2c[3,4] 2:see()=1b,2c[5,6]", "two-winners",
    ),
    "lost to nobody": ("0:claim(1,a)=lost[0,1] 0:see()=[2,3]", "lost-to-nobody"),
    "all lost": ("0:claim(1,a)=lost[0,9] 1:claim(1,b)=lost[0,9] 0:see()=[10,11]", "lost-to-nobody"),
    "lost to one that failed": ("1:claim(1,b)[0,1]! 0:claim(1,a)=lost[2,3] 0:see()=[4,5]", "lost-to-nobody"),
    "lost to one that came later": ("0:claim(1,a)=lost[0,1] 1:claim(1,b)=won[2,3] 0:see()=1b[4,5]", "lost-to-nobody"),
    "lost": ("0:claim(1,a)=won[0,1] 0:see()=[2,3]", "lost-write"),
    "told that it lost, and is there": ("1:claim(1,b)[0,] 0:claim(1,a)=lost[2,3] 0:see()=1a[4,5]", "two-answers"),
    "one that failed": ("0:claim(1,a)[0,1]! 1:claim(2,b)=won[2,3] 1:see()=1a,2b[4,5]", "dirty-read"),
    "nobody's": ("0:claim(1,a)=won[0,1] 0:see()=1a,2z[2,3]", "phantom"),
    "before it was claimed": ("0:see()=1a[0,1] 0:claim(1,a)=won[2,3]", "future-read"),
}  # fmt: skip


@pytest.mark.parametrize("text", CLAIMS_PASS.values(), ids=CLAIMS_PASS)
def test_claims_that_must_pass(text: str) -> None:
    verdict = claims.check(claimed(text))
    assert verdict.valid == VALID, verdict.anomalies


@pytest.mark.parametrize(("text", "kind"), CLAIMS_FAIL.values(), ids=CLAIMS_FAIL)
def test_claims_that_must_fail(text: str, kind: str) -> None:
    verdict = claims.check(claimed(text))
    assert verdict.valid == INVALID and kind in verdict.kinds, verdict


@pytest.mark.parametrize("text", ["0:claim(1,a)=won[0,1]", "0:see()=[0,1]", "0:claim(1,a)[0,] 1:see()=[2,3]"])
def test_claims_that_say_nothing_are_unknown(text: str) -> None:
    assert claims.check(claimed(text)).valid == UNDECIDED


def test_two_winners_are_cut_to_their_claims() -> None:
    others = " ".join(f"2:claim({3 + n},c)=won[{10 * n},{10 * n + 1}]" for n in range(40))
    both = "0:claim(1,a)=won[400,409] 1:claim(1,b)=won[401,408] 0:see()=1a[410,411]"
    found = shrink(claimed(f"{others} {both}"), claims.check)
    assert [op.value["token"] for op in found.ops] == ["a", "b"]
    assert found.verdict.anomalies[0].text == "2 claims of 1 have won: op 40, op 41"


def drawn(text: str) -> list[Op]:
    """``next(s)=5`` draws by session s; ``put(s:a,b)=1,2`` inserts rows a and b; ``see()=1a,2b`` reads all rows,
    ``see(a)=`` those of a."""
    words = []
    for word in text.split():
        head, _, rest = word.partition(":")
        f, _, rest = rest.partition("(")
        about, _, rest = rest.partition(")")
        told, bracket, times = rest.partition("[")
        session, _, tokens = about.partition(":")
        value: Any = {"tokens": tokens.split(",")} if f == "put" else None
        if f == "see":
            value = {"token": about} if about else {}
            result = {"rows": [[int(each[:-1]), each[-1]] for each in told[1:].split(",") if each]}
        else:
            result = {"xs": [int(each) for each in told[1:].split(",")], "session": session} if told else None
        name = {"next": "nextval", "put": "insert", "see": "drawn"}[f]
        given = "" if value is None else json.dumps(value, separators=(",", ":"))
        answer = "" if result is None else "=" + json.dumps(result, separators=(",", ":"))
        words.append(f"{head}:{name}({given}){answer}{bracket}{times}")
    return parse(" ".join(words), "draws")


DRAWS_PASS = {
    "one after the other": "0:next(s)=1[0,1] 0:next(s)=2[2,3] 0:put(s:a)=1[4,5] 0:see()=1a[6,7]",
    "a gap": "0:next(s)=1[0,1] 0:next(s)=9[2,3] 0:see()=[4,5]",
    "another session is behind": "0:next(s)=9[0,1] 1:next(t)=2[2,3] 0:see()=[4,5]",
    "each sequence has its values": "0:next(s)=1[0,1] 0:put(s:a,b)=1,2[2,3] 0:see()=1a,2b[4,5]",
    "an unknown one that is there": "0:put(s:a)[0,] 1:put(t:b)=2[2,3] 1:see()=1a,2b[4,5]",
    "an unknown one that is not": "0:put(s:a)[0,] 1:put(t:b)=1[2,3] 1:see()=1b[4,5]",
    "one that failed": "0:put(s:a)[0,1]! 0:put(s:b)=2[2,3] 0:see()=2b[4,5]",
    "a look for another": "0:put(s:a)=1[0,1] 0:see(z)=[2,3]",
    "not yet": "0:put(s:a)=1[0,9] 1:see(a)=[1,2] 1:see()=1a[3,4]",
}

DRAWS_FAIL = {
    "twice": ("0:next(s)=1[0,1] 1:next(t)=1[2,3] 0:see()=[4,5]", "given-twice"),
    "twice in one statement": ("0:put(s:a,b)=1,1[0,1] 0:see()=1a,1b[2,3]", "given-twice"),
    "twice in rows": ("0:put(s:a)=1[0,1] 1:put(t:b)[2,] 0:see()=1a,1b[4,5]", "given-twice"),
    "twice by two of which nobody heard": (
        "0:put(s:a)[0,] 1:put(t:b)[0,] 2:next(u)=1[1,2] 2:see()=1a,1b[4,5]", "given-twice",
    ),
    "a session goes back": ("0:next(s)=2[0,1] 0:next(s)=1[2,3] 0:see()=[4,5]", "went-back"),
    "a statement goes back": ("0:put(s:a,b)=2,1[0,1] 0:see()=2a,1b[2,3]", "went-back"),
    "below the first": ("0:next(s)=0[0,1] 0:see()=[2,3]", "phantom"),
    "fewer than asked for": ("0:put(s:a,b)=1[0,1] 0:see()=1a[2,3]", "wrong-count"),
    "another value than was told": ("0:put(s:a)=1[0,1] 0:see()=2a[2,3]", "two-answers"),
    "lost": ("0:put(s:a)=1[0,1] 0:see()=[2,3]", "lost-write"),
    "lost for who looks for it": ("0:put(s:a)=1[0,1] 0:see(a)=[2,3]", "lost-write"),
    "a row twice": ("0:put(s:a)[0,] 1:next(t)=1[2,3] 1:see()=1a,2a[4,5]", "double-apply"),
    "one that failed": ("0:put(s:a)[0,1]! 0:next(s)=1[2,3] 0:see()=1a[4,5]", "dirty-read"),
    "nobody's": ("0:next(s)=1[0,1] 0:see()=1z[2,3]", "phantom"),
    "before it was inserted": ("0:see()=1a[0,1] 0:put(s:a)=1[2,3]", "future-read"),
}  # fmt: skip


@pytest.mark.parametrize("text", DRAWS_PASS.values(), ids=DRAWS_PASS)
def test_draws_that_must_pass(text: str) -> None:
    verdict = draws.check(drawn(text))
    assert verdict.valid == VALID, verdict.anomalies


@pytest.mark.parametrize(("text", "kind"), DRAWS_FAIL.values(), ids=DRAWS_FAIL)
def test_draws_that_must_fail(text: str, kind: str) -> None:
    verdict = draws.check(drawn(text))
    assert verdict.valid == INVALID and kind in verdict.kinds, verdict


@pytest.mark.parametrize("text", ["0:next(s)=1[0,1]", "0:see()=[0,1]", "0:put(s:a)[0,] 1:see()=[2,3]"])
def test_draws_that_say_nothing_are_unknown(text: str) -> None:
    assert draws.check(drawn(text)).valid == UNDECIDED


def test_a_value_given_twice_is_cut_to_who_got_it() -> None:
    others = " ".join(f"2:next(u)={100 + n}[{10 * n},{10 * n + 1}]" for n in range(40))
    found = shrink(drawn(f"{others} 0:next(s)=7[400,401] 1:next(t)=7[402,403] 0:see()=[404,405]"), draws.check)
    assert [op.result["session"] for op in found.ops] == ["s", "t"]
    assert found.verdict.anomalies[0].text == "op 40 and op 41 were both given 7 of draws_seq"
