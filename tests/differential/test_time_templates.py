"""Templates of dates and times, put to PostgreSQL and to ours: patterns in any order, with texts near to what they say.

Promises that a run is decided by ``SEED`` alone.
"""

from __future__ import annotations

import random
from datetime import datetime, timedelta

import pytest

from tests.differential.postgres import missing, postgres
from values.bad_text import BadText
from values.time import read_by_template, shown_by_template, template_nodes
from values.time.interval_words import read_interval

SEED, TEMPLATES = 20_000_202, 20_000

PIECES = [*template_nodes.PATTERNS, *sorted({name.lower() for name in template_nodes.PATTERNS})]
BETWEEN = ["", "", " ", "-", "/", ":", ".", ",", "x", '"text"', "  ", "TH", "th", "FM", "TM", "\\", '\\"', "1", "ä"]
MOMENTS = [
    "2024-02-29 13:14:15.678901", "1999-12-31 23:59:59.999999", "2000-01-01", "0001-01-01", "9999-12-31 12:00",
    "2021-01-03 00:30", "1970-01-01 00:00:00.05", "0999-10-11 11:22:33", "2011-12-13 01:02:03.4",
]  # fmt: skip
INTERVALS = [
    "1 year 2 mons 3 days 04:05:06.7", "-1 year -2 mons +3 days -30:05:06.07", "0", "13 mons", "100 years", "-26 hours",
    "-999 years -11 mons", "1500 years",
]  # fmt: skip

TRIED = """
create function tried(query text, given text, template text) returns text language plpgsql as $$
declare found text;
begin
    execute query into found using given, template;
    return found;
exception when others then
    return 'error ' || sqlstate;
end $$
"""
_EPOCH, _MICRO = datetime(1970, 1, 1), timedelta(microseconds=1)
_FIRST, _LAST = -62_135_596_800_000_000, 253_402_300_800_000_000


def _micros(text: str) -> int:
    return (datetime.fromisoformat(text) - _EPOCH) // _MICRO


def _template(random_: random.Random) -> str:
    few = random_.sample(PIECES, random_.choice((1, 1, 2, 3)))
    return "".join(random_.choice(BETWEEN) + piece + random_.choice(BETWEEN) for piece in few)


def _tried(run, *given) -> str:
    try:
        return str(run(*given))
    except BadText as error:
        return f"error {error.sqlstate}"


def _asked(peer, query: str, pairs: list[tuple[str, str]]) -> list[str]:
    text = "select tried(%s, a, b) from unnest(%s::text[], %s::text[]) with ordinality as t(a, b, n) order by n"
    return [row[0] for row in peer.execute(text, [query, *map(list, zip(*pairs, strict=True))]).fetchall()]


@pytest.fixture(scope="module")
def peer():
    if missing() is not None:
        pytest.skip(str(missing()))
    with postgres() as connection:
        connection.execute("set timezone = 'UTC'")
        connection.execute(TRIED)
        yield connection


def test_times_are_shown_alike(peer):
    random_ = random.Random(SEED)
    pairs = [(random_.choice(MOMENTS), _template(random_)) for _ in range(TEMPLATES)]
    theirs = _asked(peer, "select to_char($1::timestamp, $2)", pairs)
    ours = [_tried(shown_by_template.shown_local, _micros(moment), template) for moment, template in pairs]
    assert [each for each in zip(pairs, theirs, ours, strict=True) if each[1] != each[2]] == []


def test_intervals_are_shown_alike(peer):
    random_ = random.Random(SEED)
    pairs = [(random_.choice(INTERVALS), _template(random_)) for _ in range(TEMPLATES)]
    theirs = _asked(peer, "select to_char($1::interval, $2)", pairs)
    ours = [_tried(shown_by_template.shown_interval, read_interval(given), template) for given, template in pairs]
    refused = "error 0A000"  # weeks of ISO's, which PostgreSQL shows of an interval as if it were a date
    assert [each for each in zip(pairs, theirs, ours, strict=True) if each[1] != each[2] != refused] == []
    assert sum(each == refused for each in ours) < TEMPLATES // 3


def _text_near(template: str, random_: random.Random) -> str:
    """What ``to_char`` says by a template, with some of it changed, left out or put in."""
    text = list(shown_by_template.shown_local(_micros(random_.choice(MOMENTS)), template.replace("ä", "a")))
    for _ in range(random_.choice((0, 0, 1, 2))):
        place = random_.randint(0, len(text))
        text[place : place + random_.choice((0, 1, 1))] = random_.choice(["", " ", "-", "7", "x", "+", "  "])
    return "".join(text)


def test_texts_are_read_alike(peer):
    random_ = random.Random(SEED)
    few = "YYYY MM DD HH24 MI SS MON Day DDD IYYY IW ID HH12 AM YY CC J MS US FF3 TZH TZM BC Q WW W Y,YYY RM FX".split()
    pairs = []
    for _ in range(TEMPLATES):
        patterns = ["YYYY", *random_.sample(few, 3)] if random_.random() < 0.7 else random_.sample(PIECES, 3)
        between = random_.choice((["-", "/", " "], BETWEEN))
        template = "".join(piece + random_.choice(between) for piece in patterns)
        pairs.append((_text_near(template, random_), template))
    theirs = _asked(peer, "select (extract(epoch from to_timestamp($1, $2)) * 1000000)::int8::text", pairs)

    def carried(answer: str) -> str:
        return answer if answer.startswith("error") or _FIRST <= int(answer) < _LAST else "error 22008"

    ours = [_tried(read_by_template.read_moment, *pair) for pair in pairs]
    unlike = [(pair, carried(a), b) for pair, a, b in zip(pairs, theirs, ours, strict=True) if carried(a) != b]
    assert [each for each in unlike if not (each[1].startswith("error") and each[2].startswith("error"))] == []
    assert len(unlike) < TEMPLATES // 1000
    assert sum(not each.startswith("error") for each in ours) > TEMPLATES // 4
