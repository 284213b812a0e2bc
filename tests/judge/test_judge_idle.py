"""The checkers of idle views and of poisoned ones: histories that must pass, and that must fail."""

from __future__ import annotations

import re

import pytest

from judge.checkers import idle, poison
from judge.history import Fault, Op
from judge.notation import parse
from judge.verdict import INVALID, UNDECIDED, VALID

S = 1_000_000_000


def history(text: str, workload: str) -> list[Op]:
    """``insert(1/5)`` (key/value), ``c(sums)=1/5/1`` (a compare: key/total/count of view and query alike), ``=1/5/1~``
    (of the view alone), ``=1/5/1|1/6/1`` (of the view, of the query), ``n(failing/9)`` (a new definition, which 9
    fails); times are seconds."""
    words = []
    for word in text.split():
        head, _, rest = word.partition("(")
        argument, _, rest = rest.partition(")")
        result, _, times = rest.rpartition("[")
        times = re.sub(r"\d+", lambda n: str(int(n[0]) * S), times.split("]")[0]) + "]" + times.split("]")[1]
        process = head.split(":")[0]
        if head.endswith(":n"):
            view, _, value = argument.partition("/")
            words.append(f'{process}:renew({{"view":"{workload}_{view}","value":{value}}})[{times}')
        elif head.endswith("insert"):
            rows = ",".join(f"[{each.replace('/', ',')}]" for each in argument.split(","))
            words.append(f'{process}:insert({{"rows":[{rows}]}})[{times}')
        else:
            view, _, other = result[1:].rstrip("~").partition("|")
            shown, query = ("[" + ",".join(f"[{each.replace('/', ',')}]" for each in side.split(",") if each) + "]"
                            for side in (view, other or view))  # fmt: skip
            query = "[]" if result.endswith("~") else query
            told = f'={{"view":{shown},"query":{query}}}' if result else ""
            words.append(f'{process}:compare({{"view":"{workload}_{argument}"}}){told}[{times}')
    return parse(" ".join(words), workload)


IDLE_PASS = {
    "serial": "0:insert(1/5)[0,1] 1:c(sums)=1/5/1[2,3]",
    "too old once": "0:insert(1/5)[0,1] 1:c(sums)[2,3]!72000 1:c(sums)=1/5/1[4,5]",
    "nobody there for long, then it is": "0:insert(1/5)[0,1] 1:c(sums)[2,60]!57014 1:c(sums)=1/5/1[61,62]",
    "not answered at the end, for a moment": "0:insert(1/5)[0,1] 1:c(sums)=1/5/1[2,3] 1:c(sums)[4,14]!57014",
    "unknown": "0:insert(1/5)[0,] 1:insert(2/6)[0,1] 1:c(sums)=2/6/1[2,3]",
}
IDLE_FAIL = {
    "too old for ever": ("0:insert(1/5)[0,1] 1:c(sums)=1/5/1[2,3] 1:c(sums)[4,5]!72000", "refused"),
    "its rows are gone": ("0:insert(1/5)[0,1] 1:c(sums)=1/5/1[2,3] 1:c(sums)[4,5]!58P01", "refused"),
    "quarantined": ("0:insert(1/5)[0,1] 1:c(sums)[2,3]!58000 1:c(sums)=1/5/1[4,5]", "refused"),
    "dropped": ("0:insert(1/5)[0,1] 1:c(sums)[2,3]!42P01 1:c(sums)=1/5/1[4,5]", "refused"),
    "its keeper ends again and again": (
        "0:insert(1/5)[0,1] 1:c(sums)=1/5/1[2,3] 1:c(sums)[4,30]!57014 1:c(sums)[31,56]!08006", "stopped",
    ),
    "an insert is lost": ("0:insert(1/5)[0,1] 1:c(sums)=[2,3] 1:insert(2/1)[4,5] 1:c(sums)=2/1/1[6,7]", "lost-write"),
    "view and query differ": ("0:insert(1/5)[0,1] 1:c(sums)=1/5/1[2,3] 1:c(sums)=1/5/1~[4,5]", "view-differs"),
}  # fmt: skip

