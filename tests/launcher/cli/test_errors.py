"""Wrong input, by hand, through every command of direct mode: one line, the value, what is accepted, the next step."""

import pytest

STEP = ("steps", "run", "eval/model_eval")

WRONG = {
    "no such command": (("step",), "'step'. There are steps, jobs, doctor, images", 2),
    "no such subcommand": (("steps", "start"), "'start'. There are list, show, run", 2),
    "no such option": ((*STEP, "--confg", "direct"), "'--confg'", 2),
    "no step": (("steps", "run"), "'ID'; see `nemotron steps run --help`", 2),
    "unknown step": (("steps", "run", "eval/model_evl"), "Did you mean 'eval/model_eval'", 2),
    "unknown step shown": (("steps", "show", "env"), "There are: env/env_toml, eval/model_eval", 2),
    "unknown suite": ((*STEP, "-c", "base_eng"), "Did you mean 'base_en'", 2),
    "no such file": ((*STEP, "-c", "./mine.yaml"), "mine.yaml", 2),
    "unknown profile": ((*STEP, "-b", "local_eval_dirct"), "Did you mean 'local_eval_direct'", 2),
    "two profiles": ((*STEP, "-r", "a", "-b", "b"), "--run and --batch exclude each other", 2),
    "no assignment": ((*STEP, "preflight"), "'preflight'", 2),
    "no such key": ((*STEP, "preflght=false"), "preflght", 2),
    "no number": ((*STEP, "evaluation.nemo_evaluator_config.config.params.parallelism=many"), "parallelism", 2),
    "no boolean": ((*STEP, "overwrite=maybe"), "overwrite", 2),
    "no task name": ((*STEP, "-t", "../x"), "'../x'", 2),
    "an empty task name": ((*STEP, "-t", ""), "''", 2),
    "squash where there is none": ((*STEP, "--force-squash"), "--force-squash", 2),
    "no backend": (("steps", "run", "env/env_toml", "-c", "slrum", "output_path=x"), "Did you mean 'slurm'", 2),
    "no output path": (("steps", "run", "env/env_toml", "-c", "slurm"), "output_path", 2),
    "no image": (("images", "digest"), "'IMAGE'; see `nemotron images digest --help`", 2),
    "no such image": (("images", "digest", "Team/Image"), "Team/Image", 2),
    "no registry": (("images", "tasks", "127.0.0.1:9/team/image:1"), "127.0.0.1:9", 1),
    "no such platform": (("images", "digest", "127.0.0.1:9/a/b:1", "--platform", "amd64"), "amd64", 2),
    "no job": (("jobs", "status", "no-such-job"), "job", 2),
    "too many words": (("jobs", "logs", "a", "b"), "b", 2),
}


@pytest.mark.parametrize("case", WRONG)
def test_wrong_input_is_one_clear_line(user, case):
    words, said, code = WRONG[case]
    done = user(*words)
    assert done.returncode == code, done.stderr
    assert done.stdout == "" and done.stderr.count("\n") == 1, done.stderr
    assert done.stderr.startswith("Error: ") and said in done.stderr
    assert not user.results.exists()


def test_a_group_without_a_command_shows_its_help(user):
    assert "Commands:" in user("steps").stderr


def test_a_reader_who_has_gone_is_no_defect(user):
    process = user.start("steps", "show", "eval/model_eval")
    process.stdout.close()
    process.wait(timeout=180)
    assert process.returncode in (0, 1)
