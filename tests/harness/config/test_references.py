import pytest
from hypothesis import given
from hypothesis import strategies as st

from nemo_evaluator.config.document import Document
from nemo_evaluator.config.references import expand_environment, literal, resolve_own
from nemo_evaluator.errors import UsageError
from tests.harness.config.conftest import SMALLEST, Load


def expanded(text: str, **environ: str) -> str:
    return expand_environment(Document({"key": text}), environ).data["key"]


@pytest.mark.parametrize(
    ("text", "result"),
    [
        ("${HOST}", "h"),
        ("http://${HOST}:${PORT:-80}/v1", "http://h:80/v1"),
        ("${HOST:-x}", "h"),
        ("${EMPTY:-x}", "x"),
        ("${EMPTY}", ""),
        ("${NO:-}", ""),
        ("${NO:-${NEITHER:-z}}", "z"),
        ("${NO:-{a}}", "{a}"),
        ("$${HOST}", "${HOST}"),
        ("$${HOST}/${HOST}", "${HOST}/h"),
        ("$HOST $ {HOST}", "$HOST $ {HOST}"),
        ("", ""),
    ],
)
def test_environment_is_filled_in(text: str, result: str) -> None:
    assert expanded(text, HOST="h", EMPTY="") == result


def test_value_of_a_variable_is_not_expanded_again() -> None:
    assert expanded("${A}", A="${B}") == "${B}"


def test_all_variables_that_are_not_set_are_named_with_their_place(load: Load) -> None:
    text = SMALLEST.replace("tiny", "${MODEL}").replace("gsm8k", "${BENCH}")
    with pytest.raises(UsageError) as refusal:
        load(text)
    first, second = str(refusal.value).splitlines()
    assert first.startswith("run.yaml:6: services.m.model needs the environment variable MODEL, which is not set")
    assert second.startswith("run.yaml:8: benchmarks[0].name needs the environment variable BENCH")


@pytest.mark.parametrize("text", ["${}", "${1A}", "${A-b}", "${oc.env:A}", "${A"])
def test_what_is_no_reference_is_refused_with_the_way_to_write_it(load: Load, text: str) -> None:
    with pytest.raises(UsageError, match=r"^run\.yaml:6: services\.m\.model .*write \$\$\{ for the plain characters$"):
        load(SMALLEST.replace("tiny", f'"{text}"'))


def test_numbers_may_come_from_the_environment(load: Load) -> None:
    text = SMALLEST.replace("gsm8k", "gsm8k\n    repeats: ${N}\n    timeout: ${T:-1.5}")
    benchmark = load(text, environ={"N": "4"}).config.benchmarks[0]
    assert (benchmark.repeats, benchmark.timeout) == (4, 1.5)


def test_composed_config_keeps_references_as_written(load: Load) -> None:
    loaded = load(SMALLEST, "services.m.api_key=${KEY}", environ={"KEY": "sk-not-a-real-key"})
    assert loaded.composed["services"]["m"]["api_key"] == "${KEY}"
    assert loaded.config.services["m"].api_key.get_secret_value() == "sk-not-a-real-key"


def own(data: dict) -> dict:
    return resolve_own(Document(data)).data


def test_reference_to_the_config_keeps_the_type_when_it_is_the_whole_value() -> None:
    data = own({"a": {"n": 3, "list": [1, {"b": True}]}, "x": "${.a.n}", "y": "${.a.list}", "z": "${.a.list[1].b}"})
    assert (data["x"], data["y"], data["z"]) == (3, [1, {"b": True}], True)


def test_reference_inside_text_becomes_text() -> None:
    data = own({"n": 3, "yes": True, "both": "${.n}/${.yes}/${HOST}/$${.n}"})
    assert data["both"] == "3/true/${HOST}/$${.n}"


def test_references_may_refer_to_references_but_not_in_a_circle() -> None:
    assert own({"a": "${.b}", "b": "${.c.d}", "c": {"d": 1}})["a"] == 1
    with pytest.raises(UsageError, match=r"refers to itself: \.a -> \.b -> \.a"):
        own({"x": "${.a}", "a": "${.b}", "b": "${.a}"})


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (
            "${.servics.m}",
            r"run\.yaml:12: \$\{\.servics\.m\} refers to nothing: servics is not set \(did you mean 'services'\?\)",
        ),
        ("${.benchmarks[3]}", r"refers to nothing: benchmarks\[3\] is not set"),
        ("a ${.services}", r"run\.yaml:12: output\.dir puts a mapping inside text"),
        ("${.}", r"refers to nothing"),
    ],
)
def test_reference_that_leads_nowhere_is_refused(load: Load, value: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        load(SMALLEST + f'output: {{dir: "{value}"}}\n')


def test_user_variables_can_be_referred_to_and_are_no_keys(load: Load) -> None:
    loaded = load("_n: 4\n_model: big\n" + SMALLEST.replace("tiny", "${._model}-${._n}"))
    assert loaded.config.services["m"].model == "big-4"
    assert not [key for key in loaded.composed if key.startswith("_")]


@given(st.text(alphabet="${}.:-aA", max_size=12))
def test_literal_text_survives_every_expansion(text: str) -> None:
    document = resolve_own(Document({"key": literal(text)}))
    assert expand_environment(document, {}).data["key"] == text
