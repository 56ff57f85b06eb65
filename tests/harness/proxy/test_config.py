"""adapter_config: known names, refused ones, and when there is nothing to do."""

import pytest

from nemo_evaluator.errors import UsageError
from nemo_evaluator.proxy.config import AdapterConfig


@pytest.mark.parametrize(
    ("key", "said"),
    [
        ("use_cachin", "did you mean 'use_caching'?"),
        ("max_logged_request", "did you mean 'max_logged_requests'?"),
        ("use_nvcf", "give the endpoint's own URL"),
        ("generate_html_report", "Leave it out."),
    ],
)
def test_an_unknown_key_is_refused_with_the_next_step(key, said):
    with pytest.raises(UsageError) as caught:
        AdapterConfig.of({key: True})
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_value_that_does_not_fit_is_named():
    with pytest.raises(UsageError, match=r"adapter_config\.max_logged_requests: .* not 'many'"):
        AdapterConfig.of({"max_logged_requests": "many"})


def test_a_system_prompt_needs_its_text():
    with pytest.raises(UsageError, match="needs custom_system_prompt"):
        AdapterConfig.of({"use_system_prompt": True})


def test_null_is_the_same_as_leaving_a_key_out():
    assert AdapterConfig.of({"caching_dir": None, "params_to_add": None}) == AdapterConfig.of({})


@pytest.mark.parametrize(
    ("config", "is_needed"),
    [
        ({}, True),
        ({"use_caching": False}, False),
        ({"use_caching": False, "use_request_logging": True}, True),
        ({"use_caching": False, "use_request_logging": True, "max_logged_requests": 0}, False),
        ({"use_caching": False, "params_to_remove": ["stop"]}, True),
    ],
)
def test_without_anything_to_do_there_is_no_proxy(config, is_needed):
    assert AdapterConfig.of(config).is_needed is is_needed


def test_logging_and_saving_share_a_file_and_the_larger_limit():
    config = {"use_request_logging": True, "max_logged_requests": 10, "save_requests": True, "max_saved_requests": 5}
    assert AdapterConfig.of(config).requests_kept == 10
    assert AdapterConfig.of({"use_request_logging": True}).requests_kept is None
