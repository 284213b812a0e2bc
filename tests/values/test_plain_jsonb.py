"""What of jsonb is seen at a glance is what reading it gives."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from values.bad_text import BadText
from values.text.jsonb import plain_jsonb, plain_jsonbs, read_jsonb

ODD = (
    b"", b"{}", b"[]", b"1}", b'{"a":1', b'{"a":1}}', b'{{"a":1}', b"01", b"-0", b"+1", b"-", b"1.0", b"1e3",
    b"\x0b1", b"1\x0c", b'{"a" 1}', b'{"a":1,}', b'{"a":1,"b":2}', b'{"a":{"b":1}}', b'{"a":[1]}', b'{"a":null}',
    b"true", b'"a', b'"\\u0041"', b'{"\\u0041":1}', b'"\xff"', b'"\xc3\xa9"', b'{"\xc3\xa9":1}', b'"a\x00"',
    b'"\x7f"', b'"a\nb"', b"1 2", b"9" * 18, b"9" * 19, b"-" + b"9" * 18, b'{"a":"b"}', b' { "a" : "b" } ',
    b'{"a":-7}', b'\xef\xbb\xbf1', b'{"":""}', b'{"a":"}"}', b'"{"',
)  # fmt: skip


KEYS = [
    (b'{"id":17}', '{"id": 17}'), (b'{"id": "a b"}', '{"id": "a b"}'), (b"-5", "-5"), (b'"x"', '"x"'), (b"0", "0"),
    (b'{"a:":" : "}', '{"a:": " : "}'), (b'":"', '":"'), (b'": a"', '": a"'), (b'":a"', '":a"'),
    (b'{":":1}', '{":": 1}'), (b'{"":":"}', '{"": ":"}'), (b'{"":""}', '{"": ""}'), (b'{": ": ":"}', '{": ": ":"}'),
]  # fmt: skip


def read(data: bytes) -> str | None:
    try:
        return read_jsonb(data.decode())
    except (BadText, UnicodeDecodeError):
        return None


@pytest.mark.parametrize("data", ODD)
def test_odd_ones(data: bytes) -> None:
    assert plain_jsonb(data) in (None, read(data))


def test_most_keys_are_seen_at_a_glance() -> None:
    for data, shown in KEYS:
        assert plain_jsonb(data) == shown == read(data)
    assert plain_jsonb(b'{"id": "a b"}\n') == '{"id": "a b"}'


def test_many_are_seen_at_one_glance() -> None:
    keys, shown = zip(*(KEYS * 1_000), strict=True)
    assert plain_jsonbs(keys) == list(shown)
    assert plain_jsonbs([]) == []


@pytest.mark.parametrize("end", ["", '"', "\\", '"]'])
@pytest.mark.parametrize("begin", ["[" * 129 + '"', '{"v": 1e5"', '{"v": 1e5, "w": "', '["'])
def test_a_string_full_of_quotes_is_looked_through_once(begin: str, end: str) -> None:
    """One that never ends was begun anew at each quote in it: 40 KB of them kept a process for 10 s, 1 MB for hours."""
    text = begin + '\\"' * 1_000_000 + end
    if begin + end == '[""]':
        assert read_jsonb(text) == text
        return
    with pytest.raises(BadText) as caught:
        read_jsonb(text)
    assert caught.value.sqlstate in ("22P02", "54001")


@pytest.mark.parametrize("odd", ODD)
def test_one_odd_one_among_many(odd: bytes) -> None:
    for many in ([odd], [odd, b"1"], [b"1", odd], [b"1", odd, b'{"a":1}']):
        found = plain_jsonbs(many)
        assert found in (None, [read(each) for each in many])
        assert found is None or plain_jsonb(odd) is not None


def test_many_that_are_others_together_are_in_doubt() -> None:
    assert plain_jsonbs([b"1\n2", b""]) is None
    assert plain_jsonbs([b'{"a":', b"1}"]) is None
    assert plain_jsonbs([b'{"a"', b":1}", b"3"]) is None


scalars = st.integers() | st.text() | st.text("ab{}:, \x7f") | st.none() | st.floats() | st.booleans()


@given(scalars | st.dictionaries(st.text() | st.text("ab"), scalars, max_size=2), st.data())
@settings(max_examples=300, deadline=None)
def test_any_json_and_what_is_left_of_it(value: object, data: st.DataObject) -> None:
    text = json.dumps(value, ensure_ascii=data.draw(st.booleans())).encode("utf-8", "surrogatepass")
    at = data.draw(st.integers(0, len(text)))
    for each in (text, text[:at] + data.draw(st.binary(max_size=2)) + text[at:], text[:at] + text[at + 1 :]):
        assert plain_jsonb(each) in (None, read(each))
        assert plain_jsonbs([each, b"1", text]) in (None, [read(each), "1", read(text)])
