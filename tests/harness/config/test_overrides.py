import json

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from nemo_evaluator.config.document import Document
from nemo_evaluator.config.keypath import dotted, parse_path
from nemo_evaluator.config.overrides import apply_override, parse_override
from nemo_evaluator.errors import UsageError
from tests.harness.config.conftest import SMALLEST, Load


def value(text: str) -> object:
    return parse_override(f"key={text}").value


@pytest.mark.parametrize(
    ("text", "parsed"),
    [
        ("4", 4),
        ("-0.5", -0.5),
        ("true", True),
        ('"true"', "true"),
        ("'4'", "4"),
        ("null", None),
        ("~", None),
        ('"null"', "null"),
        ("", ""),
        ("[1, two, 'three four']", [1, "two", "three four"]),
        ("{a: {b: [1]}, c: null}", {"a": {"b": [1]}, "c": None}),
        ("1e5", "1e5"),
        ("2024-05-01", "2024-05-01"),
        ("org/model:7b", "org/model:7b"),
        ("a=b=c", "a=b=c"),
        ("--flag --other value", "--flag --other value"),
        ("Answer: yes # really", "Answer: yes # really"),
        ("- item", "- item"),
        ("*star &and !bang %per @at `tick", "*star &and !bang %per @at `tick"),
        (" spaced ", " spaced "),
        ("${VAR:-x}", "${VAR:-x}"),
    ],
)
def test_value_is_yaml_and_plain_text_stays_whole(text: str, parsed: object) -> None:
    assert value(text) == parsed
    assert type(value(text)) is type(parsed)


@pytest.mark.parametrize("text", ["[1", '"open', '"a" b', "{a: [}", "'"])
def test_value_that_begins_like_yaml_and_is_none_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match=r"^-O key: the value is not valid YAML \(.*\); put text into quotes$"):
        value(text)


@pytest.mark.parametrize(
    ("key", "path"),
    [
        ("a.b", ("a", "b")),
        ("benchmarks[0].x", ("benchmarks", 0, "x")),
        ("benchmarks.0.x", ("benchmarks", "0", "x")),
        ('services."my.model".url', ("services", "my.model", "url")),
        ("services['my.model'].url", ("services", "my.model", "url")),
        ("a[0][1]", ("a", 0, 1)),
    ],
)
def test_key_is_a_path(key: str, path: tuple) -> None:
    assert parse_override(f"{key}=1").path == path


@pytest.mark.parametrize("text", ["key", "=1", "a..b=1", "a.=1", "a[x]=1", "a[-1]=1", "a]=1", 'a."b=1', ".a=1"])
def test_what_is_no_override_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="an override is KEY=VALUE, such as"):
        parse_override(text)


def test_user_variables_are_not_overridden() -> None:
    with pytest.raises(UsageError, match=r"^-O _x: variables that start with _ are filled in before overrides"):
        parse_override("_x=1")


def test_index_forms_reach_the_same_item(load: Load) -> None:
    for key in ("benchmarks[0].repeats", "benchmarks.0.repeats"):
        assert load(SMALLEST, f"{key}=3").config.benchmarks[0].repeats == 3


def test_a_number_is_a_key_where_there_is_no_list() -> None:
    assert apply_override(Document({"a": {}}), parse_override("a.0=x")).data == {"a": {"0": "x"}}


def test_missing_parents_are_made(load: Load) -> None:
    assert load(SMALLEST, "services.m.proxy.extra_headers.X-Team=a").config.services["m"].proxy.extra_headers == {
        "X-Team": "a"
    }


def test_a_list_is_replaced_and_null_unsets(load: Load) -> None:
    stop = "services.m.generation.stop"
    assert load(SMALLEST, f"{stop}=[a, b]", f"{stop}=[c]").config.services["m"].generation.stop == ["c"]
    assert load(SMALLEST, f"{stop}=[a]", f"{stop}=null").config.services["m"].generation.stop is None


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("benchmarks[1].repeats=2", "-O benchmarks[1].repeats: benchmarks has no [1]; the last is [0]"),
        (
            "benchmarks.repeats=2",
            "-O benchmarks.repeats: benchmarks is a list; write benchmarks[0], not a key 'repeats'",
        ),
        ("services.m.model.x=2", "-O services.m.model.x: services.m.model is text and has no keys"),
        ("services[0]=2", "-O services[0]: services is not a list, so it has no [0]"),
        ("[0]=2", "-O [0]: the config is not a list, so it has no [0]"),
    ],
)
def test_path_that_does_not_fit_is_one_clear_line(load: Load, override: str, message: str) -> None:
    with pytest.raises(UsageError) as refusal:
        load(SMALLEST, override)
    assert str(refusal.value) == message


def test_a_wrong_override_is_named_as_the_origin_without_its_value(load: Load) -> None:
    with pytest.raises(UsageError, match=r"^-O benchmarks\.0\.repeatz: benchmarks\[0\]\.repeatz is not a known key"):
        load(SMALLEST, "benchmarks.0.repeatz=3")
    with pytest.raises(UsageError) as refusal:
        load(SMALLEST, "services.m.api_key=[sk-not-a-real-key]")
    assert "sk-not" not in str(refusal.value)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(min_size=1), inner, max_size=3),
    max_leaves=6,
)


@given(st.lists(JSON, max_size=3) | st.dictionaries(st.text(min_size=1), JSON, max_size=3))
def test_what_yaml_writes_an_override_reads(data: object) -> None:
    assert value(yaml.safe_dump(data, default_flow_style=True, width=10**6)) == data


@given(st.text(st.characters(codec="ascii", exclude_categories=["Cc"])))
def test_quoted_text_stays_text(text: str) -> None:
    assert value(json.dumps(text)) == text


NAMES = st.text(st.characters(exclude_characters="\"'=", exclude_categories=["Cs"]), min_size=1)


@given(st.lists(NAMES | st.integers(0, 99), min_size=1, max_size=4))
def test_path_is_read_back_as_it_was_written(path: list) -> None:
    assert parse_path(dotted(tuple(path))) == tuple(path)
