"""Keys and tokens are in nothing that is printed or written."""

from dataclasses import dataclass, field

import pytest
from pydantic import BaseModel

from nemo_evaluator.masking import is_secret_key, masked, redact, told_apart

CANARY = "sk-not-a-real-key/+="


@pytest.mark.parametrize(
    "key",
    ["api_key", "API-KEY", "apiKey", "X-Api-Key", "hf_token", "hfToken", "Authorization", "password", "DB_SECRET"],
)
def test_keys_that_hold_secrets(key: str) -> None:
    assert is_secret_key(key)


@pytest.mark.parametrize("key", ["max_tokens", "tokenizer", "max_output_tokens", "key", "author", "model", "keywords"])
def test_keys_that_hold_none(key: str) -> None:
    assert not is_secret_key(key)


@pytest.mark.parametrize(
    ("key", "value", "shown"),
    [
        ("api_key", CANARY, "***"),
        ("api_key", "${KEY}", "${KEY}"),
        ("api_key", "${KEY:-sk-not-a-real-key}", "${KEY:-***}"),
        ("api_key", "prefix${KEY}", "***"),
        ("api_key", "", ""),
        ("api_key", None, None),
        ("api_key", 1234, "***"),
        ("Authorization", "Bearer ${KEY}", "Bearer ${KEY}"),
        ("Authorization", "Bearer abcd", "***"),
        ("tokens", [1], [1]),
        ("token", ["a", {"x": "b"}], ["***", {"x": "***"}]),
        ("url", "https://me:pw@host/v1?api_key=abc&v=2", "https://***@host/v1?api_key=***&v=2"),
        ("url", "https://host/v1?token=${T}", "https://host/v1?token=${T}"),
        ("max_tokens", 5, 5),
    ],
)
def test_secrets_are_masked_and_references_stay(key: str, value: object, shown: object) -> None:
    assert masked({"a": [{key: value}]}) == {"a": [{key: shown}]}


def test_masking_leaves_the_config_itself_alone() -> None:
    config = {"api_key": CANARY}
    masked(config)
    assert config == {"api_key": CANARY}


class Model(BaseModel):
    api_key: str
    name: str = "m"


@dataclass
class Settings:
    password: str
    size: int = 3


@dataclass
class Nested:
    model: Model = field(default_factory=lambda: Model(api_key=CANARY))


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (Model(api_key=CANARY), {"api_key": "***", "name": "m"}),
        (Settings(CANARY), {"password": "***", "size": 3}),
        (Nested(), {"model": {"api_key": "***", "name": "m"}}),
        ((Settings(CANARY), "plain"), [{"password": "***", "size": 3}, "plain"]),
        ({"tokens": {"hf_token": (CANARY,)}}, {"tokens": {"hf_token": ["***"]}}),
        (Settings, Settings),
    ],
    ids=["model", "dataclass", "nested", "tuple", "dict", "class"],
)
def test_objects_are_masked_field_by_field(value: object, shown: object) -> None:
    """7.6 item 74: the repr of a sandbox's settings, environment and all, used to be in the bundle."""
    assert masked(value) == shown


def test_secrets_of_a_fingerprint_are_masked_and_told_apart() -> None:
    one, other = told_apart({"api_key": CANARY}), told_apart({"api_key": CANARY + "2"})
    assert CANARY not in str(one) and one["api_key"].startswith("***")
    assert one != other and one == told_apart({"api_key": CANARY})


def test_numbers_and_names_of_a_fingerprint_stay() -> None:
    plain = {"stop_token_ids": [1, 2], "stop": ["a"], "api_key": None, "hf_token": ""}
    assert told_apart(plain) == plain


def test_redaction_knows_the_forms_of_a_url() -> None:
    text = f"{CANARY} sk-not-a-real-key%2F%2B%3D sk-not-a-real-key/%2B%3D and more"
    assert redact(text, [CANARY]) == "*** *** *** and more"


def test_a_secret_inside_a_longer_one_leaves_nothing_of_the_longer_one() -> None:
    assert redact("abcdef abcd", ["abcd", "abcdef"]) == "*** ***"


def test_words_too_short_to_be_secrets_stay() -> None:
    assert redact("no way", ["no", ""]) == "no way"
