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
    assert AdapterConfig.of({"caching_dir": None, "params_to_add": None, "interceptors": []}) == AdapterConfig.of({})


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


def test_a_list_of_interceptors_is_the_same_in_other_words():
    listed = [
        {"name": "system_message", "config": {"system_message": "Be brief.", "strategy": "replace"}},
        {"name": "payload_modifier", "config": {"params_to_add": {"seed": 1}, "headers_to_rename": {"a": "b"}}},
        {"name": "request_logging", "config": {"max_requests": 5, "output_dir": "/logs"}},
        {"name": "caching", "config": {"cache_dir": "/cache", "save_responses": True}},
        "endpoint",
        {"name": "response_logging", "enabled": False},
        {"name": "reasoning", "config": {"end_reasoning_token": "</t>", "include_if_not_finished": False}},
        {"name": "progress_tracking", "config": {"progress_tracking_interval": 10}},
        "raise_client_errors",
    ]
    flat = {
        "use_system_prompt": True,
        "custom_system_prompt": "Be brief.",
        "system_prompt_strategy": "replace",
        "params_to_add": {"seed": 1},
        "headers_to_rename": {"a": "b"},
        "use_request_logging": True,
        "max_logged_requests": 5,
        "output_dir": "/logs",
        "use_caching": True,
        "caching_dir": "/cache",
        "save_responses": True,
        "tracking_requests_stats": False,
        "process_reasoning_traces": True,
        "end_reasoning_token": "</t>",
        "include_if_reasoning_not_finished": False,
        "use_progress_tracking": True,
        "progress_tracking_interval": 10,
        "use_raise_client_errors": True,
    }
    assert AdapterConfig.of({"interceptors": listed, "use_caching": None}) == AdapterConfig.of(flat)


def test_what_a_list_leaves_out_is_off():
    assert not AdapterConfig.of({"interceptors": ["endpoint"]}).is_needed


@pytest.mark.parametrize(
    ("config", "said"),
    [
        ({"interceptors": ["endpoint"], "use_caching": True}, "has interceptors and use_caching"),
        ({"interceptors": ["cachin"]}, "there is no 'cachin' (did you mean 'caching'?)"),
        ({"interceptors": [{"name": "caching", "config": {"dir": "/c"}}]}, "caching has no setting 'dir' here"),
        ({"interceptors": "caching"}, "give a list of names"),
        ({"interceptors": [{"nmae": "caching"}]}, "give name, config and maybe enabled"),
        (
            {
                "interceptors": [
                    {"name": "request_logging", "config": {"output_dir": "/a"}},
                    {"name": "response_logging", "config": {"output_dir": "/b"}},
                ]
            },
            "gives another output_dir",
        ),
    ],
)
def test_a_list_that_the_proxy_cannot_follow_is_refused_in_one_line(config, said):
    with pytest.raises(UsageError) as caught:
        AdapterConfig.of(config)
    assert said in str(caught.value) and "\n" not in str(caught.value)
