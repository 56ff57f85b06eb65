"""Secrets in streams, in whatever pieces they come."""

from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nemo_evaluator.direct.masking import Masker, redact_url, secrets_of_url

SECRETS = ["sk-not-a-real-key", "sk-not-a", "with+sign/and space", 'quo"te\\d', "ünïcode"]


def masked(pieces, secrets=SECRETS):
    masker = Masker(secrets)
    return b"".join([*map(masker.feed, pieces), masker.flush()])


WORDS = st.lists(st.sampled_from([*(s.encode() for s in SECRETS), b"sk-not", b"-a-real", b"x", b"\n", b"\xff"]))


@given(WORDS, st.lists(st.integers(0, 60), max_size=20))
def test_however_it_is_cut_the_result_is_that_of_the_whole(words, sizes):
    text = b"".join(words)
    pieces, at = [], 0
    for size in sizes:
        pieces.append(text[at : at + size])
        at += size
    result = masked([*pieces, text[at:]])
    assert result == masked([text])
    assert not any(secret.encode() in result for secret in SECRETS)


@pytest.mark.parametrize("secret", SECRETS)
@pytest.mark.parametrize(
    "form", [str, quote, lambda s: quote(s, safe=""), lambda s: quote(s, safe="").lower(), lambda s: repr(s)[1:-1]]
)
def test_every_usual_spelling_is_known(secret, form):
    assert masked([b"<" + form(secret).encode() + b">"], [secret]) == b"<***>"


def test_what_cannot_be_part_of_a_secret_is_not_held_back():
    masker = Masker(["sk-not-a-real-key"])
    assert masker.feed(b"12% done\r") == b"12% done\r"
    assert masker.feed(b"s") == b"" and masker.feed(b"o") == b"so"


def test_a_longer_secret_wins_over_its_beginning():
    assert masked([b"sk-not-a-real-k", b"ey sk-not-a-fake"]) == b"*** ***-fake"


def test_values_too_short_to_be_secrets_leave_the_log_readable():
    assert masked([b"a 1 true"], ["1", "true"]) == b"a 1 true"


def test_without_secrets_everything_passes():
    assert masked([b"anything"], []) == b"anything"


def test_texts_deep_in_a_document_are_masked_and_its_numbers_kept():
    document = {"a": [{"b": "key sk-not-a-real-key"}], "n": 5, "f": False}
    assert Masker(["sk-not-a-real-key", "False"]).mask_document(document) == {
        "a": [{"b": "key ***"}],
        "n": 5,
        "f": False,
    }


def test_bytes_that_are_no_text_in_a_token_are_masked_too():
    assert masked([b"x key\xff12345 y"], [b"key\xff12345".decode(errors="surrogateescape")]) == b"x *** y"


def test_a_url_is_shown_without_its_secrets():
    url = "https://user:pass%2Fword@host:8443/v1/completions?api-key=not-a-key&v=2#part"
    assert redact_url(url) == "https://***@host:8443/v1/completions?***"
    assert {"pass/word", "not-a-key", "user:pass%2Fword"} <= set(secrets_of_url(url))


def test_a_plain_url_is_no_secret():
    assert secrets_of_url("https://host/v1/completions") == []
    assert redact_url("https://host/v1/completions") == "https://host/v1/completions"
