import subprocess
import sys
from pathlib import Path

import pytest

from nemo_evaluator.environments import EvalEnvironment, register, registry
from nemo_evaluator.environments.registry import available, bundled_names, resolve
from nemo_evaluator.environments.rows import dataset_label, reads
from nemo_evaluator.errors import UsageError

ONE = """
from nemo_evaluator.environments import ScorerInput, benchmark, scorer

@benchmark("{name}", dataset=lambda: [{{"question": "2+2?", "target": "4"}}], prompt="{{question}}")
@scorer
def {name}(sample):
    return sample.response == sample.target
"""


@pytest.fixture
def write(tmp_path: Path):
    def write(*names: str, file: str = "mine.py", text: str = "") -> str:
        path = tmp_path / file
        path.write_text("".join(ONE.format(name=name) for name in names) + text)
        return str(path)

    return write


def test_a_bundled_benchmark_is_found_by_name_whatever_the_case() -> None:
    assert resolve("Tiny_Arithmetic").name == "tiny_arithmetic"


def test_every_bundled_file_registers_the_benchmark_it_is_named_after() -> None:
    listed = {info.name: info for info in available() if info.source == "builtin"}

    assert sorted(listed) == bundled_names()
    assert all(info.summary.endswith(".") or "." in info.summary for info in listed.values())
    assert listed["tiny_choice"].size == 60
    assert (listed["gsm8k"].dataset, listed["gsm8k"].size) == ("hf://openai/gsm8k?config=main&split=test", None)
    assert listed["mgsm"].dataset == "hf://juletxara/mgsm?config=LANGUAGE&split=test"


def test_rows_of_a_function_are_listed_as_what_makes_them() -> None:
    class Source:
        def __call__(self) -> list[dict[str, str]]:
            return [{"q": "?", "target": "!"}]

    def mine() -> list[dict[str, str]]:
        return Source()()

    assert (dataset_label(mine), dataset_label(Source())) == ("made by mine()", "made by Source()")
    assert dataset_label(reads("the archive of 1999")(mine)) == "the archive of 1999"


def test_listing_imports_nothing_heavy() -> None:
    code = (
        "import sys; from nemo_evaluator.environments.registry import available; available();"
        "print({'datasets', 'numpy', 'pyarrow', 'pandas', 'jinja2', 'huggingface_hub'} & sys.modules.keys())"
    )
    assert subprocess.check_output([sys.executable, "-c", code], text=True).strip() == "set()"


def test_a_file_with_one_benchmark_needs_no_name(write) -> None:
    assert resolve(write("trivia")).name == "trivia"


def test_a_file_is_imported_once(write) -> None:
    path = write("trivia", "quiz")

    assert resolve(f"{path}:quiz").name == "quiz"
    assert resolve(f"{path}:QUIZ").name == "quiz"
    assert resolve(f"{path}:trivia").name == "trivia"


def test_a_file_named_like_a_module_shadows_nothing(write) -> None:
    assert resolve(write("trivia", file="json.py")).name == "trivia"
    assert "mine" not in sys.modules
    assert sys.modules["json"].__file__ != write(file="json.py")


def test_a_scorer_may_come_from_another_file(write) -> None:
    text = """
from nemo_evaluator.benchmarks.gsm8k import gsm8k
from nemo_evaluator.environments import benchmark

benchmark("borrowed", dataset="rows.jsonl")(gsm8k)
"""
    assert resolve(write(text=text)).name == "borrowed"


