"""The benchmarks, as an image tells of them."""

from nemo_evaluator.frameworks.tasks import OWN
from nemo_evaluator.frameworks.wheels import read_framework
from tests.golden.framework import FILE, text


def test_every_benchmark_is_in_the_file_that_images_are_read_by():
    assert FILE.read_text(encoding="utf-8") == text(), "run `python -m tests.golden.framework`"


def test_it_reads_as_any_harness_s_file():
    tasks = {task.name: task for task in read_framework(FILE)}
    assert {"gsm8k", "mgsm", "mmlu", "tiny_arithmetic", "tiny_choice"} <= tasks.keys()
    assert {task.framework for task in tasks.values()} == {OWN}
    assert tasks["tiny_choice"].subset == "tiny_choice"
