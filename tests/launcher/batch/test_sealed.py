"""Sealed values open with their own key, whole, and in no other way."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nemotron.executors.sealed import Unreadable, new_key, seal, unseal


@given(st.dictionaries(st.text(min_size=1), st.text()))
def test_what_was_sealed_is_what_is_opened(values):
    key = new_key()
    assert unseal(seal(values, key), key) == values


def test_the_same_values_never_look_the_same():
    key = new_key()
    assert seal({"A": "b"}, key) != seal({"A": "b"}, key)


def test_nothing_of_a_value_shows():
    assert b"not-a-real-key" not in seal({"A_TOKEN": "sk-not-a-real-key"}, new_key())


def test_another_key_opens_nothing():
    with pytest.raises(Unreadable):
        unseal(seal({"A": "b"}, new_key()), new_key())


@pytest.mark.parametrize("place", [0, 31, 32, 47, 48, -1])
def test_a_changed_byte_is_noticed_wherever_it_is(place):
    key = new_key()
    content = bytearray(seal({"A": "b"}, key))
    content[place] ^= 1
    with pytest.raises(Unreadable):
        unseal(bytes(content), key)
