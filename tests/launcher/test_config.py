"""Suites and overrides through Hydra."""

import os

import pytest

from nemotron.config import compose_suite, interpolate
from nemotron.errors import UsageError
from tests.launcher.world import PARAMS


def refusal(config, *overrides, environ=None) -> str:
    with pytest.raises(UsageError) as refused:
        compose_suite(str(config), overrides, environ or {})
    assert "\n" not in str(refused.value)
    return str(refused.value)


@pytest.fixture
def own(tmp_path):
    def write(text: str, name: str = "mine.yaml"):
        (tmp_path / name).write_text(text)
        return tmp_path / name

    return write


def test_a_suite_is_found_by_name():
    assert [task["name"] for task in compose_suite("base_en", (), {})["evaluation"]["tasks"]][-1] == "gsm8k"


def test_an_unknown_suite_is_told_the_nearest_and_all():
    message = refusal("base_eng")
    assert "Did you mean 'base_en'?" in message and "mmlu_prox_chat" in message


def test_a_path_that_is_no_file_is_named():
    assert "there/is/none.yaml" in refusal("there/is/none.yaml")


def test_a_suite_of_ones_own_inherits_from_anywhere(own):
    path = own("defaults: [instruct_en, _self_]\nevaluation: {tasks: [{name: ifeval}]}\n")
    composed = compose_suite(str(path), (), {})
    assert composed["target"]["api_endpoint"]["type"] == "chat"
    assert composed["evaluation"]["tasks"] == [{"name": "ifeval"}]


def test_it_inherits_its_neighbours_too(own):
    own("defaults: [direct, _self_]\nharness_image: r.example/mine:1\n", "base.yaml")
    path = own("defaults: [base, _self_]\noverwrite: true\n")
    composed = compose_suite(str(path), (), {})
    assert composed["run"]["env"]["container_image"] == "r.example/mine:1" and composed["overwrite"] is True


def test_it_may_lie_in_a_folder_with_any_name(tmp_path):
    folder = tmp_path / "my suites, 'old' = $HOME"
    folder.mkdir()
    (folder / "mine.yaml").write_text("defaults: [direct, _self_]\nresume: true\n")
    assert compose_suite(str(folder / "mine.yaml"), (), {})["resume"] is True


def test_a_base_that_is_not_there_is_named(own):
    own("resume: true\n", "base.yaml")
    message = refusal(own("defaults: [dirct, _self_]\n"))
    assert "Unknown suite 'dirct'. Did you mean 'direct'?" in message and "base, base_en" in message


def test_without_self_in_its_list_a_suite_still_wins_over_what_it_inherits(own, recwarn):
    composed = compose_suite(str(own("defaults: [direct]\noverwrite: true\n")), (), {})
    assert composed["overwrite"] is True and not recwarn.list


def test_what_is_no_yaml_is_one_line(own):
    assert "mine" in refusal(own("a: [1\n"))


@pytest.mark.parametrize("word", ["overwrite", "hellaswag", "--"])
def test_a_word_without_a_value_is_named(word):
    assert repr(word) in refusal("direct", word)


def test_a_key_that_is_not_there_is_told_its_name():
    assert "Did you mean 'overwrite'?" in refusal("direct", "overwrte=true")


def test_a_value_that_hydra_cannot_read_is_told_how_to_be_quoted():
    message = refusal("direct", "target.api_endpoint.url=https://host/v1/completions?a=b")
    assert "quotes" in message and "target.api_endpoint.url=" in message


def test_a_quoted_value_is_taken_as_it_is():
    url = "https://host/v1/completions?a=b,c"
    composed = compose_suite("direct", [f"target.api_endpoint.url='{url}'"], {})
    assert composed["target"]["api_endpoint"]["url"] == url


def test_later_overrides_win():
    composed = compose_suite("direct", ["overwrite=true", "overwrite=false"], {})
    assert composed["overwrite"] is False


def test_the_environment_is_the_one_that_is_given():
    os.environ["EVAL_TOKENIZER"] = "of-the-process"
    try:
        composed = compose_suite("direct", (), {"EVAL_TOKENIZER": "given"})
    finally:
        del os.environ["EVAL_TOKENIZER"]
    node = composed
    for key in PARAMS.split("."):
        node = node[key]
    assert node["extra"]["tokenizer"] == "given"


def test_a_variable_without_a_default_must_be_set(own):
    path = own("defaults: [direct, _self_]\noutput_dir: ${oc.env:MY_RESULTS}\n")
    assert "MY_RESULTS" in refusal(path)
    assert compose_suite(str(path), (), {"MY_RESULTS": "/r"})["output_dir"] == "/r"


def test_interpolation_sees_other_keys_and_the_environment():
    data = {"account": "me", "mounts": ["/data/${account}"], "user": "${oc.env:USER,nobody}"}
    assert interpolate(data, {"USER": "you"}, "here") == {"account": "me", "mounts": ["/data/me"], "user": "you"}
