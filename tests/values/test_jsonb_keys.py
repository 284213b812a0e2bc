"""Keys of jsonb: ASCII that is equal and ordered as PostgreSQL's btree has the values."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from values.jsonb_keys import distinct, key, without
from values.text.jsonb import read_jsonb

IN_ORDER = [
    "[]", "null", '""', '"A"', '"a"', '"aé"', '"b"', "-1e10", "-10", "-1", "-1e-10", "0", "1e-10", "0.5", "1", "9.0",
    "10", "1e10", "false", "true", "[null]", '["a"]', "[0.5]", "[[]]", "[{}]", "[1, 2]", "{}", '{"a": 1}', '{"aa": 0}',
    '{"b": 0}', '{"a": 1, "b": 2}',
]  # fmt: skip
"""As PostgreSQL 15 sorts them in collation C."""


def test_keys_are_sorted_as_the_values_are():
    texts = [read_jsonb(text) for text in IN_ORDER]
    assert sorted(texts, key=key) == texts and all(key(text).isascii() for text in texts)


def test_numbers_are_told_apart_by_their_value():
    nested = ('{"a": [1.0, {"b": 2}]}', '{"a": [1, {"b": 2.000}]}')
    for a, b in (("1", "1.0"), ("1e2", "100.00"), nested, ("0", "-0.0")):
        assert key(read_jsonb(a)) == key(read_jsonb(b))
    for a, b in (("1", '"1"'), ("1", "[1]"), ("1", "1.01"), ("null", '"null"'), ("[[1], 2]", "[[1, 2]]")):
        assert key(read_jsonb(a)) != key(read_jsonb(b))


_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.text("ab", max_size=2),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["a", "b", "aa"]), inner, max_size=3),
    max_leaves=5,
)


@given(_VALUES, _VALUES)
def test_values_are_equal_where_their_keys_are(a, b):
    one, other = (read_jsonb(json.dumps(each)) for each in (a, b))
    assert (key(one) == key(other)) == (one == other)


def test_what_is_left_of_a_list():
    assert without(["1.50", None, "[1]", "1.5"], "1.500") == [None, "[1]"]
    assert distinct(["10", None, "9", "9.0", None], False, False) == ["9.0", "10", None]
    assert distinct(["10", None, "9.0", "9", "10"], True, True) == [None, "10", "9.0"]
