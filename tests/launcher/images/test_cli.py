import json

import pytest
from click.testing import CliRunner

from nemotron.cli.images import images
from tests.fakes.registry import layer
from tests.launcher.images.test_tasks import DEFINITION, FRAMEWORK


@pytest.fixture
def call(fake, tmp_path):
    registry = fake()
    image = registry.push("team/tasks", "1", layers=[layer({FRAMEWORK: DEFINITION})])

    def run(*arguments: str):
        return CliRunner(env={"HOME": str(tmp_path)}).invoke(images, [a.format(host=registry.host) for a in arguments])

    run.image, run.host = image, registry.host
    return run


def test_digest_prints_what_the_variable_of_the_image_takes(call):
    done = call("digest", "{host}/team/tasks:1")
    assert done.stdout == f"{call.host}/team/tasks@{call.image.index_digest}\n"


def test_digest_has_both_digests_for_programs(call):
    said = json.loads(call("digest", "{host}/team/tasks:1", "--json", "--platform", "linux/amd64").stdout)
    assert said["index_digest"] == call.image.index_digest
    assert said["platform_digest"] == call.image.platform_digest()
    assert said["requested"] == f"{call.host}/team/tasks:1" and said["size"] > 0


def test_tasks_prints_a_line_a_task(call):
    done = call("tasks", "{host}/team/tasks:1")
    assert done.stdout.splitlines() == [
        "arithmetic  chat,completions  task=sums num_fewshot=5",
        "words       completions       num_fewshot=0",
    ]
    assert "2 tasks in" in done.stderr


def test_tasks_has_everything_for_programs(call):
    said = json.loads(call("tasks", "{host}/team/tasks:1", "--json", "--all-layers").stdout)
    assert [task["name"] for task in said["tasks"]] == ["arithmetic", "words"]
    assert said["tasks"][0]["defaults"]["parallelism"] == 10 and said["is_complete"]


def test_a_name_that_two_harnesses_have_is_shown_with_its_harness(fake, tmp_path):
    registry = fake()
    twin = DEFINITION.replace("demo-harness", "later").replace("words", "letters")
    files = {FRAMEWORK: DEFINITION, FRAMEWORK.replace("/demo/", "/later/"): twin}
    registry.push("team/two", "1", layers=[layer(files)])
    done = CliRunner(env={"HOME": str(tmp_path)}).invoke(images, ["tasks", f"{registry.host}/team/two:1"])
    assert [line.split()[0] for line in done.stdout.splitlines()] == [
        "arithmetic",
        "later.arithmetic",
        "letters",
        "words",
    ]
