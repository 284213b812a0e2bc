"""MAC addresses of eight bytes: what is read as one, and what becomes of those of six."""

from __future__ import annotations

import pytest

from values.bad_text import BadText
from values.text import macaddrs
from values.text.macaddr8s import (
    of_macaddr,
    read_macaddr8,
    receive_macaddr8,
    send_macaddr8,
    to_macaddr,
    with_seventh_bit,
)

WHOLE = "08:00:2b:01:02:03:04:05"
MADE = "08:00:2b:ff:fe:01:02:03"


@pytest.mark.parametrize(
    "text",
    [WHOLE, "08-00-2B-01-02-03-04-05", "08002b:0102030405", "08002b-0102030405", "0800.2b01.0203.0405",
     "08002b01:02030405", "08002b0102030405", " \t08:00:2b:01:02:03:04:05\n ", "08:00:2b:01:02:03:04:05:",
     "08:00:2b:01:02:03:04:05x"],
)  # fmt: skip
def test_any_of_postgres_forms_is_read(text: str) -> None:
    assert read_macaddr8(text) == WHOLE


@pytest.mark.parametrize("text", ["08:00:2b:01:02:03", "0800.2b01.0203", "08002b010203 ", "08:00:2b:01:02:03:4"])
def test_six_bytes_get_two_in_their_middle(text: str) -> None:
    assert read_macaddr8(text) == MADE


@pytest.mark.parametrize(
    "text",
    ["", " ", "8:0:2b:1:2:3", "08:00:2b-01:02:03", "08:00:2b:01:02", "08:00:2b:01:02:03:04", WHOLE + ":06",
     "08::00:2b:01:02:03", "08 00:2b:01:02:03", "08:00:2b:01:02:03 x", "g8:00:2b:01:02:03", "08:00:2b:01:02:03ä",
     "08" * 100_000],
    ids=lambda text: text[:20],
)  # fmt: skip
def test_anything_else_is_refused_and_shown_in_short(text: str) -> None:
    with pytest.raises(BadText) as refused:
        read_macaddr8(text)
    assert refused.value.sqlstate == "22P02" and len(refused.value.message) < 300


def test_bytes_and_addresses_of_six() -> None:
    assert receive_macaddr8(send_macaddr8(WHOLE)) == WHOLE and len(send_macaddr8(WHOLE)) == 8
    assert of_macaddr("08:00:2b:01:02:03") == MADE and to_macaddr(MADE) == "08:00:2b:01:02:03"
    with pytest.raises(BadText) as refused:
        to_macaddr(WHOLE)
    assert refused.value.sqlstate == "22003"


def test_bits_of_addresses_of_any_length() -> None:
    assert macaddrs.truncated(WHOLE) == "08:00:2b:00:00:00:00:00"
    assert macaddrs.truncated(WHOLE[:17]) == "08:00:2b:00:00:00"
    assert macaddrs.inverted(WHOLE) == "f7:ff:d4:fe:fd:fc:fb:fa"
    assert macaddrs.both(WHOLE, "ff:00:ff:00:ff:00:ff:00") == "08:00:2b:00:02:00:04:00"
    assert macaddrs.either(WHOLE, "00:ff:00:ff:00:ff:00:ff") == "08:ff:2b:ff:02:ff:04:ff"
    assert with_seventh_bit("00:00:2b:01:02:03:04:05") == "02:00:2b:01:02:03:04:05"
    assert with_seventh_bit("ff:00:2b:01:02:03:04:05") == "ff:00:2b:01:02:03:04:05"
