import pytest

from nemo_evaluator.config.quick import Flags
from nemo_evaluator.config.secrets import is_secret_key, masked, redact, secret_values
from nemo_evaluator.errors import UsageError
from tests.harness.config.conftest import SMALLEST, Load

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


@pytest.mark.parametrize("key", ["api_key", "proxy.extra_headers.Authorization", "proxy.extra_headers.X-Api-Key"])
@pytest.mark.parametrize("value", ["HF_TOKEN", "Bearer NEMO_API_KEY"])
def test_a_variable_name_where_its_value_belongs_is_refused(load: Load, key: str, value: str) -> None:
    with pytest.raises(UsageError, match=rf"^-O services\.m\.{key}: .* write \$\{{NAME\}} for its value$"):
        load(SMALLEST, f"services.m.{key}={value}")


@pytest.mark.parametrize("value", ["EMPTY", "none", "sk-not-a-real-key", "Bearer EMPTY"])
def test_stand_ins_for_a_key_are_keys(load: Load, value: str) -> None:
    assert load(SMALLEST, f"services.m.api_key={value}").config.services["m"].api_key.get_secret_value() == value


def test_masking_leaves_the_config_itself_alone() -> None:
    config = {"api_key": CANARY}
    masked(config)
    assert config == {"api_key": CANARY}


def test_secrets_of_a_config_are_found_wherever_they_are(load: Load) -> None:
    text = SMALLEST.replace("http://localhost", "http://me:url-password@localhost")
    config = load(
        text,
        "services.m.api_key=${KEY}",
        "services.m.proxy.extra_headers={Authorization: Bearer header-token, X-Team: evals}",
        "benchmarks[0].params={hf_token: param-token, split: test}",
        environ={"KEY": CANARY},
    ).config
    found = secret_values(config)
    assert {CANARY, "me:url-password", "url-password", "Bearer header-token", "header-token", "param-token"} == set(
        found
    )


def test_a_key_is_in_no_repr_and_no_composed_config_that_is_shown(load: Load) -> None:
    loaded = load(SMALLEST, f"services.m.api_key={CANARY}")
    assert CANARY not in repr(loaded.config)
    assert CANARY not in str(masked(loaded.composed))
    assert CANARY not in str(loaded.config.model_dump())
    assert CANARY not in repr(Flags(api_key=CANARY))


def test_redaction_knows_the_forms_of_a_url() -> None:
    text = f"{CANARY} sk-not-a-real-key%2F%2B%3D sk-not-a-real-key/%2B%3D and more"
    assert redact(text, [CANARY]) == "*** *** *** and more"


def test_a_secret_inside_a_longer_one_leaves_nothing_of_the_longer_one() -> None:
    assert redact("abcdef abcd", ["abcd", "abcdef"]) == "*** ***"


def test_words_too_short_to_be_secrets_stay() -> None:
    assert redact("no way", ["no", ""]) == "no way"