POISON_PASS = {
    "told": "0:insert(1/5)[0,1] 1:c(spared)=1/5/1[2,3] 0:insert(1/7)[4,5] 1:c(failing)[6,7]!22012 "
    "0:insert(1/13)[8,9] 1:c(ending)[10,50]!57014 1:c(ending)[51,52]!58000 1:c(spared)=1/25/3[53,54]",
    "answered before": "0:insert(1/5)[0,1] 1:c(failing)=1/1[2,3] 0:insert(1/7)[4,9] 1:c(failing)=1/1[5,6] "
    "1:c(failing)[10,11]!22012 1:c(spared)=1/12/2[12,13]",
    "failed to write it": "0:insert(1/5)[0,1] 0:insert(1/7)[2,3]! 1:c(failing)=1/1[4,5] 0:insert(1/13)[6,7] "
    "1:c(ending)[8,9]!58000 1:c(spared)=1/18/2[10,11]",
    "a new definition answers again": "0:insert(1/7)[0,1] 1:c(failing)[2,3]!22012 0:n(failing/-1001)[4,6] "
    "1:c(failing)=1/7/1[7,8] 0:insert(1/-1001)[9,10] 1:c(failing)[11,12]!22012 1:c(spared)=1/-994/2[13,14]",
    "asked while it is made anew": "0:insert(1/7)[0,1] 1:c(failing)[2,3]!22012 2:c(failing)[4,5]!42P01 "
    "2:c(failing)=1/7/1[6,7] 0:n(failing/-1001)[4,8] 1:c(spared)=1/7/1[9,10]",
    "nobody knows whether it was made anew": "0:insert(1/7)[0,1] 1:c(failing)[2,3]!22012 0:n(failing/-1001)[4,] "
    "1:c(failing)=1/7/1[9,10] 1:c(failing)[11,12]!22012 1:c(failing)[13,14]!42P01 1:c(spared)=1/7/1[15,16]",
    "not told in a short time": "0:insert(1/7)[0,1] 1:c(failing)[2,32]!57014 0:n(failing/-1001)[40,41] "
    "0:insert(1/-1001)[42,43] 1:c(failing)[44,45]!22012 1:c(spared)=1/-994/2[46,47]",
    "a spared view is away for a moment": "0:insert(1/13)[0,1] 1:c(spared)[2,12]!57014 1:c(ending)[13,14]!58000 "
    "1:c(spared)=1/13/1[15,16]",
}
_TOLD = " 0:insert(1/7)[80,81] 1:c(failing)[82,83]!22012"
POISON_FAIL = {
    "answered after all": ("0:insert(1/7)[0,1] 1:c(failing)=1/1[2,3] 1:c(failing)[4,5]!22012 1:c(spared)=1/7/1[6,7]",
                           "hidden"),
    "all fail for one": ("0:insert(1/7)[0,1] 1:c(failing)[2,3]!22012 1:c(spared)[4,5]!22012 1:c(spared)=1/7/1[6,7]",
                         "blamed"),
    "the innocent in quarantine": ("0:insert(1/13)[0,1] 1:c(spared)[2,3]!58000 1:c(ending)[4,5]!58000 "
                                   "1:c(spared)=1/13/1[6,7]", "blamed"),
    "told too early": ("0:insert(1/5)[0,1] 1:c(ending)[2,3]!58000 0:insert(1/13)[4,5] 1:c(ending)[6,7]!58000 "
                       "1:c(spared)=1/18/2[8,9]", "blamed"),
    "answered though the new one is poisoned too": (
        "0:insert(1/7)[0,1] 1:c(failing)[2,3]!22012 0:n(failing/-1001)[4,6] 0:insert(1/-1001)[7,8] "
        "1:c(failing)=1/-994/2[9,10] 1:c(spared)=1/-994/2[11,12]", "hidden",
    ),
    "told of what the old one suffered from": (
        "0:insert(1/7)[0,1] 1:c(failing)[2,3]!22012 0:n(failing/-1001)[4,6] 1:c(failing)[7,8]!22012 "
        "1:c(spared)=1/7/1[9,10]", "blamed not-back",
    ),
    "it does not come back": (
        "0:insert(1/7)[0,1] 1:c(failing)[2,3]!22012 0:n(failing/-1001)[4,6] 1:c(failing)[7,8]!42P01 "
        "1:c(spared)=1/7/1[9,10]", "not-back",
    ),
    "nobody is told for as long as it is poisoned": (
        "0:insert(1/7)[0,1] 1:c(failing)[2,32]!57014 1:c(failing)[33,63]!57014 0:n(failing/-1001)[70,71] "
        "0:insert(1/-1001)[72,73] 1:c(failing)[74,75]!22012 1:c(spared)=1/-994/2[76,77]", "untold",
    ),
    "answered wrongly": (
        "0:insert(1/7)[0,1] 1:c(failing)[2,3]!22012 0:n(failing/-1001)[4,6] 1:c(failing)=1/7/1|1/8/1[7,8] "
        "1:c(spared)=1/7/1[9,10]", "view-differs",
    ),
    "nobody is told": ("0:insert(1/13)[0,1] 1:c(ending)[2,27]!57014 1:c(ending)[28,53]!57014 1:c(spared)=1/13/1[54,55]"
                       + _TOLD, "untold"),
    "restarted into": ("0:insert(1/13)[0,1] 1:c(ending)[2,3]!58000 1:c(spared)=1/13/1[4,5] 1:c(spared)[6,31]!57014",
                       "stopped"),
    "an insert is lost": ("0:insert(1/13)[0,1] 1:c(ending)[2,3]!58000 1:c(spared)=[4,5] 1:c(spared)=1/13/1[6,7]",
                          "lost-write wrong-answer"),
    "view and query differ": ("0:insert(1/13)[0,1] 1:c(ending)[2,3]!58000 1:c(spared)=1/13/1[4,5] "
                              "1:c(spared)=1/13/1~[6,7]", "view-differs lost-write"),
}  # fmt: skip


