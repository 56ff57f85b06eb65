import pytest

from nemo_evaluator.config.quick import Flags
from nemo_evaluator.config.secrets import secret_values
from nemo_evaluator.errors import UsageError
from nemo_evaluator.masking import masked
from tests.harness.config.conftest import SMALLEST, Load

CANARY = "sk-not-a-real-key/+="


@pytest.mark.parametrize("key", ["api_key", "proxy.extra_headers.Authorization", "proxy.extra_headers.X-Api-Key"])
@pytest.mark.parametrize("value", ["HF_TOKEN", "Bearer NEMO_API_KEY"])
def test_a_variable_name_where_its_value_belongs_is_refused(load: Load, key: str, value: str) -> None:
    with pytest.raises(UsageError, match=rf"^-O services\.m\.{key}: .* write \$\{{NAME\}} for its value$"):
        load(SMALLEST, f"services.m.{key}={value}")


@pytest.mark.parametrize("value", ["EMPTY", "none", "sk-not-a-real-key", "Bearer EMPTY"])
def test_stand_ins_for_a_key_are_keys(load: Load, value: str) -> None:
    assert load(SMALLEST, f"services.m.api_key={value}").config.services["m"].api_key.get_secret_value() == value


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