@pytest.mark.parametrize(
    ("names", "suffix", "message"),
    [
        (["one", "two"], "", "defines 2 benchmarks (one, two); say which: "),
        ([], "", "defines 0 benchmarks (none); add one with @register or @benchmark"),
        (["one"], ":three", "defines no benchmark 'three'; it defines: one."),
    ],
)
def test_a_file_must_say_which_benchmark(write, names: list[str], suffix: str, message: str) -> None:
    path = write(*names)
    with pytest.raises(UsageError) as caught:
        resolve(path + suffix)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("\nimport no_such_module\n", 2, "ModuleNotFoundError: No module named 'no_such_module'"),
        ("\n\ndef broken(:\n", 3, "SyntaxError"),
        ("x = 1\ndef f():\n    return 1 / 0\nf()\n", 3, "ZeroDivisionError: division by zero"),
    ],
)
def test_a_file_that_cannot_be_imported_is_one_line_with_its_place(write, text: str, line: int, message: str) -> None:
    path = write(text=text)
    with pytest.raises(UsageError) as caught:
        resolve(path)
    assert str(caught.value).startswith(f"{path} cannot be imported: {message}")
    assert str(caught.value).endswith(f"({path}:{line})")
    assert "\n" not in str(caught.value)


def test_a_mended_file_can_be_imported_after_all(write) -> None:
    path = write(text="import no_such_module\n")
    with pytest.raises(UsageError):
        resolve(path)

    write("trivia")

    assert resolve(path).name == "trivia"


@pytest.mark.parametrize(
    ("spec", "messages"),
    [
        ("tiny_choices", ["Unknown benchmark 'tiny_choices'", "Did you mean 'tiny_choice'?", "nel list"]),
        ("zzz", ["Unknown benchmark 'zzz'. Accepted:"]),
        ("gym://localhost:9090", ["Unknown benchmark scheme 'gym://'", "Accepted: a benchmark's name", "path.py:name"]),
        ("no/such.py", ["No benchmark file 'no/such.py'", "Give the path"]),
    ],
)
def test_what_cannot_be_found_is_one_clear_line(spec: str, messages: list[str]) -> None:
    with pytest.raises(UsageError) as caught:
        resolve(spec)
    assert all(message in str(caught.value) for message in messages)
    assert "\n" not in str(caught.value)


def test_two_benchmarks_of_one_name_are_refused_with_both_places(write) -> None:
    first, second = write("trivia", file="one.py"), write("trivia", file="two.py")
    resolve(first)
    with pytest.raises(UsageError) as caught:
        resolve(second)
    assert f"{first}:4" in str(caught.value)
    assert f"{second}:4" in str(caught.value)


def test_a_bundled_name_cannot_be_taken(write) -> None:
    with pytest.raises(UsageError, match=r"nemo_evaluator\.benchmarks\.gsm8k \(bundled\)"):
        resolve(write("gsm8k"))


def test_params_reach_the_constructor_and_others_are_refused() -> None:
    @register("with_params")
    class WithParams(EvalEnvironment):
        def __init__(self, level: int = 1) -> None:
            super().__init__()
            self.level = level

        def __len__(self) -> int:
            return 0

        async def seed(self, idx): ...

        async def verify(self, response, expected, **metadata): ...

    assert resolve("with_params", {"level": 3}).level == 3
    with pytest.raises(UsageError, match=r"'with_params' cannot be made with params.*levle"):
        resolve("with_params", {"levle": 3})


def test_a_class_that_is_not_finished_says_what_is_missing() -> None:
    @register("unfinished")
    class Unfinished(EvalEnvironment):
        def __len__(self) -> int:
            return 0

    with pytest.raises(UsageError, match="'unfinished' does not define seed, verify"):
        resolve("unfinished")


def test_a_constructor_that_fails_is_one_line_with_its_place(write) -> None:
    text = """
from nemo_evaluator.environments import EvalEnvironment, register

@register("failing")
class Failing(EvalEnvironment):
    def __init__(self):
        open("/no/such/file")
    def __len__(self): ...
    async def seed(self, idx): ...
    async def verify(self, response, expected, **metadata): ...
"""
    path = write(text=text)
    with pytest.raises(UsageError) as caught:
        resolve(path)
    assert "cannot be made: FileNotFoundError" in str(caught.value)
    assert str(caught.value).endswith(f"({path}:7)")


def test_user_registrations_are_listed_too() -> None:
    @register("listed")
    class Listed(EvalEnvironment):
        """What it asks.

        And more."""

    assert registry.BenchmarkInfo("listed", "What it asks.", "user", None, None) in available()