@pytest.mark.parametrize("text", IDLE_PASS.values(), ids=IDLE_PASS)
def test_idle_views_pass(text: str) -> None:
    verdict = idle.check(history(text, "idle"))
    assert verdict.valid == VALID, verdict


@pytest.mark.parametrize(("text", "kinds"), IDLE_FAIL.values(), ids=IDLE_FAIL)
def test_idle_views_fail(text: str, kinds: str) -> None:
    verdict = idle.check(history(text, "idle"))
    assert verdict.valid == INVALID and kinds.split()[0] in verdict.kinds, verdict
    assert verdict.checker == "idle"


@pytest.mark.parametrize("text", POISON_PASS.values(), ids=POISON_PASS)
def test_poisoned_views_pass(text: str) -> None:
    verdict = poison.check(history(text, "poison"))
    assert verdict.valid == VALID, verdict


@pytest.mark.parametrize(("text", "kinds"), POISON_FAIL.values(), ids=POISON_FAIL)
def test_poisoned_views_fail(text: str, kinds: str) -> None:
    verdict = poison.check(history(text, "poison"))
    assert verdict.valid == INVALID and kinds.split()[0] in verdict.kinds, verdict


def test_whom_others_killed_often_may_be_in_quarantine_for_nothing() -> None:
    text = "0:insert(1/13)[0,1] 1:c(spared)[2,3]!58000 1:c(ending)[4,5]!58000 1:c(spared)=1/13/1[6,7]"
    told, killed = history(text, "poison"), [Fault(0, 1, "kill", "compute"), Fault(2, 3, "restart", "compute")]
    assert poison.check(told, faults=killed).valid == VALID
    for fewer in (killed[:1], [each._replace(target="storage") for each in killed]):
        assert poison.check(told, faults=fewer).valid == INVALID


def test_who_waited_in_vain_while_others_were_hurt_says_nothing_of_what_is_poisoned() -> None:
    """Half an hour of faults, a new definition each minute: some saw nothing but a controller that was coming back."""
    text, _ = POISON_FAIL["nobody is told for as long as it is poisoned"]
    told = history(text, "poison")
    for begun, over, valid in ((10, 11, VALID), (10, None, VALID), (75, 76, INVALID)):
        faults = [Fault(begun * S, None if over is None else over * S, "slow-network", "b1")]
        assert poison.check(told, faults=faults).valid == valid, (begun, over)


@pytest.mark.parametrize(
    ("end", "text", "kind"),
    [
        (3, "0:insert(1/5)[0,1] 1:c(ending)[4,5]!58000 1:c(spared)=1/5/1[6,7]", None),
        (3, "0:insert(1/5)[0,1] 1:c(ending)[4,5]!58000 0:n(ending/null)[6,7] 1:c(ending)=[8,9] 1:c(spared)=1/5/1[9,9]",
         None),
        (3, "0:insert(1/5)[0,1] 1:c(ending)=[4,5] 1:c(ending)[6,7]!58000 1:c(spared)=1/5/1[8,9]", "hidden"),
        (3, "0:insert(1/5)[0,1] 1:c(ending)[0,1]!58000 1:c(ending)[4,5]!58000 1:c(spared)=1/5/1[6,7]", "blamed"),
        (3, "0:insert(1/5)[0,1] 1:c(ending)[4,29]!57014 1:c(spared)=1/5/1[30,31]", "untold"),
        (None, "0:insert(1/5)[0,1] 1:c(ending)[4,29]!57014 1:c(spared)=1/5/1[30,31]", "untold"),
        (3, "0:insert(1/5)[0,1] 1:c(ending)[4,5]!58000 0:n(ending/null)[6,7] 1:c(ending)[8,9]!58000 "
         "1:c(spared)=1/5/1[10,11]", "not-back"),
    ],
)  # fmt: skip
def test_a_fault_that_ends_the_controller_is_its_row(end: int | None, text: str, kind: str | None) -> None:
    """On real processes it is a fault that writes it, at 2 s, which is healed when whoever asks is told."""
    fault = Fault(2 * S, None if end is None else end * S, "poison", "poison_ending")
    verdict = poison.check(history(text, "poison"), faults=[fault])
    assert verdict.valid == (INVALID if kind else VALID), verdict
    assert kind is None or kind in verdict.kinds


@pytest.mark.parametrize("text", ["", "0:insert(1/5)[0,1] 1:c(spared)=1/5/1[2,3]", "0:insert(1/13)[0,1]"])
def test_where_nothing_happened_it_is_unknown(text: str) -> None:
    verdict = poison.check(history(text, "poison"))
    assert verdict.valid == UNDECIDED and verdict.reason, verdict
    if "spared" not in text:
        assert idle.check(history(text.replace("13", "5"), "idle")).valid == UNDECIDED
